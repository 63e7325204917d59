import {
  CUtensorMapDataType,
  CUtensorMapFloatOOBfill,
  CUtensorMapIm2ColWideMode,
  CUtensorMapInterleave,
  CUtensorMapL2promotion,
  CUtensorMapSwizzle,
} from '@shoal/cuda-sys/driver'
import {
  isInstance,
  type MemoryLike,
  type MemoryRange,
  type OptionKeys,
  outOfRange,
  requireInteger,
  requireKeyOf,
  requireList,
} from '@shoal/types'
import { toSpan } from '../../core/ranges/span.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'

const type = CUtensorMapDataType
interface TypeFacts {
  readonly code: CUtensorMapDataType
  /** Bits of an element. */
  readonly bits: number
  readonly isFloat?: true
  /** The first dimension's size must be a multiple of this. */
  readonly multiple?: number
  readonly alignment?: number
}

const types = {
  u8: { code: type.CU_TENSOR_MAP_DATA_TYPE_UINT8, bits: 8 },
  u16: { code: type.CU_TENSOR_MAP_DATA_TYPE_UINT16, bits: 16 },
  u32: { code: type.CU_TENSOR_MAP_DATA_TYPE_UINT32, bits: 32 },
  i32: { code: type.CU_TENSOR_MAP_DATA_TYPE_INT32, bits: 32 },
  u64: { code: type.CU_TENSOR_MAP_DATA_TYPE_UINT64, bits: 64 },
  i64: { code: type.CU_TENSOR_MAP_DATA_TYPE_INT64, bits: 64 },
  f16: { code: type.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, bits: 16, isFloat: true },
  bf16: { code: type.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, bits: 16, isFloat: true },
  f32: { code: type.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, bits: 32, isFloat: true },
  'f32-ftz': { code: type.CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, bits: 32, isFloat: true },
  tf32: { code: type.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, bits: 32, isFloat: true },
  'tf32-ftz': { code: type.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, bits: 32, isFloat: true },
  f64: { code: type.CU_TENSOR_MAP_DATA_TYPE_FLOAT64, bits: 64, isFloat: true },
  'u4x16-align8': { code: type.CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, bits: 4, multiple: 2 },
  'u4x16-align16': { code: type.CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, bits: 4, multiple: 128, alignment: 32 },
  'u6x16-align16': { code: type.CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, bits: 6, multiple: 128, alignment: 32 },
} as const satisfies Record<string, TypeFacts>

/**
 * Element types of a tensor map. `-ftz` flushes subnormal numbers to zero, `tf32` rounds. Packed types hold 16 numbers
 * of 4 or 6 bits in 8 or 16 bytes.
 */
export type TensorMapDType = keyof typeof types

const interleaves = {
  none: CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
  '16B': CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_16B,
  '32B': CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_32B,
} as const
const swizzles = {
  none: CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
  '32B': CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_32B,
  '64B': CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B,
  '128B': CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
  '128B-atom32B': CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
  '128B-atom32B-flip8B': CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
  '128B-atom64B': CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
} as const
const promotions = {
  none: CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
  '64B': CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
  '128B': CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
  '256B': CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
} as const
const fills = {
  zeros: CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
  nan: CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
} as const
export const wideModes = {
  w: CUtensorMapIm2ColWideMode.CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
  w128: CUtensorMapIm2ColWideMode.CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
} as const

/** Common options of tensor maps. The first dimension is the innermost. */
export interface TensorMapOptions {
  /** Type of the elements. Default: the memory's dtype. */
  readonly dtype?: TensorMapDType | undefined
  /** Number of elements in each of 1 to 5 dimensions, innermost first. */
  readonly dimensions: readonly number[]
  /** Distances in bytes in each dimension except the innermost. Default: without gaps. */
  readonly strides?: readonly number[] | undefined
  /** Steps between used elements in each dimension, from 1 to 8. Default: 1. */
  readonly elementStrides?: readonly number[] | undefined
  /** Interleaving of channels, for three or more dimensions. Default: `'none'`. */
  readonly interleave?: keyof typeof interleaves | undefined
  /** Swizzling of rows in shared memory, which avoids bank conflicts. Default: `'none'`. */
  readonly swizzle?: keyof typeof swizzles | undefined
  /** Promotion in the L2 cache. Default: `'none'`. */
  readonly l2Promotion?: keyof typeof promotions | undefined
  /** Value of elements outside the tensor; `nan` is for floats only. Default: `'zeros'`. */
  readonly outOfBoundsFill?: keyof typeof fills | undefined
}

/** Options of a tensor that is copied in boxes. */
export interface TiledOptions extends TensorMapOptions {
  /** Elements of a box in each dimension, from 1 to 256. */
  readonly box: readonly number[]
}

