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

/** For what queues nothing. */
const noQueue: StreamQueue = { _handle: 0n as CUstream, _halves: { low: 0, high: 0 }, _unmarked: undefined }

/** Memory that an array without any needs, to be mapped. */
export interface ArrayMemoryRequirements {
  /** In bytes. */
  readonly size: number
  /** In bytes. */
  readonly alignment: number
}

/** How a sparse array is divided into tiles that memory is mapped to. */
export interface ArraySparseProperties {
  /** Texels of a tile. */
  readonly tile: { readonly width: number; readonly height: number; readonly depth: number }
  /** The first level that is smaller than a tile: it and those after it are mapped together. */
  readonly mipTailFirstLevel: number
  /** Bytes of those. */
  readonly mipTailSize: number
  /** Whether all layers have one such tail. */
  readonly singleMipTail: boolean
}

const singleMipTail = 1
const destroyer: Destroyer = { api: 'cuArrayDestroy', call: (handle) => cuArrayDestroy(handle as CUarray) }

/** What texels are copied from. */
export type ArraySource = TexelArray | PinnedBuffer<DType> | MemoryLike | CudaArray

/**
 * A CUDA array: texels of one, two or three dimensions, perhaps in layers, which textures and surfaces look into
 * (`cuArray3DCreate`). Where the texels lie nobody knows: they are copied in and out.
 *
 * @example
 * using array = CudaArray.create(device, { width: 640, height: 480, format: 'u8', channels: 4 })
 * array.copyFrom(pixels, { stream })
 * using texture = TextureObject.create(array, { filterMode: 'linear', readMode: 'normalizedFloat' })
 */
export class CudaArray extends ContextObject implements ArrayDescription {
  protected readonly kind = 'CudaArray'
  readonly #description: ArrayDescription
  /** What it is a level or a plane of. */
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
   * An array of a device (`cuArray3DCreate`). Its texels are whatever was there before.
   * @throws TypeError, RangeError; StatusError for sizes that the device has not, or when there is not enough memory
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

  /** @internal A level or a plane of something, which keeps it. */
  static _part(whole: ContextObject, handle: bigint, api: string): CudaArray {
    return new CudaArray(whole.context, handle, describe(whole.context, handle, api), whole)
  }

  /** The `CUarray`, which is a `cudaArray_t` as well. @throws DisposedError */
  get handle(): CUarray {
    return this._use() as CUarray
  }

  /** Whether dispose() was called, of this or of what it is a part of. */
  override get disposed(): boolean {
    return super.disposed || this.#whole?.disposed === true
  }

  /** @internal */
  override _use(): bigint {
    this.#whole?._use()
    return super._use()
  }

  /** The format of each channel. */
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
  /** Elements of a row. */
  get width(): number {
    return this.#description.width
  }
  /** 1 for a 1-D array. */
  get height(): number {
    return this.#description.height
  }
  /** 1 for what is not 3-D. */
  get depth(): number {
    return this.#description.depth
  }
  /** Layers, of cubemaps their number; 1 for what is not layered. */
  get layers(): number {
    return this.#description.layers
  }
  /** Planes of a picture; 0 for all else. */
  get planes(): number {
    return planesOf(this.format)
  }
  /** Whether it has layers. */
  get layered(): boolean {
    return this.#description.layered
  }
  /** Whether its layers are the sides of cubes. */
  get cubemap(): boolean {
    return this.#description.cubemap
  }
  /** Whether kernels may use it as a surface. */
  get surface(): boolean {
    return this.#description.surface
  }
  /** Whether kernels may gather texels of it. */
  get gather(): boolean {
    return this.#description.gather
  }
  /** Whether graphics may draw into it. */
  get colorAttachment(): boolean {
    return this.#description.colorAttachment
  }
  /** Whether its memory is bound to it later, in parts. */
  get sparse(): boolean {
    return this.#description.sparse
  }
  /** Whether its memory is bound to it later, as a whole. */
  get deferredMapping(): boolean {
    return this.#description.deferredMapping
  }

