import {
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
  watchLater,
} from '@shoal/cuda-base'
import {
  DisposedError,
  type DType,
  describeValue,
  dtypeInfo,
  dtypeOf,
  type MemoryLike,
  type StorageArray,
  type TypedArrayOf,
} from '@shoal/types'
import { type Context, type ContextSource, contextOf } from '../context.js'
import { Stream, streamFor } from '../stream.js'
import { Allocation } from './allocation.js'
import { memoryCalls } from './copy.js'
import { allocatedHigh, allocatedLow, allocateOn, freeOn } from './streamOrdered.js'

export type { CopySource, CopyTarget, QueueOptions, ViewOptions } from '@shoal/cuda-base'

/**
 * Typed memory of a device, or a view of a part of it. Work named with a stream is only queued; methods that end in
 * `Sync` block the thread; methods that return a promise wait without blocking it.
 */
export class DeviceBuffer<D extends DType = DType> extends DeviceMemoryObject<D> {
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  /** The allocation; or, until somebody needs one, the stream the memory is freed on. */
  #owner: Allocation | Stream
  /** Halves of the address, as long as a stream is the owner. */
  readonly #low: number
  readonly #high: number
  /** Where a view starts; undefined for a buffer that has the whole allocation. */
  readonly #viewAddress: bigint | undefined

  private constructor(owner: Allocation | Stream, dtype: D, length: number, viewAddress?: bigint, low = 0, high = 0) {
    super()
    this.#owner = owner
    this.#low = low
    this.#high = high
    this.#viewAddress = viewAddress
    this.dtype = dtype
    this.length = length
  }

  /** Memory for `length` elements, with whatever was there before (`cuMemAlloc`). */
  static allocate<D extends DType>(source: ContextSource, dtype: D, length: number): DeviceBuffer<D> {
    const context = contextOf(source)
    const { bytes } = requireDType(dtype)
    const allocation = Allocation.allocate(context, requireLength(length, 'length', bytes) * bytes)
    return new DeviceBuffer(allocation, dtype, length)
  }

  /** Memory for `length` elements, all bits zero; ready for use on any stream. */
  static zeros<D extends DType>(source: ContextSource, dtype: D, length: number): DeviceBuffer<D> {
    return DeviceBuffer.allocate(source, dtype, length).startWithZeros()
  }

  /**
   * A copy of a typed array on the device; ready for use on any stream. `dtype` names what the bits of the array mean,
   * such as `'bf16'` for a `Uint16Array`; default: the array's own type.
   */
  static from<D extends DType>(
    source: ContextSource,
    array: TypedArrayOf<D>,
    options: { readonly dtype: D },
  ): DeviceBuffer<D>
  static from<A extends StorageArray>(source: ContextSource, array: A): DeviceBuffer<DTypeOfArray<A>>
  static from(source: ContextSource, array: StorageArray, options: { readonly dtype?: DType } = {}): DeviceBuffer {
    requireOptions(options, 'options', '{ dtype }')
    const dtype = options.dtype ?? dtypeOf(array)
    requireDType(dtype)
    requireArrayFor(array, dtype, 'array')
    return DeviceBuffer.allocate(source, dtype, elementsIn(array, dtype, 'array')).startWith(array)
  }

  /**
   * Memory that can be used by work queued on `stream` from now on, and is freed on it (`cuMemAllocAsync`). Work of
   * another stream must wait for an event of this one first.
   */
  static allocateAsync<D extends DType>(stream: Stream, dtype: D, length: number): DeviceBuffer<D> {
    if (!(stream instanceof Stream)) throw new TypeError(`stream must be a Stream, not ${describeValue(stream)}`)
    const { bytes } = requireDType(dtype)
    const byteLength = requireLength(length, 'length', bytes) * bytes
    stream._requireUsable()
    if (byteLength === 0) return new DeviceBuffer(Allocation.empty(stream.context), dtype, 0)
    allocateOn(stream, byteLength)
    const buffer = new DeviceBuffer(stream, dtype, length, undefined, allocatedLow(), allocatedHigh())
    watchLater(buffer)
    return buffer
  }

  /** @internal Elements in memory that `allocate` makes, given their bytes. */
  static _allocateWith<D extends DType>(
    dtype: D,
    length: number,
    allocate: (bytes: number) => Allocation,
  ): DeviceBuffer<D> {
    const { bytes } = requireDType(dtype)
    const allocation = allocate(requireLength(length, 'length', bytes) * bytes)
    return new DeviceBuffer(allocation, dtype, length)
  }

  /**
   * Memory that somebody else frees. `keep` is an object that must stay alive as long as the buffer. Nothing can check
   * the address: a wrong one loses the context, or the process.
   */
  static fromAddress<D extends DType>(
    source: ContextSource,
    address: bigint,
    dtype: D,
    length: number,
    keep?: unknown,
  ): DeviceBuffer<D> {
    const context = contextOf(source)
    const { bytes } = requireDType(dtype)
    if (typeof address !== 'bigint') throw new TypeError(`address must be a bigint, not ${describeValue(address)}`)
    if (address < 0n || address >= 2n ** 64n) throw new RangeError(`address must fit 64 bits, not ${address}`)
    const allocation = Allocation.borrow(context, address, requireLength(length, 'length', bytes) * bytes, keep)
    return new DeviceBuffer(allocation, dtype, length)
  }

