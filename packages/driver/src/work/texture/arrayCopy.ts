import { CUDA_MEMCPY3D, CUmemorytype, cuMemcpy3DAsync } from '@shoal/cuda-sys/driver'
import { addressOf, type StructValue } from '@shoal/ffi'
import {
  type DType,
  type ElementType,
  isDetached,
  isInstance,
  type MemoryLike,
  type MemoryRange,
  type OptionKeys,
  optionalOptions,
  outOfRange,
  requireInteger,
  settledNow,
  wrongType,
} from '@shoal/types'
import { isCapturing, refuseInCapture } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import { keepCaptured } from '../../core/context/keptByCaptures.js'
import { Status } from '../../core/errors.js'
import { byteLengthOf, bytesOf } from '../../core/ranges/arrayBytes.js'
import { pinnedOwnerOf } from '../../core/ranges/pinnedRegistry.js'
import { toSpan } from '../../core/ranges/span.js'
import { orderBehind } from '../../core/stream/orderBehind.js'
import { queueHostCopy, queueUnobservedCopy } from '../../core/waiting/copyWait.js'
import type { StreamQueue } from '../../core/waiting/unmarkedWork.js'
import { copyInSlices } from '../../memory/buffers/copyInSlices.js'
import type { QueueOptions } from '../../memory/buffers/deviceTransfers.js'
import type { HostArrayOf } from '../../memory/buffers/elementType.js'
import { requireArrayFor } from '../../memory/buffers/hostArrays.js'
import { refuseOverlap } from '../../memory/buffers/overlap.js'
import { PinnedBuffer } from '../../memory/buffers/pinnedBuffer.js'
import { StagingPool } from '../../memory/buffers/staging.js'
import { type ArrayDescription, slicesOf } from './arrayDescription.js'
import { dtypeOfFormat, texelBytes } from './arrayFormat.js'

/** A texel of an array. */
export interface ArrayOrigin {
  /** Index of the first element in each row. Default: 0. */
  readonly x?: number | undefined
  /** Index of the first row. Default: 0. */
  readonly y?: number | undefined
  /** Index of the first slice of a 3-D array, layer, or face (six per cubemap). Default: 0. */
  readonly z?: number | undefined
}

/** A box of texels. Default: all texels after the origin. */
export interface ArrayRegion extends ArrayOrigin {
  /** Elements per row. Default: the rest of the row. */
  readonly width?: number | undefined
  /** Number of rows. Default: the remaining rows. */
  readonly height?: number | undefined
  /** Number of slices, layers or faces. Default: all that remain. */
  readonly depth?: number | undefined
}

/** The texels of a copy, and their layout in memory. */
export interface ArrayCopyOptions extends QueueOptions {
  /** Texels of this array. Default: all. */
  readonly region?: ArrayRegion | undefined
  /** Distance between rows of the memory in bytes. Default: rows without gaps. */
  readonly pitch?: number | undefined
  /** Number of rows per slice of the memory. Default: the copied number of rows. */
  readonly rows?: number | undefined
}

/** The texels of a copy between two arrays. */
export interface ArrayToArrayOptions extends QueueOptions {
  /** Texels of this array. Default: all. */
  readonly region?: ArrayRegion | undefined
  /** The first texel in the other array. Default: its first texel. */
  readonly at?: ArrayOrigin | undefined
}

/** Options of copies in graphs: `at` for two arrays, the pitch for an array and memory. */
export type ArrayNodeOptions = Omit<ArrayCopyOptions & ArrayToArrayOptions, 'stream'>

const copyKeys: OptionKeys<ArrayCopyOptions & ArrayToArrayOptions> = {
  stream: true,
  region: true,
  pitch: true,
  rows: true,
  at: true,
}
const originKeys: OptionKeys<ArrayOrigin> = { x: true, y: true, z: true }
const regionKeys: OptionKeys<ArrayRegion> = { ...originKeys, width: true, height: true, depth: true }
/** The driver's maximum distance between rows in bytes. */
const mostPitch = 2 ** 31 - 1

/** One side of a copy, for C. */
export interface End {
  readonly type: CUmemorytype
  readonly address: bigint
  readonly x: number
  readonly y: number
  readonly z: number
  readonly pitch: number
  readonly rows: number
}

/** The parts of an array that copies use. */
export interface CopyArray extends ArrayDescription {
  readonly context: Context
  /** @internal */
  _use(): bigint
}

/** Layout of texels in memory: rows of bytes, possibly with gaps. */
interface Layout {
  readonly pitch: number
  readonly rows: number
  /** Bytes from the first to the last copied byte. */
  readonly span: number
  readonly isPacked: boolean
}

