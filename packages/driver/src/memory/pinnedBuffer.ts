import {
  allocatePinned,
  bytesOf,
  type DTypeOfArray,
  elementsIn,
  type PinnedAllocation,
  type PinnedCalls,
  PinnedMemoryObject,
  type PinnedOptions,
  requireArrayFor,
  requireOptions,
  scratch,
} from '@shoal/cuda-base'
import { type CUdeviceptr, cuMemFreeHost, cuMemHostAlloc, cuMemHostGetDevicePointer } from '@shoal/cuda-sys/driver'
import { type DType, dtypeOf, type StorageArray, type TypedArrayOf } from '@shoal/types'
import { type Context, type ContextSource, contextOf } from '../context.js'

export type { PinnedOptions } from '@shoal/cuda-base'

const calls: PinnedCalls = {
  allocate(context, byteLength, bits) {
    const out = scratch()
    context._call('cuMemHostAlloc', () => cuMemHostAlloc(out, byteLength, bits))
    return out.u64[0] as bigint
  },
  free(context, address) {
    context._release('cuMemFreeHost', () => cuMemFreeHost(address))
  },
  devicePointer(context, address) {
    const out = scratch()
    context._call('cuMemHostGetDevicePointer', () => cuMemHostGetDevicePointer(out, address, 0))
    return out.u64[0] as bigint
  },
}

/**
 * Page-locked host memory (`cuMemHostAlloc`) as a real `ArrayBuffer`: copies between it and the device do not block
 * the thread and need no staging. dispose() detaches the buffer: its arrays become empty.
 */
export class PinnedBuffer<D extends DType = DType> extends PinnedMemoryObject<D> {
  protected readonly kind = 'PinnedBuffer'

  private constructor(allocation: PinnedAllocation<D>) {
    super('A PinnedBuffer', allocation)
  }

  /** Page-locked memory for `length` elements; its contents are whatever was there. */
  static allocate<D extends DType>(
    source: ContextSource,
    dtype: D,
    length: number,
    options: PinnedOptions = {},
  ): PinnedBuffer<D> {
    const construct = (allocation: PinnedAllocation<D>): PinnedBuffer<D> => new PinnedBuffer(allocation)
    return allocatePinned(contextOf(source), dtype, length, options, calls, construct)
  }

  /** A page-locked copy of a typed array. `dtype` names what the bits of the array mean; default: its own type. */
  static from<D extends DType>(
    source: ContextSource,
    array: TypedArrayOf<D>,
    options: PinnedOptions & { readonly dtype: D },
  ): PinnedBuffer<D>
  static from<A extends StorageArray>(
    source: ContextSource,
    array: A,
    options?: PinnedOptions,
  ): PinnedBuffer<DTypeOfArray<A>>
  static from(
    source: ContextSource,
    array: StorageArray,
    options: PinnedOptions & { readonly dtype?: DType } = {},
  ): PinnedBuffer {
    requireOptions(options, 'options', '{ dtype, mapped }')
    const dtype = options.dtype ?? dtypeOf(array)
    requireArrayFor(array, dtype, 'array')
    const buffer = PinnedBuffer.allocate(source, dtype, elementsIn(array, dtype, 'array'), options)
    bytesOf(buffer.array).set(bytesOf(array))
    return buffer
  }

  get context(): Context {
    return this._context as Context
  }

  /** The address kernels use; only for mapped memory (`cuMemHostGetDevicePointer`). */
  get deviceAddress(): CUdeviceptr {
    return this.devicePointer() as CUdeviceptr
  }

  get [Symbol.toStringTag](): string {
    return 'PinnedBuffer'
  }
}