  /**
   * The memory of another object, such as a `MappedRange`, as elements; without a copy. It can be used as long as that
   * object has the memory: afterwards its use throws `DisposedError`.
   * @param source whose work shall use it: a device with access to the memory.
   * @throws RangeError when the elements do not lie within the memory.
   */
  static view<D extends DType>(
    source: ContextSource,
    memory: MemoryLike,
    dtype: D,
    options: ViewOptions = {},
  ): DeviceBuffer<D> {
    const context = contextOf(source)
    const { address, length } = viewOf(memory, dtype, options)
    return new DeviceBuffer(Allocation.within(context, memory), dtype, length, address)
  }

  get byteLength(): number {
    return this.length * dtypeInfo(this.dtype).bytes
  }

  /** @internal The allocation, which from now on is the one to give the memory back. */
  get _allocation(): Allocation {
    const owner = this.#owner
    if (owner instanceof Allocation) return owner
    const allocation = Allocation.takeOver(owner, { low: this.#low, high: this.#high }, this.byteLength)
    if (this._disposed) allocation.freed = true
    this.#owner = allocation
    return allocation
  }

  /** @internal The buffer outlives the turn it was made in: its allocation is what the collector watches. */
  _watch(): void {
    void this._allocation
  }

  protected get kind(): string {
    return 'DeviceBuffer'
  }

  // Not marked as internal: it would be missing from the declarations, and there the class could not stand for its base.
  get _calls(): DeviceMemoryCalls {
    return memoryCalls
  }

  /** @internal The address without the check that it is still there. */
  get _address(): bigint {
    return this.#viewAddress ?? this._allocation.address
  }

  get context(): Context {
    return this.#owner.context
  }

  get device(): Context['device'] {
    return this.#owner.context.device
  }

  /** Whether dispose() was called for this buffer or for the one it is a view of. */
  override get disposed(): boolean {
    return this._disposed || (this.#owner instanceof Allocation && this.#owner.freed)
  }

  /**
   * The elements from `start` up to, not including, `end`, as a view without a copy; negative numbers count from the
   * end. The view keeps the memory's objects alive, but disposing of the whole buffer ends its views.
   * @throws RangeError when the range does not lie within the buffer.
   */
  slice(start = 0, end = this.length): DeviceBuffer<D> {
    this._use()
    const { first, length } = sliceOf(start, end, this.length)
    const { bytes } = dtypeInfo(this.dtype)
    const address = this._address + BigInt(first * bytes)
    return new DeviceBuffer(this._allocation, this.dtype, length, address)
  }

  /** The same as {@link slice}: the name typed arrays have for a view. */
  subarray(start = 0, end = this.length): DeviceBuffer<D> {
    return this.slice(start, end)
  }

  /** The same bytes as elements of another dtype, without a copy. @throws RangeError when they do not fit. */
  reinterpret<E extends DType>(dtype: E): DeviceBuffer<E> {
    const address = this._use()
    const length = reinterpretedLength(address, this.byteLength, dtype)
    return new DeviceBuffer(this._allocation, dtype, length, address)
  }

  /** Frees the memory when `stream` gets there (`cuMemFreeAsync`): work queued on it before may still use it. */
  disposeOn(stream: Stream): void {
    if (!(stream instanceof Stream)) throw new TypeError(`stream must be a Stream, not ${describeValue(stream)}`)
    if (this._disposed) return
    streamFor(this.context, stream)
    this._disposed = true
    this.#free(stream)
  }

  /** Frees the memory without blocking the thread while work still uses it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this._disposed) return
    this._disposed = true
    if (this.#viewAddress !== undefined) return
    if (this.#owner instanceof Allocation) await this.#owner.freeOffThread()
    else this.#free()
  }

  override _use(): bigint {
    if (this._disposed) throw new DisposedError(this.kind)
    const { address } = this._allocation
    this.requireStillThere()
    return this.#viewAddress ?? address
  }

  protected override requireStillThere(): void {
    // Memory that was used before has its allocation.
    const allocation = this.#owner as Allocation
    if (this._disposed || allocation.freed) throw new DisposedError(this.kind)
    allocation.context._requireAlive()
    if (allocation.source !== undefined) this.requireWithin(allocation.source, this._address)
  }

  /** Frees the memory: blocks until work that uses it has ended, unless it was allocated on a stream. */
  protected release(): void {
    this.#free()
  }

  #free(stream?: Stream): void {
    if (this.#viewAddress !== undefined) return
    const owner = this.#owner
    if (owner instanceof Allocation) owner.free(stream)
    else if (owner._isGone)
      Allocation.takeOver(owner, { low: this.#low, high: this.#high }, this.byteLength).free(stream)
    else {
      try {
        freeOn(stream ?? owner, this.#low, this.#high)
      } finally {
        owner.context._removeChild()
      }
    }
  }
}
