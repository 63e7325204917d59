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

/** Options for memory of another owner. */
export interface BorrowOptions {
  /** An object that must live as long as the buffer. */
  readonly keep?: unknown
}

/**
 * Typed memory of a device, or a view of a part of it.
 *
 * Methods with a `stream` option only queue their work. Methods whose name ends in `Sync` block the thread. Methods
 * that return a promise wait without blocking the thread.
 *
 * @example
 * using x = DeviceBuffer.from(device, new Float32Array([1, 2, 3, 4]))
 * x.slice(1, 3).fill(0)
 * console.log(await x.toArray()) // Float32Array [1, 0, 0, 4]
 */
export class DeviceBuffer<E extends ElementType = DType> extends DeviceTransfers<E> {
  /** Type of the elements. */
  readonly dtype: E
  /** Number of elements. */
  readonly length: number
  /** The allocation. Until one is needed: the stream that frees the memory, or the block of a caching pool. */
  #owner: Allocation | Block | Stream
  /** Halves of the address, while the owner is a stream. */
  readonly #low: number
  readonly #high: number
  /** Start of a view; undefined for a buffer of the whole allocation. */
  readonly #viewAddress: bigint | undefined
  /** Answer of the memory protocol. Not a field: creating one per object would take as long as the driver call. */
  declare private range: MemoryRange | undefined
  /** Range of the viewed object when it last contained this view. Not a field, as above. */
  declare private surroundings: MemoryRange | undefined
  /** @internal Pending work on the viewed object's memory. Not a field, as above. */
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
   * Allocates uninitialized memory for `length` elements (`cuMemAlloc`, `cudaMalloc`).
   * @throws TypeError, RangeError; StatusError when there is not enough memory
   */
  static allocate<E extends ElementType>(owner: DeviceOrContext, dtype: E, length: number): DeviceBuffer<E> {
    const api = 'DeviceBuffer.allocate'
    const context = contextOf(owner, api)
    return new DeviceBuffer(Allocation.allocate(context, bytesFor(dtype, length, api)), dtype, length)
  }

  /** Allocates zeroed memory for `length` elements. Any stream can use it immediately. @throws as {@link allocate} */
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
   * Copies an array to new device memory. Any stream can use it immediately.
   *
   * `dtype` is the type of the elements that the array's bits represent, such as `'bf16'` for a `Uint16Array`, or the
   * struct of the objects in a list. Default: the array's own type.
   * @throws TypeError for an array of another type, RangeError for a fraction of an element; as {@link allocate}
   *
   * @example
   * using x = DeviceBuffer.from(device, new Float32Array([1, 2, 3, 4]))
   * using weights = DeviceBuffer.from(device, new Uint16Array(1024), { dtype: 'bf16' })
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
   * Allocates memory that `stream` can use immediately and later frees (`cuMemAllocAsync`, `cudaMallocAsync`). Work of
   * another stream must first wait for an event of `stream`.
   * @throws as {@link allocate}
   *
   * @example
   * const scratch = DeviceBuffer.allocateOn(stream, 'f32', 1024)
   * kernel.launch({ grid: 4, block: 256, stream }, scratch)
   * scratch.disposeOn(stream) // freed after the launch, without waiting
   */
  static allocateOn<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E> {
    const api = 'DeviceBuffer.allocateOn'
    if (!isStream(stream)) requireStream(stream, api)
    const byteLength = bytesFor(dtype, length, api)
    stream._requireUsable()
    // A captured allocation belongs to its graph. At a launch other code may have an allocator's memory.
    if (stream.context._allocator !== undefined && !isCaptured(stream.context, stream._handle))
      return allocateThrough(stream, dtype, length)
    if (byteLength === 0) return new DeviceBuffer(Allocation.empty(stream.context), dtype, length)
    const halves = allocateOn(stream, byteLength)
    const buffer = new DeviceBuffer(stream, dtype, length, undefined, halves[0], halves[1])
    watchLater(buffer)
    return buffer
  }

  /** @internal Creates a buffer in memory from `allocate`, which receives the size in bytes. */
  static _allocateWith<E extends ElementType>(
    dtype: E,
    length: number,
    api: string,
    allocate: (bytes: number) => Allocation,
  ): DeviceBuffer<E> {
    return new DeviceBuffer(allocate(bytesFor(dtype, length, api)), dtype, length)
  }

  /** @internal Creates a buffer in a block of a caching pool. */
  static _inBlock<E extends ElementType>(block: Block, dtype: E, length: number): DeviceBuffer<E> {
    const buffer = new DeviceBuffer(block, dtype, length)
    watchLater(buffer)
    return buffer
  }

  /** @internal The block of a caching pool; undefined for other memory. */
  get _block(): Block | undefined {
    return this.#owner instanceof Block ? this.#owner : this._allocation.block
  }

  /**
   * Wraps memory that another owner frees. The address cannot be checked: a wrong address ends the context or the
   * process.
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
   * Wraps the memory of another object, such as a `MappedRange`, without a copy. The buffer is usable while that object
   * has the memory; later use throws `DisposedError`.
   * @param owner the device whose work uses the memory; the device needs access to the memory
   * @throws RangeError when the elements do not fit in the memory; TypeError, DisposedError
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

  /** Size of all elements in bytes. */
  get byteLength(): number {
    return this.length * bytesOfElement(this.dtype)
  }

  /** @internal The allocation, which frees the memory from now on. */
  get _allocation(): Allocation {
    const owner = this.#owner
    return owner instanceof Allocation ? owner : this._allocate(owner)
  }

