import {
  arrayFor,
  type Context,
  checkSource,
  checkTarget,
  type DTypeOfArray,
  describeValue,
  downloadNow,
  type ElementValue,
  elementBytes,
  elementsIn,
  queueDownload,
  queueUpload,
  Resource,
  reinterpretedLength,
  requireArrayFor,
  requireDType,
  requireLength,
  requireOptions,
  requireWithin,
  sliceOf,
  uploadNow,
  type ViewOptions,
  viewOf,
} from '@shoal/cuda-base'
import type { cudaStream_t } from '@shoal/cuda-sys/runtime'
import {
  type DeviceLike,
  DisposedError,
  type DType,
  dtypeInfo,
  dtypeOf,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StorageArray,
  type StreamLike,
  type TypedArrayOf,
  toMemoryRange,
} from '@shoal/types'
import { deviceOrCurrent } from '../currentDevice.js'
import type { Device } from '../device.js'
import { requireStream, Stream, streamFor } from '../stream.js'
import { Allocation } from './allocation.js'
import { hostCopies, queueDeviceCopy, queueFill, synchronizeStream } from './copy.js'
import type { PinnedMemory } from './pinnedMemory.js'

/** Where memory is made. */
export interface DeviceOption {
  /** Default: the current device. */
  readonly device?: DeviceLike | number | undefined
}

/** Where an operation is queued. */
export interface QueueOptions {
  /** A stream of any package. Default: the default stream of the memory's device. */
  readonly stream?: StreamLike | undefined
}

/** What device memory can be filled from: a typed array, page-locked memory, or device memory of any device and package. */
export type CopySource<D extends DType> = TypedArrayOf<D> | MemoryLike

/** What device memory can be read into. */
export type CopyTarget<D extends DType> = TypedArrayOf<D> | PinnedMemory<D>

/**
 * Typed linear memory of a device, or a view of a part of it. Work named with a stream is only queued; methods that end
 * in `Sync` block the thread; methods that return a promise wait without blocking it.
 */
