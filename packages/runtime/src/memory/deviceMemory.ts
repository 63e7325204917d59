import {
  type Context,
  type DeviceMemoryCalls,
  DeviceMemoryObject,
  type DTypeOfArray,
  elementsIn,
  reinterpretedLength,
  requireArrayFor,
  requireDType,
  requireLength,
  requireOptions,
  sliceOf,
  type ViewOptions,
  viewOf,
} from '@shoal/cuda-base'
import {
  type DeviceLike,
  DisposedError,
  type DType,
  describeValue,
  dtypeInfo,
  dtypeOf,
  type MemoryLike,
  type StorageArray,
  type TypedArrayOf,
  toMemoryRange,
} from '@shoal/types'
import { deviceOrCurrent } from '../currentDevice.js'
import type { Device } from '../device.js'
import { requireStream, type Stream, streamFor } from '../stream.js'
import { Allocation } from './allocation.js'
import { memoryCalls } from './copy.js'

/** Where memory is made. */
export interface DeviceOption {
  /** Default: the current device. */
  readonly device?: DeviceLike | number | undefined
}

export type { CopySource, CopyTarget, QueueOptions } from '@shoal/cuda-base'

/**
 * Typed linear memory of a device, or a view of a part of it. Work named with a stream is only queued; methods that end
 * in `Sync` block the thread; methods that return a promise wait without blocking it.
 */
export class DeviceMemory<D extends DType = DType> extends DeviceMemoryObject<D> {
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  readonly byteLength: number
  readonly #allocation: Allocation
  readonly #address: bigint
  readonly #isView: boolean

  private constructor(allocation: Allocation, dtype: D, length: number, viewAddress?: bigint) {
    super()
    this.#allocation = allocation
    this.#address = viewAddress ?? allocation.address
    this.#isView = viewAddress !== undefined
    this.dtype = dtype
    this.length = length
    this.byteLength = length * dtypeInfo(dtype).bytes
  }

  /** Memory for `length` elements on the current device, with whatever was there before (`cudaMalloc`). */
  static allocate<D extends DType>(dtype: D, length: number, options: DeviceOption = {}): DeviceMemory<D> {
    requireOptions(options, 'options', '{ device }')
    const byteLength = bytesFor(dtype, length)
    const { primaryContext } = deviceOrCurrent(options.device)
    return new DeviceMemory(Allocation.allocate(primaryContext, byteLength), dtype, length)
  }

  /** Memory for `length` elements, all bits zero; ready for use on any stream. */
  static zeros<D extends DType>(dtype: D, length: number, options: DeviceOption = {}): DeviceMemory<D> {
    return DeviceMemory.allocate(dtype, length, options).startWithZeros()
  }

  /**
   * A copy of a typed array on the current device; ready for use on any stream. `dtype` names what the bits of the array
   * mean, such as `'bf16'` for a `Uint16Array`; default: the array's own type.
   */
  static from<D extends DType>(array: TypedArrayOf<D>, options: DeviceOption & { readonly dtype: D }): DeviceMemory<D>
  static from<A extends StorageArray>(array: A, options?: DeviceOption): DeviceMemory<DTypeOfArray<A>>
  static from(array: StorageArray, options: DeviceOption & { readonly dtype?: DType } = {}): DeviceMemory {
    requireOptions(options, 'options', '{ dtype, device }')
    const dtype = options.dtype ?? dtypeOf(array)
    requireDType(dtype)
    requireArrayFor(array, dtype, 'array')
    const length = elementsIn(array, dtype, 'array')
    return DeviceMemory.allocate(dtype, length, { device: options.device }).startWith(array)
  }

  /**
   * Memory that can be used by work queued on `stream` from now on, and is freed on it (`cudaMallocAsync`). Work of
   * another stream must wait for an event of this one first.
   */
  static allocateAsync<D extends DType>(stream: Stream, dtype: D, length: number): DeviceMemory<D> {
    requireStream(stream)
    return new DeviceMemory(Allocation.allocateOn(stream, bytesFor(dtype, length)), dtype, length)
  }

  /** @internal Elements in memory that `allocate` makes, given their bytes. */
  static _allocateWith<D extends DType>(
    dtype: D,
    length: number,
    allocate: (bytes: number) => Allocation,
  ): DeviceMemory<D> {
    return new DeviceMemory(allocate(bytesFor(dtype, length)), dtype, length)
  }

