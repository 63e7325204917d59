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

/** What a mipmapped array is made like: sizes are those of its first level. */
export interface MipmappedArrayOptions extends ArrayOptions {
  /** Levels, each half as large as the one before. Default: as many as there can be, down to one texel. */
  readonly levels?: number | undefined
}

/** Where in external memory a mipmapped array lies, and what it is like. */
export interface ExternalArrayOptions extends Omit<MipmappedArrayOptions, 'sparse' | 'deferredMapping'> {
  /** Bytes from the start of the memory. Default: 0. */
  readonly byteOffset?: number | undefined
}

const mipmappedKeys: OptionKeys<MipmappedArrayOptions> = { ...arrayKeys, levels: true }
const { sparse: _, deferredMapping: __, ...externalKeys } = { ...mipmappedKeys, byteOffset: true as const }
const destroyer: Destroyer = {
  api: 'cuMipmappedArrayDestroy',
  call: (handle) => cuMipmappedArrayDestroy(handle as CUmipmappedArray),
}

/**
 * An array in several sizes, each half of the one before in every dimension (`cuMipmappedArrayCreate`). Textures pick
 * the level that fits, or blend two.
 *
 * @example
 * using array = MipmappedArray.create(device, { width: 256, height: 256, format: 'f32' })
 * array.level(0).copyFrom(pixels, { stream })
 */
export class MipmappedArray extends ContextObject {
  protected readonly kind = 'MipmappedArray'
  /** How many levels it has. */
  readonly levels: number
  /** Whether its memory is bound to it later, in parts. */
  readonly sparse: boolean
  /** Whether its memory is bound to it later, as a whole. */
  readonly deferredMapping: boolean
  readonly #levels: (CudaArray | undefined)[]

  private constructor(context: Context, handle: bigint, levels: number, options: ArrayOptions, after?: () => void) {
    requireMade(handle, 'MipmappedArray', 'MipmappedArray.create')
    const { width, height = 1, depth = 1, layers = 1 } = options
    // The formats of a texel hardly matter here: the collector shall know how large an array is, not how large exactly.
    const byteLength = width * height * depth * layers * 4
    super(context, handle, `A MipmappedArray of ${levels} levels`, { ...destroyer, after }, byteLength)
    this.levels = levels
    this.sparse = options.sparse === true
    this.deferredMapping = options.deferredMapping === true
    this.#levels = new Array(levels).fill(undefined)
  }

  /**
   * A mipmapped array of a device. Its texels are whatever was there before.
   * @throws TypeError, RangeError; StatusError for sizes that the device has not, or when there is not enough memory
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
   * A mipmapped array in memory that another library made (`cuExternalMemoryGetMappedMipmappedArray`), such as an image
   * of Vulkan. It has to be described as it was made there. The memory is given back once this and all else that maps
   * it is gone.
   * @throws TypeError, RangeError; DisposedError; StatusError for what does not lie within the memory
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
    // Getters of the options may have disposed of it.
    const { context, handle, _lifetime: lifetime } = memory
    const out = scratch()
    context._callDriver('cuExternalMemoryGetMappedMipmappedArray', () =>
      cuExternalMemoryGetMappedMipmappedArray(out, handle as CUexternalMemory, described),
    )
    lifetime.addUse()
    return new MipmappedArray(context, out.u64[0] as bigint, numLevels, array, () => lifetime.endUse())
  }

  /** The `CUmipmappedArray`, which is a `cudaMipmappedArray_t` as well. @throws DisposedError */
  get handle(): CUmipmappedArray {
    return this._use() as CUmipmappedArray
  }

  /**
   * One of its levels as an array, which is there as long as this is (`cuMipmappedArrayGetLevel`).
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
   * The memory that it needs (`cuMipmappedArrayGetMemoryRequirements`), for one of `deferredMapping`.
   * @throws DisposedError; StatusError where it has memory
   */
  memoryRequirements(): ArrayMemoryRequirements {
    const { handle, context } = this
    return readRequirements(context, 'cuMipmappedArrayGetMemoryRequirements', (out) =>
      cuMipmappedArrayGetMemoryRequirements(out, handle, context.device.handle),
    )
  }

  /** Its tiles (`cuMipmappedArrayGetSparseProperties`). @throws DisposedError; StatusError where it is not sparse */
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

/** The descriptor of the first level, and how many there are. @throws TypeError, RangeError */
function describe(array: ArrayOptions, levels: number | undefined, api: string) {
  const descriptor = writeDescriptor(array, api)
  const { width, height = 1, depth = 1, cubemap } = array
  const most = 1 + Math.floor(Math.log2(Math.max(width, cubemap === true ? width : height, depth)))
  return { descriptor, count: levels === undefined ? most : requireInteger(levels, api, 'levels', 1, most) }
}

/** By what it has: this entry does not load its class. @throws TypeError */
function requireExternal(memory: unknown, api: string): void {
  if (isInstance(memory, Resource) && propertyOf(memory, 'kind') === 'ExternalMemory') return
  throw wrongType(api, 'memory', 'an ExternalMemory', memory)
}