/** A checked copy. */
export class ArrayCopy {
  readonly #array: CopyArray
  readonly #api: string
  readonly #queue: StreamQueue
  readonly #own: End
  readonly #width: number
  readonly #height: number
  readonly #depth: number
  readonly #layout: Layout
  readonly #at: ArrayOrigin | undefined
  /** The object on the other side: an array or memory. */
  #other: unknown
  /** The memory on the other side, with its pending work. */
  #producer: MemoryRange | undefined

  /** Checks the options. @throws TypeError, RangeError, DisposedError */
  constructor(
    array: CopyArray,
    options: (ArrayCopyOptions & ArrayToArrayOptions) | undefined,
    api: string,
    queueOf: (context: Context, stream: QueueOptions['stream'], api: string) => StreamQueue,
  ) {
    const { stream, region = {}, pitch, rows, at } = optionalOptions(options, api, copyKeys)
    const { x, y, z, width, height, depth } = requireRegion(array, region, api)
    const bytes = texelBytes(array)
    if (bytes === 0)
      throw wrongType(
        api,
        'this',
        'an array whose texels the host knows: plane() gives those of pictures',
        array.format,
      )
    this.#array = array
    this.#api = api
    this.#width = width * bytes
    this.#height = height
    this.#depth = depth
    this.#layout = layoutOf(this.#width, height, depth, pitch, rows, api)
    this.#at = at === undefined ? undefined : { ...optionalOptions(at, api, originKeys, 'at') }
    this.#queue = queueOf(array.context, stream, api)
    this.#own = { type: CUmemorytype.CU_MEMORYTYPE_ARRAY, address: array._use(), x: x * bytes, y, z, pitch: 0, rows: 0 }
  }

