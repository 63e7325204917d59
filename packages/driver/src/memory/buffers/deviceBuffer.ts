import {
  type CompoundType,
  DisposedError,
  type DType,
  dtypeOf,
  type ElementInputOf,
  type ElementType,
  foreignThis,
  inspectKey,
  isInstance,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  requireAddress,
  requireMade,
  requireOptions,
  type StorageArray,
  type TypedArrayOf,
  wrongType,
} from '@shoal/types'
import { afterCapture, isCaptured, isCapturing } from '../../core/context/capturing.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { watchLater } from '../../core/lifetime.js'
import { toSpan } from '../../core/ranges/span.js'
import type { Producer } from '../../core/stream/orderBehind.js'
import { isStream, requireStream, Stream, streamFor } from '../../core/stream/stream.js'
import { halvesOf } from '../../core/u64Halves.js'
import { Allocation } from './allocation.js'
import { Block } from './caching/block.js'
import { DeviceTransfers } from './deviceTransfers.js'
import { structBytes } from './elements.js'
import { bytesFor, bytesOfElement, nameOfType, requireElementType } from './elementType.js'
import { queueBytes } from './fill.js'
import { type DTypeOfArray, elementsIn, requireArrayFor } from './hostArrays.js'
import { uploadNow } from './hostCopy.js'
import { startWith } from './newMemory.js'
import { isOwn } from './reach.js'
import type { StreamAllocator } from './streamAllocator.js'
import { allocateOn, freeOn, isFreedLater } from './streamOrdered.js'
import { reinterpretedLength, requireWithin, sliceOf, type ViewOptions, viewOf } from './typed.js'

/** Memory of somebody else, as elements. */
export interface BorrowOptions {
  /** An object that must stay alive as long as the buffer. */
  readonly keep?: unknown
}

/**
 * Typed memory of a device, or a view of a part of it. Work named with a stream is only queued; methods that end in
 * `Sync` block the thread; methods that return a promise wait without blocking it.
 *
 * @example
 * using x = DeviceBuffer.from(device, new Float32Array([1, 2, 3, 4]))
 * x.slice(1, 3).fill(0)
 * console.log(await x.toArray()) // Float32Array [1, 0, 0, 4]
 */
export class DeviceBuffer<E extends ElementType = DType> extends DeviceTransfers<E> {
  /** The type of its elements. */
  readonly dtype: E
  /** Number of elements. */
  readonly length: number
  /**
   * The allocation; or, until somebody needs one, the stream the memory is freed on, or the block of a caching pool.
   */
  #owner: Allocation | Block | Stream
  /** Halves of the address, as long as a stream is the owner. */
  readonly #low: number
  readonly #high: number
  /** Where a view starts; undefined for a buffer that has the whole allocation. */
  readonly #viewAddress: bigint | undefined
  /**
   * What the memory protocol gave. No field: making one for each object would take as long as the call of the driver.
   */
  declare private range: MemoryRange | undefined
  /** What the object that a view looks into has, as the view was last found to lie within it. No field, as above. */
  declare private surroundings: MemoryRange | undefined
  /** @internal What is pending on that object's memory. No field, as above. */
  declare _pending: Producer | undefined

  private constructor(
    owner: Allocation | Block | Stream,
    dtype: E,
    length: number,
    viewAddress?: bigint,
    low = 0,
    high = 0,
  ) {
    requireMade(owner?.context, 'DeviceBuffer', 'DeviceBuffer.allocate, zeros or from', 'object')
    super()
    this.#owner = owner
    this.#low = low
    this.#high = high
    this.#viewAddress = viewAddress
    this.dtype = dtype
    this.length = length
  }

  /**
   * Memory of a device for `length` elements, with whatever was there before (`cuMemAlloc`, `cudaMalloc`).
   * @throws TypeError, RangeError; StatusError when there is not enough memory
   */
  static allocate<E extends ElementType>(owner: DeviceOrContext, dtype: E, length: number): DeviceBuffer<E> {
    const api = 'DeviceBuffer.allocate'
    const context = contextOf(owner, api)
    return new DeviceBuffer(Allocation.allocate(context, bytesFor(dtype, length, api)), dtype, length)
  }

  /** Memory for `length` elements, all bits zero; ready for use on any stream. @throws as {@link allocate} */
  static zeros<E extends ElementType>(owner: DeviceOrContext, dtype: E, length: number): DeviceBuffer<E> {
    const api = 'DeviceBuffer.zeros'
    const context = contextOf(owner, api)
    const buffer = new DeviceBuffer(Allocation.allocate(context, bytesFor(dtype, length, api)), dtype, length)
    startWith(buffer, (stream) => {
      queueBytes(context, halvesOf(stream), buffer._use(), 0, buffer.byteLength)
      context._call('streamSynchronize', stream)
    })
    return buffer
  }

