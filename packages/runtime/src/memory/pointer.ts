import { cudaMemoryType, cudaPointerAttributes, cudaPointerGetAttributes } from '@shoal/cuda-sys/runtime'
import { describeValue, isMemoryLike, type MemoryLike, toMemoryRange } from '@shoal/types'
import { currentDevice } from '../currentDevice.js'
import { callOn } from '../start.js'

/** What the runtime knows about an address. */
export interface PointerInfo {
  /** `'unregistered'` for ordinary host memory, `'host'` for page-locked memory. */
  readonly type: 'unregistered' | 'host' | 'device' | 'managed'
  /** Ordinal of its device; undefined for unregistered memory. */
  readonly device: number | undefined
  /** The address that kernels use; undefined where they cannot. */
  readonly devicePointer: bigint | undefined
  /** The address that the host uses; undefined where it cannot. */
  readonly hostPointer: bigint | undefined
}

const types = {
  [cudaMemoryType.cudaMemoryTypeUnregistered]: 'unregistered',
  [cudaMemoryType.cudaMemoryTypeHost]: 'host',
  [cudaMemoryType.cudaMemoryTypeDevice]: 'device',
  [cudaMemoryType.cudaMemoryTypeManaged]: 'managed',
} as const

/** Asks what lies at an address (`cudaPointerGetAttributes`). An address that CUDA does not know is no error. */
export function pointerInfo(pointer: bigint | MemoryLike): PointerInfo {
  const address = isMemoryLike(pointer) ? toMemoryRange(pointer).address : pointer
  if (typeof address !== 'bigint') {
    throw new TypeError(`pointer must be memory or a bigint, not ${describeValue(address)}`)
  }
  const memory = cudaPointerAttributes.allocate()
  callOn(currentDevice().primaryContext, 'cudaPointerGetAttributes', () => cudaPointerGetAttributes(memory, address))
  const { type, device, devicePointer, hostPointer } = cudaPointerAttributes.read(memory)
  return {
    type: types[type],
    device: device < 0 ? undefined : device,
    devicePointer: devicePointer === 0n ? undefined : devicePointer,
    hostPointer: hostPointer === 0n ? undefined : hostPointer,
  }
}