  /**
   * Memory that somebody else frees. `keep` is an object that must stay alive as long as this one. Nothing can check the
   * address: a wrong one loses the device's context, or the process.
   */
  static fromAddress<D extends DType>(
    address: bigint,
    dtype: D,
    length: number,
    options: DeviceOption & { readonly keep?: unknown } = {},
  ): DeviceMemory<D> {
    requireOptions(options, 'options', '{ device, keep }')
    const byteLength = bytesFor(dtype, length)
    if (typeof address !== 'bigint') throw new TypeError(`address must be a bigint, not ${describeValue(address)}`)
    if (address < 0n || address >= 2n ** 64n) throw new RangeError(`address must fit 64 bits, not ${address}`)
    const { primaryContext } = deviceOrCurrent(options.device)
    return new DeviceMemory(Allocation.borrow(primaryContext, address, byteLength, options.keep), dtype, length)
  }

  /**
   * The memory of another object as elements, without a copy: a buffer of `@shoal/driver`, a `MappedRange`, anything with
   * the memory protocol. It can be used as long as that object has the memory: afterwards its use throws
   * `DisposedError`.
   * @param options `device`: whose work shall use it; default: the device it lies on, for host memory the current one.
   * @throws RangeError when the elements do not lie within the memory.
   */
  static view<D extends DType>(
    memory: MemoryLike,
    dtype: D,
    options: ViewOptions & DeviceOption = {},
  ): DeviceMemory<D> {
    const { address, length } = viewOf(memory, dtype, options)
    const { deviceOrdinal } = toMemoryRange(memory)
    const { primaryContext } = deviceOrCurrent(options.device ?? (deviceOrdinal < 0 ? undefined : deviceOrdinal))
    return new DeviceMemory(Allocation.within(primaryContext, memory), dtype, length, address)
  }

  /** The primary context of its device. */
  get context(): Context {
    return this.#allocation.context
  }

  get device(): Device {
    return this.context.device as Device
  }

  /** Whether dispose() was called for this memory or for the one it is a view of. */
  override get disposed(): boolean {
    return this._disposed || this.#allocation.freed
  }

  /**
   * The elements from `start` up to, not including, `end`, as a view without a copy; negative numbers count from the
   * end. The view keeps the memory's objects alive, but disposing of the whole ends its views.
   * @throws RangeError when the range does not lie within the memory.
   */
  slice(start = 0, end = this.length): DeviceMemory<D> {
    const address = this._use()
    const { first, length } = sliceOf(start, end, this.length)
    const offset = BigInt(first * dtypeInfo(this.dtype).bytes)
    return new DeviceMemory(this.#allocation, this.dtype, length, address + offset)
  }

  /** The same as {@link slice}: the name typed arrays have for a view. */
  subarray(start = 0, end = this.length): DeviceMemory<D> {
    return this.slice(start, end)
  }

  /** The same bytes as elements of another dtype, without a copy. @throws RangeError when they do not fit. */
  reinterpret<E extends DType>(dtype: E): DeviceMemory<E> {
    const address = this._use()
    return new DeviceMemory(this.#allocation, dtype, reinterpretedLength(address, this.byteLength, dtype), address)
  }

  /** Frees the memory when `stream` gets there (`cudaFreeAsync`): work queued on it before may still use it. */
  disposeOn(stream: Stream): void {
    requireStream(stream)
    if (this._disposed) return
    streamFor(this.context, stream)
    this._disposed = true
    if (!this.#isView) this.#allocation.free(stream)
  }

  /** Frees the memory without blocking the thread while work still uses it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this._disposed) return
    this._disposed = true
    if (!this.#isView) await this.#allocation.freeOffThread()
  }

  protected get kind(): string {
    return 'DeviceMemory'
  }

  // Not marked as internal: it would be missing from the declarations, and there the class could not stand for its base.
  get _calls(): DeviceMemoryCalls {
    return memoryCalls
  }

  override _use(): bigint {
    this.requireStillThere()
    return this.#address
  }

  protected override requireStillThere(): void {
    const allocation = this.#allocation
    if (this._disposed || allocation.freed) throw new DisposedError(this.kind)
    allocation.context._requireAlive()
    if (allocation.source !== undefined) this.requireWithin(allocation.source, this.#address)
  }

  /** Frees the memory: blocks until work that uses it has ended, unless it was allocated on a stream. */
  protected release(): void {
    if (!this.#isView) this.#allocation.free()
  }
}

function bytesFor(dtype: DType, length: number): number {
  const { bytes } = requireDType(dtype)
  return requireLength(length, 'length', bytes) * bytes
}
