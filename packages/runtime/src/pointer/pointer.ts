import { type PointerInfo, pointerInfo as pointerInfoOf } from '@shoal/driver/shared'
import type { MemoryLike } from '@shoal/types'
import { currentDevice } from '../device/currentDevice.js'

/** Returns information about an address (`cuPointerGetAttributes`). An unknown address is not an error. */
export function pointerInfo(pointer: bigint | MemoryLike): PointerInfo {
  return pointerInfoOf(currentDevice(), pointer)
}
