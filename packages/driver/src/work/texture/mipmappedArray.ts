import {
  CUDA_ARRAY3D_DESCRIPTOR,
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC,
  type CUexternalMemory,
  type CUmipmappedArray,
  cuExternalMemoryGetMappedMipmappedArray,
  cuMipmappedArrayCreate,
  cuMipmappedArrayDestroy,
  cuMipmappedArrayGetLevel,
  cuMipmappedArrayGetMemoryRequirements,
  cuMipmappedArrayGetSparseProperties,
} from '@shoal/cuda-sys/driver'
import {
  isInstance,
  type OptionKeys,
  propertyOf,
  requireInteger,
  requireMade,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { ContextObject, type Destroyer } from '../../core/context/contextObject.js'
import { Resource } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import type { ExternalMemory } from '../external/externalMemory.js'
import { type ArrayOptions, arrayKeys, writeDescriptor } from './arrayDescription.js'
import {
  type ArrayMemoryRequirements,
  type ArraySparseProperties,
  CudaArray,
  readRequirements,
  readSparseProperties,
} from './cudaArray.js'

/** Options of a mipmapped array. The sizes are the sizes of the first level. */
export interface MipmappedArrayOptions extends ArrayOptions {
  /** Number of levels, each half as large as the previous one. Default: as many as possible, down to one texel. */
  readonly levels?: number | undefined
}

/** Position and properties of a mipmapped array in external memory. */
export interface ExternalArrayOptions extends Omit<MipmappedArrayOptions, 'sparse' | 'deferredMapping'> {
  /** Offset in the memory in bytes. Default: 0. */
  readonly byteOffset?: number | undefined
}

const mipmappedKeys: OptionKeys<MipmappedArrayOptions> = { ...arrayKeys, levels: true }
const { sparse: _, deferredMapping: __, ...externalKeys } = { ...mipmappedKeys, byteOffset: true as const }
const destroyer: Destroyer = {
  api: 'cuMipmappedArrayDestroy',
  call: (handle) => cuMipmappedArrayDestroy(handle as CUmipmappedArray),
}

/**
 * An array in several sizes, each half as large as the previous one (`cuMipmappedArrayCreate`). Textures choose the
 * best level, or blend two.
 *
 * @example
 * using array = MipmappedArray.create(device, { width: 256, height: 256, format: 'f32' })
 * array.level(0).copyFrom(pixels, { stream })
 */
export class MipmappedArray extends ContextObject {
  protected readonly kind = 'MipmappedArray'
  /** Number of levels. */
  readonly levels: number
  /** Whether memory is mapped later, tile by tile. */
  readonly sparse: boolean
  /** Whether memory is mapped later, for the whole array. */
  readonly deferredMapping: boolean
  readonly #levels: (CudaArray | undefined)[]

  private constructor(context: Context, handle: bigint, levels: number, options: ArrayOptions, after?: () => void) {
    requireMade(handle, 'MipmappedArray', 'MipmappedArray.create')
    const { width, height = 1, depth = 1, layers = 1 } = options
    // The collector needs only an approximate size, so the format is ignored.
    const byteLength = width * height * depth * layers * 4
    super(context, handle, `A MipmappedArray of ${levels} levels`, { ...destroyer, after }, byteLength)
    this.levels = levels
    this.sparse = options.sparse === true
    this.deferredMapping = options.deferredMapping === true
    this.#levels = new Array(levels).fill(undefined)
  }

  /**
   * Creates a mipmapped array on a device, with uninitialized texels.
   * @throws TypeError, RangeError; StatusError for sizes that the device does not support, or when memory is short
   */
  static create(owner: DeviceOrContext, options: MipmappedArrayOptions): MipmappedArray {
    const api = 'MipmappedArray.create'
    const context = contextOf(owner, api)
    const { levels, ...array } = requireOptions(options, api, mipmappedKeys)
    const { descriptor, count } = describe(array, levels, api)
    const memory = CUDA_ARRAY3D_DESCRIPTOR.allocate(descriptor)
    const out = scratch()
    context._callDriver('cuMipmappedArrayCreate', () => cuMipmappedArrayCreate(out, memory, count))
    return new MipmappedArray(context, out.u64[0] as bigint, count, array)
  }

  /**
   * Maps another library's memory, such as a Vulkan image, as an array (`cuExternalMemoryGetMappedMipmappedArray`). The
   * options must match the image of the other library. The memory is released when all objects that map it are disposed
   * of.
   * @throws TypeError, RangeError; DisposedError; StatusError for an array that does not fit in the memory
   */
  static fromExternal(memory: ExternalMemory, options: ExternalArrayOptions): MipmappedArray {
    const api = 'MipmappedArray.fromExternal'
    requireExternal(memory, api)
    const { byteOffset, levels, ...array } = requireOptions(
      options,
      api,
      externalKeys as OptionKeys<ExternalArrayOptions>,
    )
    const { descriptor: arrayDesc, count: numLevels } = describe(array, levels, api)
    const offset =
      byteOffset === undefined ? 0 : requireInteger(byteOffset, api, 'byteOffset', 0, memory.byteLength - 1)
    const described = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC.allocate({
      offset: BigInt(offset),
      arrayDesc,
      numLevels,
    })
    // Getters of the options may have disposed of the memory.
    const { context, handle, _lifetime: lifetime } = memory
    const out = scratch()
    context._callDriver('cuExternalMemoryGetMappedMipmappedArray', () =>
      cuExternalMemoryGetMappedMipmappedArray(out, handle as CUexternalMemory, described),
    )
    lifetime.addUse()
    return new MipmappedArray(context, out.u64[0] as bigint, numLevels, array, () => lifetime.endUse())
  }

  /** The `CUmipmappedArray`, which is also a `cudaMipmappedArray_t`. @throws DisposedError */
  get handle(): CUmipmappedArray {
    return this._use() as CUmipmappedArray
  }

  /**
   * Returns one level as an array, which exists as long as this object (`cuMipmappedArrayGetLevel`).
   * @throws TypeError, RangeError, DisposedError
   */
  level(index: number): CudaArray {
    const api = 'MipmappedArray.level'
    requireInteger(index, api, 'index', 0, this.levels - 1)
    const { handle } = this
    const known = this.#levels[index]
    if (known?.disposed === false) return known
    const out = scratch()
    this.context._callDriver('cuMipmappedArrayGetLevel', () => cuMipmappedArrayGetLevel(out, handle, index))
    const level = CudaArray._part(this, out.u64[0] as bigint, api)
    this.#levels[index] = level
    return level
  }

  /**
   * Returns the memory requirements, for `deferredMapping` (`cuMipmappedArrayGetMemoryRequirements`).
   * @throws DisposedError; StatusError for an array that has memory
   */
  memoryRequirements(): ArrayMemoryRequirements {
    const { handle, context } = this
    return readRequirements(context, 'cuMipmappedArrayGetMemoryRequirements', (out) =>
      cuMipmappedArrayGetMemoryRequirements(out, handle, context.device.handle),
    )
  }

  /**
   * Returns the tiles of a sparse array (`cuMipmappedArrayGetSparseProperties`). @throws DisposedError; StatusError for
   * other arrays
   */
  sparseProperties(): ArraySparseProperties {
    const { handle } = this
    return readSparseProperties(this.context, 'cuMipmappedArrayGetSparseProperties', (out) =>
      cuMipmappedArrayGetSparseProperties(out, handle),
    )
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { ...super.inspectFacts(), levels: this.levels }
  }
}

/** Encodes the first level's descriptor and the number of levels. @throws TypeError, RangeError */
function describe(array: ArrayOptions, levels: number | undefined, api: string) {
  const descriptor = writeDescriptor(array, api)
  const { width, height = 1, depth = 1, cubemap } = array
  const most = 1 + Math.floor(Math.log2(Math.max(width, cubemap === true ? width : height, depth)))
  return { descriptor, count: levels === undefined ? most : requireInteger(levels, api, 'levels', 1, most) }
}

/** Checks external memory by its properties, because this entry does not load the class. @throws TypeError */
function requireExternal(memory: unknown, api: string): void {
  if (isInstance(memory, Resource) && propertyOf(memory, 'kind') === 'ExternalMemory') return
  throw wrongType(api, 'memory', 'an ExternalMemory', memory)
}