  /**
   * Queues a copy of texels from an array of the host, from memory of the device, or from another array
   * (`cuMemcpy3DAsync`). A host array must stay as it is until the copy has ended, as for `DeviceBuffer.copyFrom`. All
   * channels of a texel lie side by side, then follow the texels of a row, the rows of a slice, and the slices, layers
   * or faces.
   * @throws TypeError for another type, RangeError for another size or a region beyond the array; DisposedError,
   * StatusError
   */
  copyFrom(source: ArraySource, options?: ArrayCopyOptions & ArrayToArrayOptions): this {
    const api = 'CudaArray.copyFrom'
    this.#copyFrom(source, new ArrayCopy(this, options, api, queueFor), api)
    return this
  }

  /** Like {@link copyFrom}, and blocks until the copy has ended. */
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
   * Queues a copy of texels to an array of the host, and resolves with it when they are there (`cuMemcpy3DAsync`).
   * @throws as {@link copyFrom}
   */
  copyTo<A extends TexelArray | PinnedBuffer<DType>>(target: A, options?: ArrayCopyOptions): Promise<A> {
    const copy = new ArrayCopy(this, options, 'CudaArray.copyTo', queueFor)
    return copy.download(copy.hostArray(target, 'target'), target)
  }

  /** Copies texels to an array of the host, and blocks until they are there. @throws as {@link copyFrom} */
  copyToSync<A extends TexelArray | PinnedBuffer<DType>>(target: A, options?: ArrayCopyOptions): A {
    const copy = new ArrayCopy(this, options, 'CudaArray.copyToSync', queueFor)
    copy.hostNow(copy.hostArray(target, 'target'), false)
    return target
  }

  /** Queues a copy of texels to memory of the device (`cuMemcpy3DAsync`). @throws as {@link copyFrom} */
  copyToMemory(target: MemoryLike, options?: ArrayCopyOptions): this {
    const copy = new ArrayCopy(this, options, 'CudaArray.copyToMemory', queueFor)
    copy.queue(copy.ofMemory(target, 'target'), false)
    return this
  }

  /** @internal Bytes of a texel. */
  get _texelBytes(): number {
    return texelBytes(this)
  }

  /** @internal What a node of a graph copies: from the other one to this array, or the other way round. */
  _describeCopy(other: MemoryLike | CudaArray, isUpload: boolean, options: ArrayNodeOptions, api: string) {
    const copy = new ArrayCopy(this, options, api, () => noQueue)
    const isArray = isInstance(other, CudaArray)
    const end = isArray ? copy.ofArray(other) : copy.ofMemory(other as MemoryLike, isUpload ? 'source' : 'target')
    return { copyCtx: this.context.handle, copyParams: copy.describe(end, isUpload) }
  }

  /** The texels, or those of a region, in a new array. @throws as {@link copyFrom} */
  toArray(options?: Pick<ArrayCopyOptions, 'stream' | 'region'>): Promise<TexelArray> {
    const copy = new ArrayCopy(this, options, 'CudaArray.toArray', queueFor)
    const target = emptyFor(copy)
    return copy.download(target, target)
  }

  /**
   * One plane of a picture: `nv12` has brightness in the first, and colours, of half the size, in the second. It is
   * there as long as this array is (`cuArrayGetPlane`).
   * @throws TypeError, RangeError, DisposedError; StatusError where it has no planes
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
   * The memory that it needs (`cuArrayGetMemoryRequirements`), for one of `deferredMapping`.
   * @throws DisposedError; StatusError where it has memory
   */
  memoryRequirements(): ArrayMemoryRequirements {
    const { handle, context } = this
    return readRequirements(context, 'cuArrayGetMemoryRequirements', (out) =>
      cuArrayGetMemoryRequirements(out, handle, context.device.handle),
    )
  }

  /** Its tiles (`cuArrayGetSparseProperties`). @throws DisposedError; StatusError where it is not sparse */
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

/** @throws TypeError */
export function requireCudaArray(value: unknown, api: string, name: string): CudaArray {
  return requireInstance<CudaArray>(value, api, name, CudaArray as never)
}

/** @internal Asks for a `CUDA_ARRAY_MEMORY_REQUIREMENTS`. */
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

/** @internal Asks for a `CUDA_ARRAY_SPARSE_PROPERTIES`. */
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

/** `640 × 480 × 4 u8`. */
export function sizes({ width, height, depth, layers, channels, format, dimensions }: ArrayDescription): string {
  const extents = [width, ...(dimensions > 1 ? [height] : []), ...(dimensions > 2 ? [depth] : [])]
  return `${extents.join(' × ')}${layers > 1 ? `, ${layers} layers,` : ''} of ${channels} × ${format}`
}