  /**
   * A copy of an array on the device; ready for use on any stream. `dtype` says what the bits of the array mean, such
   * as `'bf16'` for a `Uint16Array`, or which struct the objects of a list are; default: the array's own type.
   * @throws TypeError for an array of another type, RangeError when its elements are not whole; as {@link allocate}
   */
  static from<D extends DType>(
    owner: DeviceOrContext,
    array: TypedArrayOf<D>,
    options: { readonly dtype: D },
  ): DeviceBuffer<D>
  static from<S extends CompoundType>(
    owner: DeviceOrContext,
    values: ElementInputOf<S> | Uint8Array,
    options: { readonly dtype: S },
  ): DeviceBuffer<S>
  static from<A extends StorageArray>(owner: DeviceOrContext, array: A): DeviceBuffer<DTypeOfArray<A>>
  static from(
    owner: DeviceOrContext,
    array: StorageArray | ArrayLike<object>,
    options: { readonly dtype?: ElementType } = {},
  ): DeviceBuffer<ElementType> {
    const api = 'DeviceBuffer.from'
    const context = contextOf(owner, api)
    requireOptions(options, api, { dtype: true })
    const { dtype = dtypeOf(array as StorageArray, api, 'array') } = options
    requireElementType(dtype, api, 'dtype')
    const held = structBytes(array, dtype, api, 'array')
    requireArrayFor(held, dtype, api, 'array')
    const length = elementsIn(held, dtype, api, 'array')
    const buffer = new DeviceBuffer(Allocation.allocate(context, bytesFor(dtype, length, api)), dtype, length)
    startWith(buffer, (stream) => uploadNow(context, stream, buffer._use(), held))
    return buffer
  }

  /**
   * Memory that can be used by work queued on `stream` from now on, and is freed on it (`cuMemAllocAsync`,
   * `cudaMallocAsync`). Work of another stream must wait for an event of this one first.
   * @throws as {@link allocate}
   */
  static allocateOn<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E> {
    const api = 'DeviceBuffer.allocateOn'
    if (!isStream(stream)) requireStream(stream, api)
    const byteLength = bytesFor(dtype, length, api)
    stream._requireUsable()
    // What a graph allocates is its own: it runs when others may have what an allocator gave.
    if (stream.context._allocator !== undefined && !isCaptured(stream.context, stream._handle))
      return allocateThrough(stream, dtype, length)
    if (byteLength === 0) return new DeviceBuffer(Allocation.empty(stream.context), dtype, length)
    const halves = allocateOn(stream, byteLength)
    const buffer = new DeviceBuffer(stream, dtype, length, undefined, halves[0], halves[1])
    watchLater(buffer)
    return buffer
  }

  /** @internal Elements in memory that `allocate` makes, given their bytes. */
  static _allocateWith<E extends ElementType>(
    dtype: E,
    length: number,
    api: string,
    allocate: (bytes: number) => Allocation,
  ): DeviceBuffer<E> {
    return new DeviceBuffer(allocate(bytesFor(dtype, length, api)), dtype, length)
  }

  /** @internal Elements in a block of a caching pool, which gets it back. */
  static _inBlock<E extends ElementType>(block: Block, dtype: E, length: number): DeviceBuffer<E> {
    const buffer = new DeviceBuffer(block, dtype, length)
    watchLater(buffer)
    return buffer
  }

  /** @internal The block of a caching pool that it has; undefined where its memory comes from elsewhere. */
  get _block(): Block | undefined {
    return this.#owner instanceof Block ? this.#owner : this._allocation.block
  }

  /**
   * Memory that somebody else frees. Nothing can check the address: a wrong one loses the context, or the process.
   * @throws TypeError, RangeError
   */
  static fromAddress<E extends ElementType>(
    owner: DeviceOrContext,
    address: bigint,
    dtype: E,
    length: number,
    options: BorrowOptions = {},
  ): DeviceBuffer<E> {
    const api = 'DeviceBuffer.fromAddress'
    const context = contextOf(owner, api)
    requireAddress(address, api, 'address')
    requireOptions<BorrowOptions>(options, api, { keep: true })
    const allocation = Allocation.borrow(context, address, bytesFor(dtype, length, api), options.keep)
    return new DeviceBuffer(allocation, dtype, length)
  }

