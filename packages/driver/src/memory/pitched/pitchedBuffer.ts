import type { CUstream } from '@shoal/cuda-sys/driver'
import {
  type CompoundType,
  type DType,
  dtypeOf,
  type ElementArrayOf,
  type ElementInputOf,
  type ElementType,
  isArray,
  isInstance,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  outOfRange,
  requireInteger,
  requireMade,
  requireOptions,
  type StorageArray,
  type TypedArrayOf,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { keepCaptured } from '../../core/context/keptByCaptures.js'
import { Resource } from '../../core/lifetime.js'
import { bytesOf } from '../../core/ranges/arrayBytes.js'
import { orderBehind } from '../../core/stream/orderBehind.js'
import { queueFor } from '../../core/stream/stream.js'
import type { StreamQueue } from '../../core/waiting/unmarkedWork.js'
import { Allocation } from '../buffers/allocation.js'
import { DeviceBuffer } from '../buffers/deviceBuffer.js'
import type { CopyTarget, QueueOptions } from '../buffers/deviceTransfers.js'
import { type ElementValue, elementBytes, structBytes } from '../buffers/elements.js'
import { arrayFor, bytesOfElement, type HostArrayOf, nameOfType, requireElementType } from '../buffers/elementType.js'
import { type DTypeOfArray, elementsIn, requireArrayFor } from '../buffers/hostArrays.js'
import { downloadNow, queueDownload, queueUpload, uploadNow } from '../buffers/hostCopy.js'
import { startWith } from '../buffers/newMemory.js'
import { checkSource, checkTarget } from '../buffers/typed.js'
import { type BoxEnd, type BoxSide, type BoxSize, queueBoxCopy } from './boxCopy.js'
import { type Extent, extentKeys, fromKeys, type PitchedOptions, type Place, placeOf, type Region } from './extent.js'
import { Rows } from './rows.js'
import { type StridedRows, stridedAnswer, stridedRows } from './stridedRows.js'

/** Source of a copy to pitched memory: an array of all elements, one array per row, or other memory. */
export type PitchedSource<E extends ElementType> =
  | ElementInputOf<E>
  | HostArrayOf<E>
  | readonly HostArrayOf<E>[]
  | PitchedBuffer<E>
  | MemoryLike

const queueKeys: OptionKeys<QueueOptions> = { stream: true }

/**
 * Device memory for rows in two or three dimensions, with gaps that align each row (`cuMemAllocPitch`, `cudaMalloc3D`).
 * Copies from and to the host skip the gaps.
 *
 * @example
 * using image = PitchedBuffer.allocate(device, 'f32', { width: 640, height: 480 })
 * image.copyFrom(pixels, { stream }) // a Float32Array of 640 * 480
 * kernel.launch({ grid, block, stream }, image, image.pitch)
 */
export class PitchedBuffer<E extends ElementType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'PitchedBuffer'
  /** Type of the elements. */
  readonly dtype: E
  /** Elements per row. */
  readonly width: number
  /** Rows per slice. */
  readonly height: number
  /** Number of slices. */
  readonly depth: number
  /** Distance between rows in bytes. */
  readonly pitch: number
  /** Distance between slices in bytes. */
  readonly slicePitch: number
  readonly #memory: DeviceBuffer<'u8'>
  readonly #place: Place
  readonly #isView: boolean

  private constructor(memory: DeviceBuffer<'u8'>, dtype: E, place: Place, isView = false) {
    requireMade(place, 'PitchedBuffer', 'PitchedBuffer.allocate', 'object')
    super()
    this.dtype = dtype
    this.width = place.width
    this.height = place.height
    this.depth = place.depth
    this.pitch = place.pitch
    this.slicePitch = place.pitch * place.rows
    this.#memory = memory
    this.#place = place
    this.#isView = isView
  }

  /**
   * Allocates uninitialized memory for rows.
   * @throws TypeError, RangeError for an empty extent; StatusError when there is not enough memory
   */
  static allocate<E extends ElementType>(owner: DeviceOrContext, dtype: E, extent: Extent): PitchedBuffer<E> {
    const api = 'PitchedBuffer.allocate'
    return PitchedBuffer.#allocate(contextOf(owner, api), dtype, requireOptions(extent, api, extentKeys, 'extent'), api)
  }

  /** Allocates zeroed memory for rows. Any stream can use it immediately. @throws as {@link allocate} */
  static zeros<E extends ElementType>(owner: DeviceOrContext, dtype: E, extent: Extent): PitchedBuffer<E> {
    const api = 'PitchedBuffer.zeros'
    const context = contextOf(owner, api)
    const buffer = PitchedBuffer.#allocate(context, dtype, requireOptions(extent, api, extentKeys, 'extent'), api)
    startWith(buffer, (stream) => {
      buffer.#rows.fill(context, stream, new DataView(new ArrayBuffer(bytesOfElement(dtype))))
      context._call('streamSynchronize', stream)
    })
    return buffer
  }

  /**
   * Copies an array of all elements, row by row, to new memory. Any stream can use it immediately. `dtype` is the type
   * of the elements that the array's bits represent, or the struct of the objects in a list. Default: the array's own
   * type.
   * @throws TypeError for an array of another type, RangeError for another length; as {@link allocate}
   */
  static from<D extends DType>(
    owner: DeviceOrContext,
    array: TypedArrayOf<D>,
    options: PitchedOptions<D> & { readonly dtype: D },
  ): PitchedBuffer<D>
  static from<S extends CompoundType>(
    owner: DeviceOrContext,
    values: ElementInputOf<S> | Uint8Array,
    options: PitchedOptions<S> & { readonly dtype: S },
  ): PitchedBuffer<S>
  static from<A extends StorageArray>(owner: DeviceOrContext, array: A, options: Extent): PitchedBuffer<DTypeOfArray<A>>
  static from(
    owner: DeviceOrContext,
    array: StorageArray | ArrayLike<object>,
    options: PitchedOptions,
  ): PitchedBuffer<ElementType> {
    const api = 'PitchedBuffer.from'
    const context = contextOf(owner, api)
    const { dtype = dtypeOf(array as StorageArray, api, 'array'), ...extent } = requireOptions(options, api, fromKeys)
    requireElementType(dtype, api)
    const held = structBytes(array, dtype, api, 'array')
    requireArrayFor(held, dtype, api, 'array')
    const buffer = PitchedBuffer.#allocate(context, dtype, extent, api)
    startWith(buffer, (stream) => {
      const count = elementsIn(held, dtype, api, 'array')
      if (count !== buffer.length) throw outOfRange(api, 'array', `of ${buffer.length} elements`, count)
      uploadNow(context, stream, buffer.#rows, held)
    })
    return buffer
  }

  static #allocate<E extends ElementType>(
    context: Context,
    dtype: E,
    { width, height, depth = 1 }: Extent,
    api: string,
  ): PitchedBuffer<E> {
    const { bytes } = requireElementType(dtype, api)
    const most = Math.floor(mostPitch / bytes)
    requireInteger(width, api, 'width', 1, most)
    requireInteger(height, api, 'height', 1)
    requireInteger(depth, api, 'depth', 1)
    const rows = requireInteger(
      height * depth,
      api,
      'height * depth',
      1,
      Math.floor(Number.MAX_SAFE_INTEGER / mostPitch),
    )
    const wanted = { width: width * bytes, height, depth, elementBytes: bytes >= 16 ? 16 : bytes >= 8 ? 8 : 4 }
    const { allocation, pitch } = Allocation.allocatePitched(context, wanted)
    const memory = DeviceBuffer._allocateWith('u8', pitch * rows, api, () => allocation)
    return new PitchedBuffer(memory, dtype, { offset: 0, pitch, rows: height, width, height, depth })
  }

  /** Number of elements of all rows. */
  get length(): number {
    return this.width * this.height * this.depth
  }

  /** Size of all elements in bytes, without gaps. */
  get byteLength(): number {
    return this.length * bytesOfElement(this.dtype)
  }

  /** Device address of the first element, a `CUdeviceptr`. @throws DisposedError */
  get address(): bigint {
    this._requireAlive()
    return this.#memory.address + BigInt(this.#place.offset)
  }

  /** The context whose work uses the memory. */
  get context(): Context {
    return this.#memory.context
  }

  /** The device whose work uses the memory. */
  get device(): Context['device'] {
    return this.#memory.device
  }

  override get disposed(): boolean {
    return this._disposed || this.#memory.disposed
  }

  /**
   * Queues a fill of every element with one value, without changing the gaps (`cuMemsetD2D8Async` …
   * `cuMemsetD2D32Async`).
   * @throws TypeError, RangeError for a value that the element type cannot hold; DisposedError, StatusError
   */
  fill(value: ElementValue<E>, options: QueueOptions = {}): this {
    this.#fill(value, options, 'PitchedBuffer.fill')
    return this
  }

  /** Fills every element with one value and blocks until the fill completes. @throws as {@link fill} */
  fillSync(value: ElementValue<E>, options: QueueOptions = {}): this {
    this.context._call('streamSynchronize', this.#fill(value, options, 'PitchedBuffer.fillSync'))
    return this
  }

  #fill(value: ElementValue<E>, options: QueueOptions, api: string): CUstream {
    const queue = this.#queueFor(options, api)
    const element = elementBytes(this.dtype, value, api, 'value')
    this.#rows.fill(this.context, queue._handle, element)
    keepCaptured(this.context._handle, queue._handle, [this])
    return queue._handle
  }

  /**
   * Queues a copy of the whole `source` (`cuMemcpy3DAsync`, `cuMemcpy3DPeerAsync`). The source is an array of all
   * elements, row by row; one array per row; pitched memory of the same extent, on any device; memory with strides and
   * the same shape; or contiguous memory of as many bytes. Do not change a host array until the copy completes; arrays
   * of rows are read during the call.
   * @throws TypeError for another dtype, RangeError for another length or extent; DisposedError, StatusError
   */
  copyFrom(source: PitchedSource<E>, options: QueueOptions = {}): this {
    const api = 'PitchedBuffer.copyFrom'
    const queue = this.#queueFor(options, api)
    const from = this.#sourceOf(source, api)
    if (ArrayBuffer.isView(from)) queueUpload(this.context, queue, this.#rows, from)
    else this.#copyFromMemory(queue._handle, from, api)
    keepCaptured(this.context._handle, queue._handle, [this, source, from])
    return this
  }

  /** Copies like {@link copyFrom} and blocks until the copy completes. */
  copyFromSync(source: PitchedSource<E>, options: QueueOptions = {}): this {
    const api = 'PitchedBuffer.copyFromSync'
    const queue = this.#queueFor(options, api)
    const from = this.#sourceOf(source, api)
    if (ArrayBuffer.isView(from)) uploadNow(this.context, queue._handle, this.#rows, from)
    else {
      this.#copyFromMemory(queue._handle, from, api)
      this.context._call('streamSynchronize', queue._handle)
    }
    return this
  }

  #sourceOf(
    source: PitchedSource<E>,
    api: string,
  ): ArrayBufferView | MemoryRange | StridedRows | PitchedBuffer<ElementType> {
    const { dtype, width, height, depth } = this
    if (isInstance(source, PitchedBuffer)) {
      const other: PitchedBuffer<ElementType> = source
      if (other.dtype !== dtype) throw wrongType(api, 'source', `of ${nameOfType(dtype)}`, nameOfType(other.dtype))
      if (other.width !== width || other.height !== height || other.depth !== depth) {
        const expected = `of ${width} × ${height} × ${depth} elements (region() takes parts)`
        throw outOfRange(api, 'source', expected, `${other.width} × ${other.height} × ${other.depth}`)
      }
      other._use()
      return other
    }
    const rows = stridedRows(source, this, api, 'source')
    if (rows !== undefined) return rows
    const given: unknown = isArray(source) && ArrayBuffer.isView(source[0]) ? this.#joined(source, api) : source
    const from = checkSource(structBytes(given, dtype, api, 'source'), this, api)
    this._use()
    return from
  }

  /** Joins the arrays of all rows into one array. */
  #joined(rows: readonly unknown[], api: string): ArrayBufferView {
    const { dtype, width, height, depth } = this
    if (rows.length !== height * depth) throw outOfRange(api, 'source', `${height * depth} rows`, rows.length)
    const all = arrayFor(dtype, this.length)
    const into = bytesOf(all)
    for (const [index, row] of rows.entries()) {
      const name = `source[${index}]`
      requireArrayFor(row, dtype, api, name)
      const count = elementsIn(row, dtype, api, name)
      if (count !== width) throw outOfRange(api, name, `a row of ${width} elements`, count)
      into.set(bytesOf(row), index * width * bytesOfElement(dtype))
    }
    return all
  }

  #copyFromMemory(stream: CUstream, source: MemoryRange | StridedRows | PitchedBuffer<ElementType>, api: string): void {
    const size = this._size
    if (isInstance(source, PitchedBuffer)) {
      queueBoxCopy(this.context, stream, this.#end, source.#end, size, api)
      return
    }
    const { range, side: from } = 'side' in source ? source : { range: source, side: this.#without(source) }
    const { deviceOrdinal, context } = range
    orderBehind(stream, this.context.handle, range)
    queueBoxCopy(this.context, stream, this.#end, { side: from, deviceOrdinal, context }, size, api)
  }

  /**
   * Queues a copy of all elements, row by row, into host memory. Resolves with the host memory when the data has
   * arrived.
   * @throws TypeError for an array of another type, RangeError for another length; DisposedError, StatusError
   */
  async copyTo<T extends CopyTarget<E>>(target: T, options: QueueOptions = {}): Promise<T> {
    return this.#download(target, options, 'PitchedBuffer.copyTo')
  }

  #download<T extends CopyTarget<E>>(target: T, options: QueueOptions, api: string): Promise<T> {
    const queue = this.#queueFor(options, api)
    const to = checkTarget(target, this, api)
    keepCaptured(this.context._handle, queue._handle, [this, target, to])
    return queueDownload(this.context, queue, this.#rows, to, target)
  }

  /** Copies all elements into host memory and blocks until the data has arrived. @throws as {@link copyTo} */
  copyToSync<T extends CopyTarget<E>>(target: T, options: QueueOptions = {}): T {
    this.#downloadNow(target, options, 'PitchedBuffer.copyToSync')
    return target
  }

  #downloadNow(target: CopyTarget<E>, options: QueueOptions, api: string): void {
    const queue = this.#queueFor(options, api)
    downloadNow(this.context, queue._handle, this.#rows, checkTarget(target, this, api))
  }

  /**
   * Queues a copy of all elements into other memory: contiguous memory of as many bytes, or memory with strides and the
   * same shape. @throws as {@link copyFrom}
   */
  copyInto(target: MemoryLike, options: QueueOptions = {}): this {
    const api = 'PitchedBuffer.copyInto'
    const queue = this.#queueFor(options, api)
    const { context, _size: size } = this
    const rows = stridedRows(target, this, api, 'target')
    const range = rows?.range ?? toMemoryRange(target, api, 'target')
    const { byteLength, deviceOrdinal, context: owner } = range
    if (range.readOnly === true) throw wrongType(api, 'target', 'memory that may be written', 'read-only memory')
    this._use()
    if (rows === undefined && byteLength !== this.byteLength) {
      throw outOfRange(api, 'target', `of ${this.byteLength} bytes, as many as all rows have`, byteLength)
    }
    orderBehind(queue._handle, context.handle, range)
    const to = rows?.side ?? this.#without(range)
    queueBoxCopy(context, queue._handle, { side: to, deviceOrdinal, context: owner }, this.#end, size, api)
    keepCaptured(context._handle, queue._handle, [this, target])
    return this
  }

  /** Resolves with all elements, row by row, in a new typed array, or as a list of structs. */
  async toArray(options: QueueOptions = {}): Promise<ElementArrayOf<E>> {
    const array = arrayFor(this.dtype, this.length) as HostArrayOf<E>
    return elementsFrom(await this.#download(array, options, 'PitchedBuffer.toArray'), this.dtype)
  }

  /** Reads the elements like {@link toArray} and blocks until they have arrived. */
  toArraySync(options: QueueOptions = {}): ElementArrayOf<E> {
    const array = arrayFor(this.dtype, this.length) as HostArrayOf<E>
    this.#downloadNow(array, options, 'PitchedBuffer.toArraySync')
    return elementsFrom(array, this.dtype)
  }

  /** Resolves with the elements of each row, as arrays over one `ArrayBuffer`. */
  async toRows(options: QueueOptions = {}): Promise<HostArrayOf<E>[]> {
    const all = arrayFor(this.dtype, this.length) as HostArrayOf<E>
    await this.#download(all, options, 'PitchedBuffer.toRows')
    const perRow = (all as unknown as ArrayLike<unknown>).length / (this.height * this.depth)
    const array = all as unknown as Uint8Array
    return Array.from(
      { length: this.height * this.depth },
      (_, row) => array.subarray(row * perRow, (row + 1) * perRow) as unknown as HostArrayOf<E>,
    )
  }

  /** Returns a view of one row, without a copy. @throws RangeError, DisposedError */
  row(y: number, z = 0): DeviceBuffer<E> {
    const api = 'PitchedBuffer.row'
    requireInteger(y, api, 'y', 0, this.height - 1)
    requireInteger(z, api, 'z', 0, this.depth - 1)
    this._use()
    const { offset, pitch, rows } = this.#place
    const byteOffset = offset + (z * rows + y) * pitch
    return DeviceBuffer.view(this.context, this.#memory, this.dtype, { byteOffset, length: this.width })
  }

  /**
   * Returns a view of a part of the memory, without a copy. Disposing of the whole buffer ends its views.
   * @throws RangeError when the region is outside the memory
   *
   * @example
   * image.region({ x: 10, y: 20, width: 100, height: 50 }).fill(0)
   */
  region(region: Region): PitchedBuffer<E> {
    const api = 'PitchedBuffer.region'
    const place = placeOf(region, this.#place, bytesOfElement(this.dtype), api)
    this._use()
    return new PitchedBuffer(this.#memory, this.dtype, place, true)
  }

  /**
   * Answer of the memory protocol: the elements with strides, in two dimensions for a single slice. `DeviceBuffer.view`
   * covers all bytes, including gaps.
   */
  get [memoryProtocol](): MemoryRange {
    return { ...this._span, ...stridedAnswer(this, this.pitch, this.slicePitch) }
  }

  /** @internal For `hasGaps`. */
  get _hasGaps(): true {
    return true
  }

  /** @internal The range from the first byte to the last, including gaps. */
  get _span(): MemoryRange {
    const { width, height, depth } = this._size
    return {
      version: 0,
      address: this.address,
      byteLength: (depth - 1) * this.slicePitch + (height - 1) * this.pitch + width,
      deviceOrdinal: this.context.device.ordinal,
      context: this.context._handle,
    }
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { dtype, width, height, depth, pitch } = this
    return { dtype: nameOfType(dtype), width, height, depth, pitch, device: this.context.device.ordinal }
  }

  /** Frees the memory when the device's work completes. */
  protected release(): void {
    if (!this.#isView) this.#memory.dispose()
  }

  /** @internal @throws DisposedError */
  _use(): void {
    this._requireAlive()
    this.#memory._use()
  }

  get #rows(): Rows {
    return new Rows(this._side, this._size)
  }

  /** @internal */
  get _side(): BoxSide {
    return { address: this.address, pitch: this.pitch, rows: this.#place.rows }
  }

  /** The same rows in contiguous memory. */
  #without({ address, deviceOrdinal }: MemoryRange): BoxSide {
    return { address, pitch: this._size.width, rows: this.height, isHost: deviceOrdinal < 0 }
  }

  get #end(): BoxEnd {
    return { side: this._side, deviceOrdinal: this.context.device.ordinal, context: this.context._handle }
  }

  /** @internal */
  get _size(): BoxSize {
    return { width: this.width * bytesOfElement(this.dtype), height: this.height, depth: this.depth }
  }

  #queueFor(options: QueueOptions, api: string): StreamQueue {
    const { stream } = requireOptions(options, api, queueKeys)
    this._use()
    return queueFor(this.context, stream, api)
  }
}

/** CUDA's maximum distance between rows. */
const mostPitch = 2 ** 31 - 1

function elementsFrom<E extends ElementType>(array: HostArrayOf<E>, dtype: E): ElementArrayOf<E> {
  return (typeof dtype === 'string' ? array : dtype.decode(array as unknown as Uint8Array)) as ElementArrayOf<E>
}