  /** Type of a channel on the host. */
  get dtype(): DType {
    return dtypeOfFormat(this.#array) as DType
  }

  /** Size of all copied texels in bytes. */
  get byteLength(): number {
    return this.#width * this.#height * this.#depth
  }

  /** Returns the checked host array of a copy, also of page-locked memory. @throws TypeError, RangeError */
  hostArray(value: unknown, name: string): ArrayBufferView {
    const isPinned = isInstance(value, PinnedBuffer)
    const array: unknown = isPinned ? (value as PinnedBuffer<ElementType>).array : value
    requireArrayFor(array, this.dtype, this.#api, name)
    if (isPinned && (value as PinnedBuffer<ElementType>).dtype !== this.dtype) {
      throw wrongType(this.#api, name, `of ${this.dtype}`, (value as PinnedBuffer<ElementType>).dtype)
    }
    if (isDetached(array)) throw wrongType(this.#api, name, 'an array with a buffer', 'one whose buffer was detached')
    this.#requireBytes(byteLengthOf(array), name)
    this.#other = array
    return array
  }

  /** Queues a copy from a host array. */
  upload(source: ArrayBufferView): void {
    const { context } = this.#array
    const pinned = pinnedOwnerOf(source)
    if (isCapturing()) {
      if (pinned === undefined) refuseInCapture(this.#api, 'an ordinary array')
      this.#run(this.#own, this.#host(addressOf(source)))
      return
    }
    // No caller awaits this copy. The next wait on the stream reports an error.
    if (pinned !== undefined) {
      pinned._hold()
      const copy = (): void => this.#run(this.#own, this.#host(addressOf(source)))
      queueUnobservedCopy(context, this.#queue, copy, () => pinned._unhold())
    } else {
      const pool = StagingPool.of(context)
      const block = pool.take(this.byteLength)
      const copy = (): void => {
        this.#eachRow((packed, at, length) => block.bytes.set(bytesOf(source).subarray(at, at + length), packed))
        this.#run(this.#own, this.#packed(block.address))
      }
      queueUnobservedCopy(context, this.#queue, copy, () => pool.give(block))
    }
  }

  /** Queues a copy to a host array. Resolves with `result` when the data has arrived. */
  download<T>(target: ArrayBufferView, result: T): Promise<T> {
    const { context } = this.#array
    const pinned = pinnedOwnerOf(target)
    const direct = (): void => this.#run(this.#host(addressOf(target)), this.#own)
    if (isCapturing()) {
      if (pinned === undefined) refuseInCapture(this.#api, 'an ordinary array')
      direct()
      return settledNow(result)
    }
    if (pinned !== undefined) {
      pinned._hold()
      const arrive = (status: number): T => {
        requireArrived(context, status)
        return result
      }
      return queueHostCopy(context, this.#queue, direct, () => pinned._unhold(), arrive)
    }
    const pool = StagingPool.of(context)
    const block = pool.take(this.byteLength)
    const arrive = async (status: number): Promise<T> => {
      requireArrived(context, status)
      await this.#unpack(target, block.bytes)
      return result
    }
    const copy = (): void => this.#run(this.#packed(block.address), this.#own)
    return queueHostCopy(context, this.#queue, copy, () => pool.give(block), arrive)
  }

  /** Copies from or to a host array and blocks until the copy completes. */
  hostNow(array: ArrayBufferView, isUpload: boolean): void {
    this.queue(this.#host(addressOf(array)), isUpload)
    this.wait()
  }

  /** Returns device memory as the other side. @throws TypeError, RangeError, DisposedError */
  ofMemory(value: MemoryLike, name: string): End {
    const range = toSpan(value, this.#api, name)
    const { address, byteLength, dtype, deviceOrdinal } = range
    this.#producer = range
    this.#other = value
    if (dtype !== undefined && dtype !== this.dtype) {
      throw wrongType(this.#api, name, `of ${this.dtype} (reinterpret() it)`, dtype)
    }
    const { ordinal } = this.#array.context.device
    if (deviceOrdinal >= 0 && deviceOrdinal !== ordinal) {
      throw wrongType(
        this.#api,
        name,
        `memory of device ${ordinal}, where the array is`,
        `memory of device ${deviceOrdinal}`,
      )
    }
    this.#requireBytes(byteLength, name)
    const { pitch, rows } = this.#layout
    return { type: CUmemorytype.CU_MEMORYTYPE_UNIFIED, address, x: 0, y: 0, z: 0, pitch, rows }
  }

  /** Returns another array as the source. @throws TypeError, RangeError, DisposedError */
  ofArray(source: CopyArray): End {
    const { pitch, isPacked } = this.#layout
    if (!isPacked) throw outOfRange(this.#api, 'pitch', 'left out, like rows, where both are arrays', pitch)
    const bytes = texelBytes(source)
    if (source.format !== this.#array.format || source.channels !== this.#array.channels) {
      const expected = `an array of ${this.#array.channels} × ${this.#array.format}`
      throw wrongType(this.#api, 'source', expected, `one of ${source.channels} × ${source.format}`)
    }
    if (source.context._handle !== this.#array.context._handle) {
      throw wrongType(this.#api, 'source', `an array of device ${this.#array.context.device.ordinal}`, source)
    }
    const width = this.#width / bytes
    const region = { ...this.#at, width, height: this.#height, depth: this.#depth }
    const { x, y, z } = requireRegion(source, region, this.#api, 'at')
    const type = CUmemorytype.CU_MEMORYTYPE_ARRAY
    this.#other = source
    const end: End = { type, address: source._use(), x: x * bytes, y, z, pitch: 0, rows: 0 }
    if (this.#overlaps(end)) refuseOverlap(this.#api, 'source')
    return end
  }

  /** Whether a copy within this array would read texels that it writes. */
  #overlaps({ address, x, y, z }: End): boolean {
    const own = this.#own
    const [byX, byY, byZ] = [Math.abs(x - own.x), Math.abs(y - own.y), Math.abs(z - own.z)]
    const isElsewhere = byX + byY + byZ > 0
    return address === own.address && isElsewhere && byX < this.#width && byY < this.#height && byZ < this.#depth
  }

  /** Queues a copy from or to the other side. */
  queue(other: End, isUpload: boolean): void {
    if (this.#producer !== undefined) orderBehind(this.#queue._handle, this.#array.context.handle, this.#producer)
    if (isUpload) this.#run(this.#own, other)
    else this.#run(other, this.#own)
  }

  /** Returns the copy's parameters for C. */
  describe(other: End, isUpload: boolean): StructValue<CUDA_MEMCPY3D> {
    return isUpload ? this.#parameters(this.#own, other) : this.#parameters(other, this.#own)
  }

  /** Blocks until the stream's work completes. */
  wait(): void {
    this.#array.context._call('streamSynchronize', this.#queue._handle)
  }

  #host(address: bigint): End {
    const { pitch, rows } = this.#layout
    return { type: CUmemorytype.CU_MEMORYTYPE_HOST, address, x: 0, y: 0, z: 0, pitch, rows }
  }

  #packed(address: bigint): End {
    return { ...this.#host(address), pitch: this.#width, rows: this.#height }
  }

  /** Calls `piece` for each contiguous part, with its position in packed bytes and in the program's memory. */
  #eachRow(piece: (packed: number, at: number, length: number) => void): void {
    const { pitch, rows, isPacked } = this.#layout
    if (isPacked) {
      piece(0, 0, this.byteLength)
      return
    }
    for (let index = 0; index < this.#height * this.#depth; index += 1) {
      const slice = Math.floor(index / this.#height)
      piece(index * this.#width, (slice * rows + (index % this.#height)) * pitch, this.#width)
    }
  }

  async #unpack(target: ArrayBufferView, packed: Uint8Array): Promise<void> {
    const bytes = bytesOf(target)
    const what = `${this.#api}: target`
    if (this.#layout.isPacked) return copyInSlices(bytes, packed.subarray(0, this.byteLength), what)
    if (isDetached(target))
      throw wrongType(this.#api, 'target', 'an array with a buffer', 'one whose buffer was detached')
    this.#eachRow((from, at, length) => bytes.set(packed.subarray(from, from + length), at))
  }

  #requireBytes(byteLength: number, name: string): void {
    if (this.#at !== undefined) throw outOfRange(this.#api, 'at', `left out where ${name} is no array`, this.#at)
    const { span, isPacked } = this.#layout
    if (isPacked ? byteLength === span : byteLength >= span) return
    const expected = isPacked ? `of ${span} bytes, as the texels are (region takes parts)` : `of at least ${span} bytes`
    throw outOfRange(this.#api, name, expected, byteLength)
  }

  #run(to: End, from: End): void {
    const memory = CUDA_MEMCPY3D.allocate(this.#parameters(to, from))
    const { context } = this.#array
    context._callDriver('cuMemcpy3DAsync', () => cuMemcpy3DAsync(memory, this.#queue._handle))
    keepCaptured(context._handle, this.#queue._handle, [this.#array, this.#other])
  }

  #parameters(to: End, from: End): StructValue<CUDA_MEMCPY3D> {
    // Getters of the other side may have disposed of the array.
    this.#array._use()
    const [host, array] = [CUmemorytype.CU_MEMORYTYPE_HOST, CUmemorytype.CU_MEMORYTYPE_ARRAY]
    const addressFor = (end: End, type: CUmemorytype): bigint => (end.type === type ? end.address : 0n)
    const deviceFor = (end: End): bigint => (end.type === host || end.type === array ? 0n : end.address)
    return {
      srcXInBytes: BigInt(from.x),
      srcY: BigInt(from.y),
      srcZ: BigInt(from.z),
      srcMemoryType: from.type,
      srcHost: addressFor(from, host),
      srcDevice: deviceFor(from),
      srcArray: addressFor(from, array),
      srcPitch: BigInt(from.pitch),
      srcHeight: BigInt(from.rows),
      dstXInBytes: BigInt(to.x),
      dstY: BigInt(to.y),
      dstZ: BigInt(to.z),
      dstMemoryType: to.type,
      dstHost: addressFor(to, host),
      dstDevice: deviceFor(to),
      dstArray: addressFor(to, array),
      dstPitch: BigInt(to.pitch),
      dstHeight: BigInt(to.rows),
      WidthInBytes: BigInt(this.#width),
      Height: BigInt(this.#height),
      Depth: BigInt(this.#depth),
    }
  }
}

/** The typed array for texels of a format. */
export type TexelArray = HostArrayOf<DType>

function layoutOf(
  width: number,
  height: number,
  depth: number,
  pitch: number | undefined,
  rows: number | undefined,
  api: string,
): Layout {
  const step = pitch === undefined ? width : requireInteger(pitch, api, 'pitch', width, mostPitch)
  const count = rows === undefined ? height : requireInteger(rows, api, 'rows', height, mostPitch)
  const span = ((depth - 1) * count + height - 1) * step + width
  return { pitch: step, rows: count, span, isPacked: pitch === undefined && rows === undefined }
}

function requireRegion(
  array: ArrayDescription,
  region: ArrayRegion,
  api: string,
  name = 'region',
): Required<{ [K in keyof ArrayRegion]: number }> {
  const given = optionalOptions<ArrayRegion>(region, api, regionKeys, name)
  const axis = (
    origin: 'x' | 'y' | 'z',
    extent: 'width' | 'height' | 'depth',
    size: number,
  ): [start: number, length: number] => {
    const { [origin]: start = 0, [extent]: length } = given
    requireInteger(start, api, `${name}.${origin}`, 0, size - 1)
    if (length === undefined) return [start, size - start]
    const most = size - start
    // The size of a copy is fixed here, so the error names the position in the other array.
    if (name === 'at' && length > most) throw outOfRange(api, `at.${origin}`, `at most ${size - length}`, start)
    return [start, requireInteger(length, api, `${name}.${extent}`, 1, most)]
  }
  const [x, width] = axis('x', 'width', array.width)
  const [y, height] = axis('y', 'height', array.height)
  const [z, depth] = axis('z', 'depth', slicesOf(array))
  return { x, y, z, width, height, depth }
}

function requireArrived({ _cuda: cuda }: Context, status: number): void {
  if (status !== Status.success) throw cuda.error(status, 'cuEventQuery', 'while copyTo was waiting')
}