  /**
   * The memory of another object, such as a `MappedRange`, as elements; without a copy. It can be used as long as that
   * object has the memory: afterwards its use throws `DisposedError`.
   * @param owner whose work shall use it: a device with access to the memory.
   * @throws RangeError when the elements do not lie within the memory; TypeError, DisposedError
   */
  static view<E extends ElementType>(
    owner: DeviceOrContext,
    memory: MemoryLike,
    dtype: E,
    options: ViewOptions = {},
  ): DeviceBuffer<E> {
    const api = 'DeviceBuffer.view'
    const context = contextOf(owner, api)
    const { address, length } = viewOf(memory, dtype, options, api)
    return new DeviceBuffer(Allocation.within(context, memory), dtype, length, address)
  }

  /** Bytes of all elements. */
  get byteLength(): number {
    return this.length * bytesOfElement(this.dtype)
  }

  /** @internal The allocation, which from now on is the one to give the memory back. */
  get _allocation(): Allocation {
    const owner = this.#owner
    return owner instanceof Allocation ? owner : this._allocate(owner)
  }

  /** @internal Apart, so that V8 puts the rest into what asks for it. */
  _allocate(owner: Block | Stream): Allocation {
    const allocation =
      owner instanceof Block
        ? Allocation.ofBlock(owner, this.byteLength)
        : Allocation.takeOver(owner, { low: this.#low, high: this.#high }, this.byteLength)
    if (this._disposed) allocation.freed = true
    this.#owner = allocation
    return allocation
  }

  /** @internal The buffer outlives the turn it was made in: its allocation is what the collector watches. */
  _watch(): void {
    const owner = this.#owner
    if (!(owner instanceof Allocation)) this._allocate(owner)
  }

  protected get kind(): string {
    return 'DeviceBuffer'
  }

  /** @internal The address without the check that it is still there. */
  get _address(): bigint {
    return this.#viewAddress ?? this._allocation.address
  }

  /** @internal The same for work of a context, where the memory is there and is that context's; else undefined. */
  _addressIn(context: Context): bigint | undefined {
    if (!(#owner in this)) throw foreignThis(this, 'DeviceBuffer')
    const owner = this.#owner
    if (!(owner instanceof Allocation) || this._disposed || owner.freed || owner.context !== context) return undefined
    // The object it looks into has to be asked.
    if (owner.source !== undefined) return undefined
    return this.#viewAddress ?? owner.address
  }

  /** The device address of the first element, a `CUdeviceptr`; 0n when there is none. @throws DisposedError */
  get address(): bigint {
    return this._use()
  }

  /** The context whose work uses it: the primary one of its device. */
  get context(): Context {
    if (!(#owner in this)) throw foreignThis(this, 'DeviceBuffer')
    return this.#owner.context
  }

  /** The device whose work uses it. */
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
  slice(start = 0, end = this.length): DeviceBuffer<E> {
    return this.#slice(start, end, 'DeviceBuffer.slice')
  }

  #slice(start: number, end: number, api: string): DeviceBuffer<E> {
    const whole = this._use()
    const { first, length } = sliceOf(start, end, this.length, api)
    const address = whole + BigInt(first * bytesOfElement(this.dtype))
    return new DeviceBuffer(this.#owner, this.dtype, length, address)
  }

  /** The same as {@link slice}: the name typed arrays have for a view. */
  subarray(start = 0, end = this.length): DeviceBuffer<E> {
    return this.#slice(start, end, 'DeviceBuffer.subarray')
  }

  /** The same bytes as elements of another type, without a copy. @throws RangeError when they do not fit. */
  reinterpret<F extends ElementType>(dtype: F): DeviceBuffer<F> {
    const address = this._use()
    const length = reinterpretedLength(address, this.byteLength, dtype, 'DeviceBuffer.reinterpret')
    return new DeviceBuffer(this._allocation, dtype, length, address)
  }

  get [memoryProtocol](): MemoryRange {
    return this.#range()
  }

  /**
   * @internal The memory of a buffer with the same elements, of which nothing is left to ask; undefined of all else.
   */
  _rangeOfLike(source: unknown): MemoryRange | undefined {
    const isBuffer = typeof source === 'object' && source !== null && #owner in source
    return isBuffer && source.dtype === this.dtype && source.length === this.length ? source.#range() : undefined
  }

  #range(): MemoryRange {
    const known = this.range
    if (known !== undefined) {
      this._requireStillThere()
      if (known.stream === this._pending?.stream) return known
    }
    const address = this._use()
    const { context, _pending: pending } = this
    const dtype: ElementType = this.dtype
    // Frozen: whoever checked it once may recognise it. The protocol knows no structs: those are bytes to others.
    this.range = Object.freeze({
      version: pending === undefined ? 0 : 1,
      address,
      byteLength: this.byteLength,
      deviceOrdinal: context.device.ordinal,
      context: pending === undefined || pending.context === 0n ? context._handle : pending.context,
      ...(typeof dtype === 'string' ? { dtype, length: this.length } : {}),
      ...(pending === undefined ? {} : { stream: pending.stream }),
      ...(this.#isByGrant() ? { access: 'granted' } : {}),
    })
    return this.range
  }

  /** Whether it looks into memory that its own device may be unable to use. */
  #isByGrant(): boolean {
    const { source } = this._allocation
    return source !== undefined && !isOwn(this.context, this._surroundings(source))
  }

  override [inspectKey](): string {
    const state = this.disposed ? ', disposed' : ''
    return `DeviceBuffer<${nameOfType(this.dtype)}>(${this.length}) on device ${this.context.device.ordinal}${state}`
  }

  /**
   * Frees the memory when `stream` gets there (`cuMemFreeAsync`, `cudaFreeAsync`): work queued on it before may still
   * use it. Does nothing for a view.
   */
  disposeOn(stream: Stream): void {
    requireStream(stream, 'DeviceBuffer.disposeOn')
    if (this._disposed) return
    streamFor(this.context, stream, 'DeviceBuffer.disposeOn')
    this._disposed = true
    this.#free(stream)
  }

  /** @internal The address, or DisposedError. */
  _use(): bigint {
    if (!(#owner in this)) throw foreignThis(this, 'DeviceBuffer')
    if (!(this.#owner instanceof Allocation) && !this._disposed) this._watch()
    this._requireStillThere()
    return this.#viewAddress ?? (this.#owner as Allocation).address
  }

  /**
   * @internal What {@link _use} refuses, for memory that was used before: that has its allocation. Asked once more
   * before the memory is used, as a getter of the arguments may have disposed of it.
   */
  _requireStillThere(): void {
    const allocation = this.#owner as Allocation
    if (this._disposed || allocation.freed) throw new DisposedError(this.kind)
    allocation.context._requireAlive()
    if (allocation.source !== undefined) this._lookInto(allocation.source)
  }

  /** @internal What the object it looks into has; after {@link _use}. */
  _surroundings(source: MemoryLike): MemoryRange {
    return this.surroundings ?? toSpan(source, this.kind)
  }

  /** @internal The object it looks into may have given its memory back, or part of it. */
  _lookInto(source: MemoryLike): void {
    const range = source[memoryProtocol]
    if (range === this.surroundings) return
    requireWithin(range, this._address, this.byteLength)
    const { stream, context } = range
    if (stream !== undefined && stream !== null) this._pending = { stream, context }
    else if (this._pending !== undefined) this._pending = undefined
    // What is frozen stays as it is.
    if (Object.isFrozen(range)) this.surroundings = range
  }

  /** Frees the memory when the work of the device has ended; on its stream, if it was allocated on one. */
  protected release(): void {
    this.#free()
  }

  #free(stream?: Stream): void {
    if (this.#viewAddress !== undefined) return
    const owner = this.#owner
    if (!(owner instanceof Stream)) {
      if (owner instanceof Block) owner.giveBack(stream)
      else owner.free(stream)
    } else if (owner._isGone)
      Allocation.takeOver(owner, { low: this.#low, high: this.#high }, this.byteLength).free(stream)
    else if (isCapturing() && isFreedLater(stream ?? owner, this.#low, this.#high))
      afterCapture('A DeviceBuffer', () => this.#free(stream?._isGone ? undefined : stream))
    else {
      try {
        freeOn(stream ?? owner, this.#low, this.#high)
      } finally {
        owner.context._removeChild()
      }
    }
  }
}

/** Memory from what the program has put in the place of the pools. What that allocates itself comes from them. */
function allocateThrough<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E> {
  const { context } = stream
  const allocator = context._allocator as StreamAllocator
  context._allocator = undefined
  try {
    const buffer = allocator.allocate(stream, dtype, length)
    if (isInstance(buffer, DeviceBuffer) && buffer.dtype === dtype && buffer.length === length) return buffer
    const expected = `a DeviceBuffer of ${length} elements of type ${nameOfType(dtype)}`
    throw wrongType('DeviceBuffer.allocateOn', 'what the allocator gives', expected, buffer)
  } finally {
    context._allocator ??= allocator
  }
}