  /** @internal A separate method, so that V8 inlines the getter into its callers. */
  _allocate(owner: Block | Stream): Allocation {
    const allocation =
      owner instanceof Block
        ? Allocation.ofBlock(owner, this.byteLength)
        : Allocation.takeOver(owner, { low: this.#low, high: this.#high }, this.byteLength)
    if (this._disposed) allocation.freed = true
    this.#owner = allocation
    return allocation
  }

  /** @internal Creates the allocation and watches it for leaks, because the buffer outlives its turn. */
  _watch(): void {
    const owner = this.#owner
    if (!(owner instanceof Allocation)) this._allocate(owner)
  }

  protected get kind(): string {
    return 'DeviceBuffer'
  }

  /** @internal The address, without a check that the memory still exists. */
  get _address(): bigint {
    return this.#viewAddress ?? this._allocation.address
  }

  /** @internal The address for work of a context; undefined if the memory is gone or belongs to another context. */
  _addressIn(context: Context): bigint | undefined {
    if (!(#owner in this)) throw foreignThis(this, 'DeviceBuffer')
    const owner = this.#owner
    if (!(owner instanceof Allocation) || this._disposed || owner.freed || owner.context !== context) return undefined
    // The viewed object must be asked.
    if (owner.source !== undefined) return undefined
    return this.#viewAddress ?? owner.address
  }

  /** Device address of the first element, a `CUdeviceptr`; 0n without elements. @throws DisposedError */
  get address(): bigint {
    return this._use()
  }

  /** The primary context of the buffer's device, whose work uses the memory. */
  get context(): Context {
    if (!(#owner in this)) throw foreignThis(this, 'DeviceBuffer')
    return this.#owner.context
  }

  /** The device whose work uses the memory. */
  get device(): Context['device'] {
    return this.#owner.context.device
  }

  /** Whether dispose() was called for this buffer or for the buffer behind the view. */
  override get disposed(): boolean {
    return this._disposed || (this.#owner instanceof Allocation && this.#owner.freed)
  }

  /**
   * Returns a view of the elements from `start` to before `end`, without a copy. Negative numbers count from the end.
   * The view keeps the memory's objects alive, but disposing of the whole buffer ends the view.
   * @throws RangeError when the range is outside the buffer
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

  /** Same as {@link slice}, with the name that typed arrays use. */
  subarray(start = 0, end = this.length): DeviceBuffer<E> {
    return this.#slice(start, end, 'DeviceBuffer.subarray')
  }

  /** Returns a view of the same bytes with another element type. @throws RangeError when the elements do not fit */
  reinterpret<F extends ElementType>(dtype: F): DeviceBuffer<F> {
    const address = this._use()
    const length = reinterpretedLength(address, this.byteLength, dtype, 'DeviceBuffer.reinterpret')
    return new DeviceBuffer(this._allocation, dtype, length, address)
  }

  get [memoryProtocol](): MemoryRange {
    return this.#range()
  }

  /** @internal Returns the memory of a buffer with the same element type, ready for use; undefined for other values. */
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
    // Frozen, so that a consumer can recognize a range it has already checked. Structs appear as bytes, because the
    // protocol has no structs.
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

  /** Whether the viewed memory may be inaccessible to its own device. */
  #isByGrant(): boolean {
    const { source } = this._allocation
    return source !== undefined && !isOwn(this.context, this._surroundings(source))
  }

  override [inspectKey](): string {
    const state = this.disposed ? ', disposed' : ''
    return `DeviceBuffer<${nameOfType(this.dtype)}>(${this.length}) on device ${this.context.device.ordinal}${state}`
  }

  /**
   * Frees the memory in stream order (`cuMemFreeAsync`, `cudaFreeAsync`). Earlier work of the stream can still use it.
   * Does nothing for a view.
   */
  disposeOn(stream: Stream): void {
    requireStream(stream, 'DeviceBuffer.disposeOn')
    if (this._disposed) return
    streamFor(this.context, stream, 'DeviceBuffer.disposeOn')
    this._disposed = true
    this.#free(stream)
  }

  /** @internal Returns the address. @throws DisposedError */
  _use(): bigint {
    if (!(#owner in this)) throw foreignThis(this, 'DeviceBuffer')
    if (!(this.#owner instanceof Allocation) && !this._disposed) this._watch()
    this._requireStillThere()
    return this.#viewAddress ?? (this.#owner as Allocation).address
  }

  /**
   * @internal Like the checks of {@link _use}, for memory with an allocation. Runs again just before the memory is
   * used, because a getter of the arguments may have disposed of it.
   */
  _requireStillThere(): void {
    const allocation = this.#owner as Allocation
    if (this._disposed || allocation.freed) throw new DisposedError(this.kind)
    allocation.context._requireAlive()
    if (allocation.source !== undefined) this._lookInto(allocation.source)
  }

  /** @internal Returns the range of the viewed object. Call after {@link _use}. */
  _surroundings(source: MemoryLike): MemoryRange {
    return this.surroundings ?? toSpan(source, this.kind)
  }

  /** @internal Checks that the viewed object still has this memory. */
  _lookInto(source: MemoryLike): void {
    const range = source[memoryProtocol]
    if (range === this.surroundings) return
    requireWithin(range, this._address, this.byteLength)
    const { stream, context } = range
    if (stream !== undefined && stream !== null) this._pending = { stream, context }
    else if (this._pending !== undefined) this._pending = undefined
    // A frozen answer cannot change, so later checks can compare it by identity.
    if (Object.isFrozen(range)) this.surroundings = range
  }

  /** Frees the memory: on the stream that allocated it, or without such a stream when the device's work completes. */
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

/** Allocates with the program's allocator instead of the pools. The allocator itself allocates from the pools. */
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