/** Options of images whose pixels are copied in the order in which a filter visits them. */
interface PixelOptions extends TensorMapOptions {
  /** Number of channels per pixel, from 1 to 256. */
  readonly channelsPerPixel: number
  /** Number of pixels per column, from 1 to 1024. */
  readonly pixelsPerColumn: number
}

/**
 * Options of images for convolutions. The dimensions are channels, width, optionally height and depth, and number of
 * images.
 */
export interface Im2colOptions extends PixelOptions {
  /** Lower corner of the pixel box, in each dimension except the first and the last. */
  readonly lowerCorner: readonly number[]
  /** Upper corner of the pixel box, in each dimension except the first and the last. */
  readonly upperCorner: readonly number[]
}

/** Options of images for convolutions with a box that has only a width, for compute capability 10.0 and later. */
export interface Im2colWideOptions extends PixelOptions {
  /** Lower corner of the box, an offset in W. */
  readonly lowerCornerWidth: number
  /** Upper corner of the box, an offset in W. */
  readonly upperCornerWidth: number
  /** Mode of the width. Default: `'w'`. */
  readonly mode?: keyof typeof wideModes | undefined
}

const commonKeys: OptionKeys<TensorMapOptions> = {
  dtype: true,
  dimensions: true,
  strides: true,
  elementStrides: true,
  interleave: true,
  swizzle: true,
  l2Promotion: true,
  outOfBoundsFill: true,
}
const pixelKeys = { ...commonKeys, channelsPerPixel: true, pixelsPerColumn: true } as const
export const tiledKeys: OptionKeys<TiledOptions> = { ...commonKeys, box: true }
export const im2colKeys: OptionKeys<Im2colOptions> = { ...pixelKeys, lowerCorner: true, upperCorner: true }
export const wideKeys: OptionKeys<Im2colWideOptions> = {
  ...pixelKeys,
  lowerCornerWidth: true,
  upperCornerWidth: true,
  mode: true,
}

const mostDimensions = 5
const largestDimension = 2 ** 32
const endOfStrides = 2 ** 40
export const mostBox = 256
const mostElementStride = 8
const mostChannels = 256
const mostPixels = 1024
/** Limits of the corners' absolute values, for 3, 4 and 5 dimensions. */
export const cornerLimits = [2 ** 15, 2 ** 7, 2 ** 4] as const
/** Maximum bytes per row of a swizzled box. */
const swizzledRow = { none: Number.POSITIVE_INFINITY, '32B': 32, '64B': 64 } as const

/** Checked {@link TensorMapOptions}, encoded for C. */
export interface Checked {
  readonly range: MemoryRange
  readonly dtype: TensorMapDType
  readonly facts: TypeFacts
  readonly rank: number
  readonly dimensions: BigUint64Array
  readonly strides: BigUint64Array
  readonly elementStrides: Uint32Array
  readonly interleave: keyof typeof interleaves
  readonly swizzle: keyof typeof swizzles
  readonly l2Promotion: CUtensorMapL2promotion
  readonly fill: CUtensorMapFloatOOBfill
  readonly alignment: number
}

export function requireMemory(memory: MemoryLike, byteLength: number, alignment: number, api: string): MemoryRange {
  const range = toSpan(memory, api)
  if (range.address === 0n || range.address % BigInt(alignment) !== 0n) {
    throw outOfRange(api, 'memory', `memory at a multiple of ${alignment} bytes`, `at ${range.address}`)
  }
  if (range.byteLength < byteLength) {
    throw outOfRange(api, 'memory', `of at least ${byteLength} bytes, as the tensor has`, range.byteLength)
  }
  return range
}

