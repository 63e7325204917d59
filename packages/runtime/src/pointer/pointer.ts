import { type PointerInfo, pointerInfo as pointerInfoOf } from '@shoal/driver/shared'
import type { MemoryLike } from '@shoal/types'
import { currentDevice } from '../device/currentDevice.js'

/** Asks what lies at an address (`cuPointerGetAttributes`). An address that CUDA does not know is no error. */
export function pointerInfo(pointer: bigint | MemoryLike): PointerInfo {
  return pointerInfoOf(currentDevice(), pointer)
}
