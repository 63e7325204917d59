import {
  allocatePinned,
  type PinnedOptions as BasePinnedOptions,
  bytesOf,
  type Context,
  type DTypeOfArray,
  elementsIn,
  type PinnedAllocation,
  type PinnedCalls,
  PinnedMemoryObject,
  requireArrayFor,
  requireOptions,
  scratch,
} from '@shoal/cuda-base'
import { cudaFreeHost, cudaHostAlloc, cudaHostGetDevicePointer } from '@shoal/cuda-sys/runtime'
import { type DType, dtypeOf, type StorageArray, type TypedArrayOf } from '@shoal/types'
import { deviceOrCurrent } from '../currentDevice.js'
import type { Device } from '../device.js'
import { callOn, releaseOn } from '../start.js'
import type { DeviceOption } from './deviceMemory.js'

/** How page-locked memory is made. */
export interface PinnedOptions extends BasePinnedOptions, DeviceOption {}

const calls: PinnedCalls = {
  allocate(context, byteLength, bits) {
    const out = scratch()
    callOn(context, 'cudaHostAlloc', () => cudaHostAlloc(out, byteLength, bits))
    return out.u64[0] as bigint
  },
  free(context, address) {
    releaseOn(context, 'cudaFreeHost', () => cudaFreeHost(address))
  },
  devicePointer(context, address) {
    const out = scratch()
    callOn(context, 'cudaHostGetDevicePointer', () => cudaHostGetDevicePointer(out, address, 0))
    return out.u64[0] as bigint
  },
}

/**
 * Page-locked host memory (`cudaHostAlloc`) as a real `ArrayBuffer`: copies between it and the device do not block the
 * thread and need no staging. dispose() detaches the buffer: its arrays become empty.
 */
export class PinnedMemory<D extends DType = DType> extends PinnedMemoryObject<D> {
  protected readonly kind = 'PinnedMemory'

  private constructor(allocation: PinnedAllocation<D>) {
    super('PinnedMemory', allocation)
  }

  /** Page-locked memory for `length` elements; its contents are whatever was there. */
  static allocate<D extends DType>(dtype: D, length: number, options: PinnedOptions = {}): PinnedMemory<D> {
    requireOptions(options, 'options', '{ mapped }')
    const construct = (allocation: PinnedAllocation<D>): PinnedMemory<D> => new PinnedMemory(allocation)
    const { primaryContext } = deviceOrCurrent(options.device)
    return allocatePinned(primaryContext, dtype, length, options, calls, construct)
  }

  /** A page-locked copy of a typed array. `dtype` names what the bits of the array mean; default: its own type. */
  static from<D extends DType>(array: TypedArrayOf<D>, options: PinnedOptions & { readonly dtype: D }): PinnedMemory<D>
  static from<A extends StorageArray>(array: A, options?: PinnedOptions): PinnedMemory<DTypeOfArray<A>>
  static from(array: StorageArray, options: PinnedOptions & { readonly dtype?: DType } = {}): PinnedMemory {
    requireOptions(options, 'options', '{ dtype, mapped }')
    const dtype = options.dtype ?? dtypeOf(array)
    requireArrayFor(array, dtype, 'array')
    const memory = PinnedMemory.allocate(dtype, elementsIn(array, dtype, 'array'), options)
    bytesOf(memory.array).set(bytesOf(array))
    return memory
  }

  /** The primary context of the device it was made on. */
  get context(): Context {
    return this._context
  }

  /** The device it was made on. */
  get device(): Device {
    return this._context.device as Device
  }

  /** The address kernels use; only for mapped memory (`cudaHostGetDevicePointer`). */
  get deviceAddress(): bigint {
    return this.devicePointer()
  }

  get [Symbol.toStringTag](): string {
    return 'PinnedMemory'
  }
}