export function requireCommon(memory: MemoryLike, given: TensorMapOptions, least: number, api: string): Checked {
  const found = toSpan(memory, api)
  const own = isInstance(memory, DeviceBuffer) ? (memory as DeviceBuffer).dtype : found.dtype
  const { dtype = own } = given
  const facts: TypeFacts = requireKeyOf(dtype, api, 'dtype', types)
  const { interleave = 'none', swizzle = 'none', outOfBoundsFill = 'zeros', l2Promotion = 'none' } = given
  requireKeyOf(interleave, api, 'interleave', interleaves)
  requireKeyOf(swizzle, api, 'swizzle', swizzles)
  const fill = requireKeyOf(outOfBoundsFill, api, 'outOfBoundsFill', fills)
  if (outOfBoundsFill === 'nan' && facts.isFloat !== true) {
    throw outOfRange(api, 'outOfBoundsFill', `'zeros' for ${dtype}`, 'nan')
  }
  if (interleave === '32B' && swizzle !== '32B')
    throw outOfRange(api, 'swizzle', "'32B' with interleave '32B'", swizzle)
  const fewest = interleave === 'none' ? least : 3
  const { length: rank } = requireList(given.dimensions, api, 'dimensions')
  if (rank < fewest || rank > mostDimensions) {
    throw outOfRange(api, 'dimensions', `of ${fewest} to ${mostDimensions} numbers`, rank)
  }
  const dimensions = integers(given.dimensions, 'dimensions', rank, 1, largestDimension, api)
  const { multiple = 1 } = facts
  if ((dimensions[0] as number) % multiple !== 0) {
    throw outOfRange(api, 'dimensions[0]', `a multiple of ${multiple} for ${dtype}`, dimensions[0])
  }
  const alignment = Math.max(facts.alignment ?? 16, interleave === '32B' ? 32 : 16)
  const strides = requireStrides(given.strides, dimensions, facts, alignment, api)
  const elementStrides =
    given.elementStrides === undefined
      ? new Array(rank).fill(1)
      : integers(given.elementStrides, 'elementStrides', rank, 1, mostElementStride, api)
  const checked = {
    dtype: dtype as TensorMapDType,
    facts,
    rank,
    dimensions: BigUint64Array.from(dimensions, BigInt),
    strides: BigUint64Array.from(strides, BigInt),
    elementStrides: Uint32Array.from(elementStrides),
    interleave,
    swizzle,
    l2Promotion: requireKeyOf(l2Promotion, api, 'l2Promotion', promotions),
    fill,
    alignment,
  }
  const range = requireMemory(memory, spanOf(checked), alignment, api)
  return { ...checked, range }
}

function requireStrides(
  given: readonly number[] | undefined,
  dimensions: readonly number[],
  { bits }: TypeFacts,
  alignment: number,
  api: string,
): number[] {
  const count = dimensions.length - 1
  const row = Math.ceil(((dimensions[0] as number) * bits) / 8)
  let packed = row
  const strides =
    given === undefined
      ? dimensions.slice(1).map((size) => {
          const stride = packed
          packed *= size
          return stride
        })
      : integers(given, 'strides', count, 0, endOfStrides - 1, api)
  for (const [index, stride] of strides.entries()) {
    if (stride % alignment === 0 && stride < endOfStrides) continue
    const why = given === undefined ? ' (rows without gaps are no such; give strides and larger rows)' : ''
    throw outOfRange(api, `strides[${index}]`, `a multiple of ${alignment} below 2^40${why}`, stride)
  }
  return strides
}

/** Returns the bytes from the first element to the end of the last. */
export function spanOf({ dimensions, strides, facts }: Pick<Checked, 'dimensions' | 'strides' | 'facts'>): number {
  const row = Math.ceil((Number(dimensions[0]) * facts.bits) / 8)
  return strides.reduce((bytes, stride, index) => bytes + (Number(dimensions[index + 1]) - 1) * Number(stride), row)
}

/** Checks a box's row in shared memory: a multiple of 16 bytes, and at most the length of a swizzled row. */
export function requireInner(
  { facts, interleave, swizzle }: Checked,
  elements: number,
  name: string,
  api: string,
): void {
  if (interleave !== 'none' || facts.multiple !== undefined) return
  const bytes = (elements * facts.bits) / 8
  const most = swizzle in swizzledRow ? swizzledRow[swizzle as keyof typeof swizzledRow] : 128
  if (bytes % 16 !== 0) throw outOfRange(api, name, 'elements of a multiple of 16 bytes', `${bytes} bytes`)
  if (bytes > most)
    throw outOfRange(api, name, `elements of at most ${most} bytes, as swizzle '${swizzle}' says`, `${bytes} bytes`)
}

export function requirePixels(checked: Checked, given: PixelOptions, api: string): [channels: number, pixels: number] {
  const channels = requireInteger(given.channelsPerPixel, api, 'channelsPerPixel', 1, mostChannels)
  requireInner(checked, channels, 'channelsPerPixel', api)
  return [channels, requireInteger(given.pixelsPerColumn, api, 'pixelsPerColumn', 1, mostPixels)]
}

export function integers(
  given: readonly number[],
  name: string,
  count: number,
  least: number,
  most: number,
  api: string,
): number[] {
  const list = requireList(given, api, name)
  if (list.length !== count) throw outOfRange(api, name, `of ${count} numbers`, list.length)
  for (const [index, value] of list.entries()) requireInteger(value, api, `${name}[${index}]`, least, most)
  return list
}

/**
 * The driver requires a pointer even if it reads nothing there: without one, an H200 refuses one-dimensional tensors.
 */
const noStrides = new BigUint64Array(1)

/** Returns the common arguments of all three driver functions. */
export function argumentsOf(checked: Checked) {
  const { range, facts, rank, dimensions, strides, elementStrides, interleave, swizzle, l2Promotion, fill } = checked
  return {
    tensor: [facts.code, rank, range.address, dimensions, rank === 1 ? noStrides : strides],
    elementStrides,
    interleave: interleaves[interleave],
    reading: [swizzles[swizzle], l2Promotion, fill],
  } as const
}
