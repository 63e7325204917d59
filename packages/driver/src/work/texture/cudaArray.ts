import {
  type CUarray,
  CUDA_ARRAY_MEMORY_REQUIREMENTS,
  CUDA_ARRAY_SPARSE_PROPERTIES,
  CUDA_ARRAY3D_DESCRIPTOR,
  type CUstream,
  cuArray3DCreate,
  cuArray3DGetDescriptor,
  cuArrayDestroy,
  cuArrayGetMemoryRequirements,
  cuArrayGetPlane,
  cuArrayGetSparseProperties,
} from '@shoal/cuda-sys/driver'
import type { NativeMemory } from '@shoal/ffi'
import {
  type DType,
  isInstance,
  type MemoryLike,
  requireInstance,
  requireInteger,
  requireMade,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { ContextObject, type Destroyer } from '../../core/context/contextObject.js'
import { scratch } from '../../core/native.js'
import { queueFor } from '../../core/stream/stream.js'
import type { StreamQueue } from '../../core/waiting/unmarkedWork.js'
import { arrayFor } from '../../memory/buffers/elementType.js'
import { PinnedBuffer } from '../../memory/buffers/pinnedBuffer.js'
import {
  ArrayCopy,
  type ArrayCopyOptions,
  type ArrayNodeOptions,
  type ArrayToArrayOptions,
  type TexelArray,
} from './arrayCopy.js'
import {
  type ArrayDescription,
  type ArrayOptions,
  arrayKeys,
  readDescriptor,
  slicesOf,
  writeDescriptor,
} from './arrayDescription.js'
import { type ArrayFormat, planesOf, texelBytes } from './arrayFormat.js'

/** The queue of copies that queue nothing. */
const noQueue: StreamQueue = { _handle: 0n as CUstream, _halves: { low: 0, high: 0 }, _unmarked: undefined }

/** Memory requirements of an array that was created without memory. */
export interface ArrayMemoryRequirements {
  /** Size in bytes. */
  readonly size: number
  /** Alignment in bytes. */
  readonly alignment: number
}

/** The tiles of a sparse array. */
export interface ArraySparseProperties {
  /** Size of a tile in texels. */
  readonly tile: { readonly width: number; readonly height: number; readonly depth: number }
  /** The first level that is smaller than a tile. This level and all later levels are mapped together. */
  readonly mipTailFirstLevel: number
  /** Size of these levels in bytes. */
  readonly mipTailSize: number
  /** Whether all layers share one such tail. */
  readonly singleMipTail: boolean
}

const singleMipTail = 1
const destroyer: Destroyer = { api: 'cuArrayDestroy', call: (handle) => cuArrayDestroy(handle as CUarray) }

/** Source of a copy to an array. */
export type ArraySource = TexelArray | PinnedBuffer<DType> | MemoryLike | CudaArray

/**
 * A CUDA array for textures and surfaces: texels in one to three dimensions, optionally in layers (`cuArray3DCreate`).
 * The layout of the texels is hidden, so copies are the only access from outside.
 *
 * @example
 * using array = CudaArray.create(device, { width: 640, height: 480, format: 'u8', channels: 4 })
 * array.copyFrom(pixels, { stream })
 * using texture = TextureObject.create(array, { filterMode: 'linear', readMode: 'normalizedFloat' })
 */
export class CudaArray extends ContextObject implements ArrayDescription {
  protected readonly kind = 'CudaArray'
  readonly #description: ArrayDescription
  /** The object of which this array is a level or a plane. */
  readonly #whole: ContextObject | undefined

  private constructor(context: Context, handle: bigint, description: ArrayDescription, whole?: ContextObject) {
    requireMade(handle, 'CudaArray', 'CudaArray.create')
    const { width, height } = description
    const byteLength = width * height * slicesOf(description) * texelBytes(description)
    const what = `A CudaArray of ${sizes(description)}`
    super(context, handle, what, whole === undefined ? destroyer : undefined, byteLength)
    this.#description = description
    this.#whole = whole
  }

  /**
   * Creates an array on a device, with uninitialized texels (`cuArray3DCreate`).
   * @throws TypeError, RangeError; StatusError for sizes that the device does not support, or when memory is short
   */
  static create(owner: DeviceOrContext, options: ArrayOptions): CudaArray {
    const api = 'CudaArray.create'
    const context = contextOf(owner, api)
    const descriptor = writeDescriptor(requireOptions(options, api, arrayKeys), api)
    const memory = CUDA_ARRAY3D_DESCRIPTOR.allocate(descriptor)
    const out = scratch()
    context._callDriver('cuArray3DCreate', () => cuArray3DCreate(out, memory))
    const handle = out.u64[0] as bigint
    try {
      return new CudaArray(context, handle, describe(context, handle, api))
    } catch (error) {
      context.run(() => destroyer.call(handle))
      throw error
    }
  }

  /** @internal Wraps a level or a plane of another object and keeps that object alive. */
  static _part(whole: ContextObject, handle: bigint, api: string): CudaArray {
    return new CudaArray(whole.context, handle, describe(whole.context, handle, api), whole)
  }

  /** The `CUarray`, which is also a `cudaArray_t`. @throws DisposedError */
  get handle(): CUarray {
    return this._use() as CUarray
  }

  /** Whether dispose() was called for this array or for the object of which it is a part. */
  override get disposed(): boolean {
    return super.disposed || this.#whole?.disposed === true
  }

  /** @internal */
  override _use(): bigint {
    this.#whole?._use()
    return super._use()
  }

  /** Format of each channel. */
  get format(): ArrayFormat {
    return this.#description.format
  }
  /** Number of channels. */
  get channels(): ArrayDescription['channels'] {
    return this.#description.channels
  }
  get dimensions(): 1 | 2 | 3 {
    return this.#description.dimensions
  }
  /** Elements per row. */
  get width(): number {
    return this.#description.width
  }
  /** Number of rows; 1 for a 1-D array. */
  get height(): number {
    return this.#description.height
  }
  /** Number of slices; 1 unless the array is 3-D. */
  get depth(): number {
    return this.#description.depth
  }
  /** Number of layers or of cubemaps; 1 unless the array is layered. */
  get layers(): number {
    return this.#description.layers
  }
  /** Number of planes of a video image; 0 for other formats. */
  get planes(): number {
    return planesOf(this.format)
  }
  /** Whether the array has layers. */
  get layered(): boolean {
    return this.#description.layered
  }
  /** Whether the layers are faces of cubes. */
  get cubemap(): boolean {
    return this.#description.cubemap
  }
  /** Whether kernels can use the array as a surface. */
  get surface(): boolean {
    return this.#description.surface
  }
  /** Whether kernels can gather texels. */
  get gather(): boolean {
    return this.#description.gather
  }
  /** Whether a graphics library can draw into the array. */
  get colorAttachment(): boolean {
    return this.#description.colorAttachment
  }
  /** Whether memory is mapped later, tile by tile. */
  get sparse(): boolean {
    return this.#description.sparse
  }
  /** Whether memory is mapped later, for the whole array. */
  get deferredMapping(): boolean {
    return this.#description.deferredMapping
  }

  /**
   * Queues a copy of texels from a host array, device memory, or another array (`cuMemcpy3DAsync`).
   *
   * Do not change a host array until the copy completes, as for `DeviceBuffer.copyFrom`. The channels of a texel are
   * adjacent; texels follow row by row, then slices, layers or faces.
   * @throws TypeError for another type, RangeError for another size or a region outside the array; DisposedError,
   * StatusError
   */
  copyFrom(source: ArraySource, options?: ArrayCopyOptions & ArrayToArrayOptions): this {
    const api = 'CudaArray.copyFrom'
    this.#copyFrom(source, new ArrayCopy(this, options, api, queueFor), api)
    return this
  }

  /** Copies like {@link copyFrom} and blocks until the copy completes. */
  copyFromSync(source: ArraySource, options?: ArrayCopyOptions & ArrayToArrayOptions): this {
    const api = 'CudaArray.copyFromSync'
    const copy = new ArrayCopy(this, options, api, queueFor)
    if (isHost(source)) copy.hostNow(copy.hostArray(source, 'source'), true)
    else this.#copyFrom(source, copy, api)
    copy.wait()
    return this
  }

  #copyFrom(source: ArraySource, copy: ArrayCopy, api: string): void {
    if (isInstance(source, CudaArray)) copy.queue(copy.ofArray(source), true)
    else if (isHost(source)) copy.upload(copy.hostArray(source, 'source'))
    else if (typeof source === 'object' && source !== null)
      copy.queue(copy.ofMemory(source as MemoryLike, 'source'), true)
    else throw wrongType(api, 'source', 'a typed array, memory or a CudaArray', source)
  }

  /**
   * Queues a copy of texels to a host array. Resolves with the array when the data has arrived (`cuMemcpy3DAsync`).
   * @throws as {@link copyFrom}
   */
  copyTo<A extends TexelArray | PinnedBuffer<DType>>(target: A, options?: ArrayCopyOptions): Promise<A> {
    const copy = new ArrayCopy(this, options, 'CudaArray.copyTo', queueFor)
    return copy.download(copy.hostArray(target, 'target'), target)
  }

  /** Copies texels to a host array and blocks until the data has arrived. @throws as {@link copyFrom} */
  copyToSync<A extends TexelArray | PinnedBuffer<DType>>(target: A, options?: ArrayCopyOptions): A {
    const copy = new ArrayCopy(this, options, 'CudaArray.copyToSync', queueFor)
    copy.hostNow(copy.hostArray(target, 'target'), false)
    return target
  }

  /** Queues a copy of texels to device memory (`cuMemcpy3DAsync`). @throws as {@link copyFrom} */
  copyToMemory(target: MemoryLike, options?: ArrayCopyOptions): this {
    const copy = new ArrayCopy(this, options, 'CudaArray.copyToMemory', queueFor)
    copy.queue(copy.ofMemory(target, 'target'), false)
    return this
  }

  /** @internal Bytes of a texel. */
  get _texelBytes(): number {
    return texelBytes(this)
  }

  /** @internal Describes a graph node's copy between this array and another object. */
  _describeCopy(other: MemoryLike | CudaArray, isUpload: boolean, options: ArrayNodeOptions, api: string) {
    const copy = new ArrayCopy(this, options, api, () => noQueue)
    const isArray = isInstance(other, CudaArray)
    const end = isArray ? copy.ofArray(other) : copy.ofMemory(other as MemoryLike, isUpload ? 'source' : 'target')
    return { copyCtx: this.context.handle, copyParams: copy.describe(end, isUpload) }
  }

  /** Resolves with all texels, or the texels of a region, in a new array. @throws as {@link copyFrom} */
  toArray(options?: Pick<ArrayCopyOptions, 'stream' | 'region'>): Promise<TexelArray> {
    const copy = new ArrayCopy(this, options, 'CudaArray.toArray', queueFor)
    const target = emptyFor(copy)
    return copy.download(target, target)
  }

  /**
   * Returns one plane of a video image; the plane exists as long as this array (`cuArrayGetPlane`). The first plane of
   * `nv12` contains the brightness; the second plane, of half the size, contains the color.
   * @throws TypeError, RangeError, DisposedError; StatusError for an array without planes
   */
  plane(index: number): CudaArray {
    const api = 'CudaArray.plane'
    requireInteger(index, api, 'index', 0, 0xffff_ffff)
    const { handle } = this
    const out = scratch()
    this.context._callDriver('cuArrayGetPlane', () => cuArrayGetPlane(out, handle, index))
    return CudaArray._part(this, out.u64[0] as bigint, api)
  }

  /**
   * Returns the memory requirements, for `deferredMapping` (`cuArrayGetMemoryRequirements`).
   * @throws DisposedError; StatusError for an array that has memory
   */
  memoryRequirements(): ArrayMemoryRequirements {
    const { handle, context } = this
    return readRequirements(context, 'cuArrayGetMemoryRequirements', (out) =>
      cuArrayGetMemoryRequirements(out, handle, context.device.handle),
    )
  }

  /**
   * Returns the tiles of a sparse array (`cuArrayGetSparseProperties`). @throws DisposedError; StatusError for other
   * arrays
   */
  sparseProperties(): ArraySparseProperties {
    const { handle } = this
    return readSparseProperties(this.context, 'cuArrayGetSparseProperties', (out) =>
      cuArrayGetSparseProperties(out, handle),
    )
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { ...super.inspectFacts(), texels: sizes(this.#description) }
  }
}

/** Returns a checked array. @throws TypeError */
export function requireCudaArray(value: unknown, api: string, name: string): CudaArray {
  return requireInstance<CudaArray>(value, api, name, CudaArray as never)
}

/** @internal Reads a `CUDA_ARRAY_MEMORY_REQUIREMENTS`. */
export function readRequirements(
  context: Context,
  api: string,
  call: (out: NativeMemory) => number,
): ArrayMemoryRequirements {
  const out = scratch()
  context._callDriver(api, () => call(out))
  const { size, alignment } = CUDA_ARRAY_MEMORY_REQUIREMENTS.read(out)
  return { size: Number(size), alignment: Number(alignment) }
}

/** @internal Reads a `CUDA_ARRAY_SPARSE_PROPERTIES`. */
export function readSparseProperties(
  context: Context,
  api: string,
  call: (out: NativeMemory) => number,
): ArraySparseProperties {
  const out = scratch()
  context._callDriver(api, () => call(out))
  const { tileExtent, miptailFirstLevel, miptailSize, flags } = CUDA_ARRAY_SPARSE_PROPERTIES.read(out)
  return {
    tile: { width: tileExtent.width, height: tileExtent.height, depth: tileExtent.depth },
    mipTailFirstLevel: miptailFirstLevel,
    mipTailSize: Number(miptailSize),
    singleMipTail: (flags & singleMipTail) !== 0,
  }
}

function describe(context: Context, handle: bigint, api: string): ArrayDescription {
  return readDescriptor(api, (out) =>
    context._callDriver('cuArray3DGetDescriptor', () => cuArray3DGetDescriptor(out, handle as CUarray)),
  )
}

function isHost(source: unknown): boolean {
  return ArrayBuffer.isView(source) || isInstance(source, PinnedBuffer)
}

function emptyFor({ dtype, byteLength }: ArrayCopy): TexelArray {
  return arrayFor(dtype, byteLength / arrayFor(dtype, 1).byteLength)
}

/** Returns the sizes as text, such as `640 × 480 × 4 u8`. */
export function sizes({ width, height, depth, layers, channels, format, dimensions }: ArrayDescription): string {
  const extents = [width, ...(dimensions > 1 ? [height] : []), ...(dimensions > 2 ? [depth] : [])]
  return `${extents.join(' × ')}${layers > 1 ? `, ${layers} layers,` : ''} of ${channels} × ${format}`
}