export class DeviceMemory<D extends DType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'DeviceMemory'
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
  readonly byteLength: number
  readonly #allocation: Allocation
  readonly #address: bigint
  readonly #isView: boolean
  #range: MemoryRange | undefined

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
    const memory = DeviceMemory.allocate(dtype, length, options)
    return disposeOnError(memory, () => {
      const { context } = memory
      const { handle } = transferStream(context)
      queueFill(context, handle, memory.#address, new DataView(new ArrayBuffer(1)), memory.byteLength)
      synchronizeStream(context, handle)
    })
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
    const memory = DeviceMemory.allocate(dtype, elementsIn(array, dtype, 'array'), { device: options.device })
    return disposeOnError(memory, () => {
      const { context } = memory
      uploadNow(hostCopies, context, transferStream(context).handle, memory.#address, array)
    })
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
    const { device } = toMemoryRange(memory)
    const { primaryContext } = deviceOrCurrent(options.device ?? (device < 0 ? undefined : device))
    return new DeviceMemory(Allocation.within(primaryContext, memory), dtype, length, address)
  }

  /** The primary context of its device. */
  get context(): Context {
    return this.#allocation.context
  }

  get device(): Device {
    return this.context.device as Device
  }

  /** The device address of the first element; 0n when there is none. @throws DisposedError */
  get address(): bigint {
    return this.#use()
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
    const address = this.#use()
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
    const address = this.#use()
    return new DeviceMemory(this.#allocation, dtype, reinterpretedLength(address, this.byteLength, dtype), address)
  }

  /** Queues the writing of one value to every element (`cudaMemsetAsync` for values whose bytes are all the same). */
  fill(value: ElementValue<D>, options: QueueOptions = {}): this {
    const address = this.#use()
    const stream = queueFor(this.context, options)
    queueFill(this.context, stream, address, elementBytes(this.dtype, value, 'value'), this.length)
    return this
  }

  /** Writes one value to every element and blocks until it is done. */
  fillSync(value: ElementValue<D>, options: QueueOptions = {}): this {
    this.fill(value, options)
    return this.#finish(options)
  }

  /**
   * Queues a copy of the whole of `source`, which must be as long as this memory; use {@link slice} for parts
   * (`cudaMemcpyAsync`, `cudaMemcpyPeerAsync`). Of an ordinary array the present contents arrive, whatever becomes of
   * it; a page-locked one must stay unchanged until the copy ends and is kept alive until then. Device memory may be
   * another device's, with or without peer access.
   * @throws TypeError for another dtype, RangeError for another length, DisposedError.
   */
  copyFrom(source: CopySource<D>, options: QueueOptions = {}): this {
    const address = this.#use()
    const { context } = this
    const stream = queueFor(context, options)
    const from = checkSource(source, this)
    if (ArrayBuffer.isView(from)) queueUpload(hostCopies, context, stream, address, from)
    else queueDeviceCopy(context, stream, address, from)
    return this
  }

  /** Like {@link copyFrom}, and blocks until the copy has ended. */
  copyFromSync(source: CopySource<D>, options: QueueOptions = {}): this {
    const address = this.#use()
    const { context } = this
    const stream = queueFor(context, options)
    const from = checkSource(source, this)
    if (ArrayBuffer.isView(from)) {
      uploadNow(hostCopies, context, stream, address, from)
      return this
    }
    queueDeviceCopy(context, stream, address, from)
    return this.#finish(options)
  }

  /**
   * Queues a copy into host memory as long as this memory and resolves with it when the data is there.
   * @throws TypeError for an array of another type, RangeError for another length, DisposedError, StatusError.
   */
  copyTo<T extends CopyTarget<D>>(target: T, options: QueueOptions = {}): Promise<T> {
    try {
      const address = this.#use()
      const stream = queueFor(this.context, options)
      return queueDownload(hostCopies, this.context, stream, address, checkTarget(target, this), target)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Copies into host memory as long as this memory and blocks until the data is there. */
  copyToSync<T extends CopyTarget<D>>(target: T, options: QueueOptions = {}): T {
    const address = this.#use()
    const stream = queueFor(this.context, options)
    downloadNow(hostCopies, this.context, stream, address, checkTarget(target, this))
    return target
  }

  /** Resolves with the elements in a fresh typed array, as they are when the stream gets there. */
  toArray(options: QueueOptions = {}): Promise<TypedArrayOf<D>> {
    return this.copyTo(arrayFor(this.dtype, this.length) as TypedArrayOf<D>, options)
  }

  /** The elements in a fresh typed array; blocks until the stream gets there. */
  toArraySync(options: QueueOptions = {}): TypedArrayOf<D> {
    return this.copyToSync(arrayFor(this.dtype, this.length) as TypedArrayOf<D>, options)
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

  get [memoryProtocol](): MemoryRange {
    const address = this.#use()
    this.#range ??= Object.freeze({
      version: 0,
      address,
      byteLength: this.byteLength,
      device: this.context.device.ordinal,
      context: this.context._handle,
      dtype: this.dtype,
      length: this.length,
    })
    return this.#range
  }

  get [Symbol.toStringTag](): string {
    return 'DeviceMemory'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const state = this.disposed ? ', disposed' : ''
    return `DeviceMemory<${this.dtype}>(${this.length}) on device ${this.context.device.ordinal}${state}`
  }

  /** The address, or DisposedError. */
  #use(): bigint {
    if (this._disposed || this.#allocation.freed) throw new DisposedError(this.kind)
    this.#allocation.context._requireAlive()
    const { source } = this.#allocation
    if (source !== undefined) requireWithin(source, this.#address, this.byteLength)
    return this.#address
  }

  /** Frees the memory: blocks until work that uses it has ended, unless it was allocated on a stream. */
  protected release(): void {
    if (!this.#isView) this.#allocation.free()
  }

  #finish(options: QueueOptions): this {
    synchronizeStream(this.context, queueFor(this.context, options))
    return this
  }
}

function bytesFor(dtype: DType, length: number): number {
  const { bytes } = requireDType(dtype)
  return requireLength(length, 'length', bytes) * bytes
}

/** The stream an operation is queued on; a TypeError for a stream where options are meant. */
function queueFor(context: Context, options: QueueOptions): cudaStream_t {
  requireOptions(options, 'options', '{ stream }')
  return streamFor(context, options.stream)
}

const transferStreams = new WeakMap<Context, Stream>()

/** A stream of our own for memory nobody else knows yet, so that making it waits for nobody's work. */
function transferStream(context: Context): Stream {
  let stream = transferStreams.get(context)
  if (stream === undefined) {
    stream = Stream._createHidden(context)
    transferStreams.set(context, stream)
  }
  return stream
}

function disposeOnError<D extends DType>(memory: DeviceMemory<D>, work: () => void): DeviceMemory<D> {
  try {
    work()
    return memory
  } catch (error) {
    memory.dispose()
    throw error
  }
}
