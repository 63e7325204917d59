import {
  CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION,
  CU_TRSF_NORMALIZED_COORDINATES,
  CU_TRSF_READ_AS_INTEGER,
  CU_TRSF_SEAMLESS_CUBEMAP,
  CU_TRSF_SRGB,
  CUDA_TEXTURE_DESC,
} from '@shoal/cuda-sys/driver'
import type { NativeMemory } from '@shoal/ffi'
import {
  isArray,
  type OptionKeys,
  optionalBoolean,
  outOfRange,
  requireInteger,
  requireList,
  requireNumber,
  requireOneOf,
  wrongType,
} from '@shoal/types'
import type { TexelFormat } from './arrayFormat.js'
import type { ResourceDescription } from './textureResource.js'
import type { ResourceView } from './textureView.js'

const addressModes = ['wrap', 'clamp', 'mirror', 'border'] as const
const filterModes = ['point', 'linear'] as const
const readModes = ['element', 'normalizedFloat'] as const

/**
 * What a read outside the texture returns: the repeated texture, its nearest edge, its mirror image, or the border
 * color.
 */
export type AddressMode = (typeof addressModes)[number]
/** `point` returns the nearest texel. `linear` returns the mean of the surrounding texels, weighted by distance. */
export type FilterMode = (typeof filterModes)[number]
/**
 * `element` reads texels unchanged. `normalizedFloat` reads integers of 8 and 16 bits as floats from 0 to 1, or from -1
 * to 1 if the integers are signed.
 */
export type ReadMode = (typeof readModes)[number]

/** Options for reading a texture. */
export interface TextureOptions {
  /**
   * Address mode for all dimensions, or for each. `wrap` and `mirror` require normalized coordinates. Default:
   * `'clamp'`.
   */
  readonly addressMode?: AddressMode | readonly AddressMode[] | undefined
  /** Filter mode; `linear` requires texels that are read as floats. Default: `'point'`. */
  readonly filterMode?: FilterMode | undefined
  /** Read mode. Default: `'element'`. */
  readonly readMode?: ReadMode | undefined
  /** Whether coordinates go from 0 to 1 instead of 0 to the size. Default: false; mipmapped arrays require true. */
  readonly normalizedCoordinates?: boolean | undefined
  /** Whether 8-bit integers that are read as floats are sRGB colors. Default: false. */
  readonly srgb?: boolean | undefined
  /** The color for `addressMode: 'border'`. Default: zeroes. */
  readonly borderColor?: readonly number[] | undefined
  /** Filter mode between levels of a mipmapped array. Default: `'point'`. */
  readonly mipmapFilterMode?: FilterMode | undefined
  /** Number added to the level. Default: 0. */
  readonly mipmapLevelBias?: number | undefined
  /** Minimum and maximum level. Default: all levels. */
  readonly mipmapLevelClamp?: readonly [least: number, greatest: number] | undefined
  /** Maximum anisotropy, from 0 to 16. Default: 0. */
  readonly maxAnisotropy?: number | undefined
  /** Whether filtering crosses the edges of a cubemap. Default: false. */
  readonly seamlessCubemap?: boolean | undefined
  /** Whether the driver may filter less if the difference is small. Default: true. */
  readonly trilinearOptimization?: boolean | undefined
  /** Another view of an array: another format, or only some levels or layers. */
  readonly view?: ResourceView | undefined
}

export const textureKeys: OptionKeys<TextureOptions> = {
  addressMode: true,
  filterMode: true,
  readMode: true,
  normalizedCoordinates: true,
  srgb: true,
  borderColor: true,
  mipmapFilterMode: true,
  mipmapLevelBias: true,
  mipmapLevelClamp: true,
  maxAnisotropy: true,
  seamlessCubemap: true,
  trilinearOptimization: true,
  view: true,
}

/** All options for reading a texture. */
export interface TextureDescription {
  /** Address mode in each dimension. */
  readonly addressMode: readonly [AddressMode, AddressMode, AddressMode]
  /** Filter mode. */
  readonly filterMode: FilterMode
  /** Whether integers are read unchanged or as floats up to 1. */
  readonly readMode: ReadMode
  /** Whether coordinates go from 0 to 1. */
  readonly normalizedCoordinates: boolean
  /** Whether sRGB is converted to linear values. */
  readonly srgb: boolean
  /** The border color. */
  readonly borderColor: readonly number[]
  /** Filter mode between levels. */
  readonly mipmapFilterMode: FilterMode
  /** Number added to the level. */
  readonly mipmapLevelBias: number
  /** Minimum and maximum level. */
  readonly mipmapLevelClamp: readonly [least: number, greatest: number]
  /** Maximum anisotropy. */
  readonly maxAnisotropy: number
  /** Whether filtering crosses the edges of a cubemap. */
  readonly seamlessCubemap: boolean
  /** Whether the driver may simplify trilinear filtering. */
  readonly trilinearOptimization: boolean
}

const axes = 3
/** Offset of the border color in a `CUDA_TEXTURE_DESC`, in words of 4 bytes. */
const borderColorAt = 10
const mostAnisotropy = 16
const mostLevel = 1000

/** Encodes options as a `CUDA_TEXTURE_DESC`. @throws TypeError, RangeError */
export function textureDescriptor(
  options: TextureOptions,
  texel: TexelFormat,
  resource: ResourceDescription['type'],
  dimensions: number,
  api: string,
): Uint8Array {
  const {
    addressMode,
    filterMode = 'point',
    readMode = 'element',
    borderColor,
    mipmapFilterMode = 'point',
    mipmapLevelBias = 0,
    mipmapLevelClamp,
    maxAnisotropy = 0,
  } = options
  const isMipmapped = resource === 'mipmappedArray'
  const normalized = optionalBoolean(options.normalizedCoordinates, api, 'normalizedCoordinates', isMipmapped)
  if (isMipmapped && !normalized) throw outOfRange(api, 'normalizedCoordinates', 'true for a mipmapped array', false)
  const modes = requireModes(addressMode, api)
  for (const mode of modes) {
    if (normalized || mode === 'clamp' || mode === 'border') continue
    throw outOfRange(api, 'addressMode', "'clamp' or 'border' where coordinates are not normalized", mode)
  }
  const filter = requireOneOf(filterMode, api, 'filterMode', filterModes)
  const read = requireOneOf(readMode, api, 'readMode', readModes)
  const blend = requireOneOf(mipmapFilterMode, api, 'mipmapFilterMode', filterModes)
  const isInteger = /^[iu]\d/.test(texel.format)
  if (read === 'normalizedFloat' && isInteger && texel.format.endsWith('32')) {
    throw outOfRange(api, 'readMode', "'element' for integers of 32 bits", read)
  }
  if (isInteger && read === 'element') {
    const expected = `'point' where texels of ${texel.format} are read as they are (readMode)`
    if (filter === 'linear') throw outOfRange(api, 'filterMode', expected, filter)
    if (blend === 'linear') throw outOfRange(api, 'mipmapFilterMode', expected, blend)
  }
  if (filter === 'linear' && resource === 'linear') {
    throw outOfRange(api, 'filterMode', "'point' for linear memory, which is read by index", filter)
  }
  const [least, greatest] = mipmapLevelClamp === undefined ? [0, mostLevel] : requireClamp(mipmapLevelClamp, api)
  const flag = (value: boolean | undefined, name: string, fallback: boolean, set: boolean, bit: number): number =>
    optionalBoolean(value, api, name, fallback) === set ? bit : 0
  const flags =
    (normalized ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
    (isInteger && read === 'element' ? CU_TRSF_READ_AS_INTEGER : 0) |
    flag(options.srgb, 'srgb', false, true, CU_TRSF_SRGB) |
    flag(options.seamlessCubemap, 'seamlessCubemap', false, true, CU_TRSF_SEAMLESS_CUBEMAP) |
    flag(options.trilinearOptimization, 'trilinearOptimization', true, false, CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION)
  const border = requireColor(borderColor, isInteger && read === 'element', api)
  const memory = CUDA_TEXTURE_DESC.allocate({
    // GPUs apply the border mode even to dimensions that the array does not have.
    addressMode: modes.map((mode, axis) =>
      addressModes.indexOf(axis < dimensions ? mode : 'clamp'),
    ) as CUDA_TEXTURE_DESC['addressMode'],
    filterMode: filterModes.indexOf(filter) as CUDA_TEXTURE_DESC['filterMode'],
    flags,
    maxAnisotropy: requireInteger(maxAnisotropy, api, 'maxAnisotropy', 0, mostAnisotropy),
    mipmapFilterMode: filterModes.indexOf(blend) as CUDA_TEXTURE_DESC['mipmapFilterMode'],
    mipmapLevelBias: requireNumber(mipmapLevelBias, api, 'mipmapLevelBias', -mostLevel, mostLevel),
    minMipmapLevelClamp: least,
    maxMipmapLevelClamp: greatest,
  })
  new Int32Array(memory.buffer, memory.byteOffset).set(border, borderColorAt)
  return memory
}

function requireModes(given: TextureOptions['addressMode'] = 'clamp', api: string): AddressMode[] {
  if (!isArray(given)) return new Array(axes).fill(requireOneOf(given, api, 'addressMode', addressModes))
  const modes = requireList(given as readonly AddressMode[], api, 'addressMode')
  if (modes.length === 0 || modes.length > axes)
    throw outOfRange(api, 'addressMode', `of 1 to ${axes} modes`, modes.length)
  for (const [index, mode] of modes.entries()) requireOneOf(mode, api, `addressMode[${index}]`, addressModes)
  while (modes.length < axes) modes.push('clamp')
  return modes
}

function requireClamp(given: readonly [number, number], api: string): [number, number] {
  const [least, greatest, ...more] = requireList(given, api, 'mipmapLevelClamp')
  if (more.length > 0) throw outOfRange(api, 'mipmapLevelClamp', 'of two numbers', more.length + 2)
  const from = requireNumber(least, api, 'mipmapLevelClamp[0]', -mostLevel, mostLevel)
  return [from, requireNumber(greatest, api, 'mipmapLevelClamp[1]', from, mostLevel)]
}

/** Encodes a color: as integers for textures that are read as integers. */
function requireColor(given: readonly number[] | undefined, isInteger: boolean, api: string): Int32Array {
  const color = given === undefined ? [] : requireList(given, api, 'borderColor')
  if (color.length > 4) throw outOfRange(api, 'borderColor', 'of 1 to 4 numbers', color.length)
  const bits = new Int32Array(4)
  const floats = new Float32Array(bits.buffer)
  for (const [index, value] of color.entries()) {
    const name = `borderColor[${index}]`
    if (isInteger) bits[index] = requireInteger(value, api, name, -(2 ** 31), 2 ** 32 - 1)
    else floats[index] = requireNumber(value, api, name)
  }
  return bits
}

/** Decodes a `CUDA_TEXTURE_DESC`. */
export function readTexture(memory: NativeMemory, texel: TexelFormat): TextureDescription {
  const found = CUDA_TEXTURE_DESC.read(memory)
  const { flags } = found
  const isInteger = /^[iu]\d/.test(texel.format)
  const readMode =
    isInteger && !texel.format.endsWith('32') && (flags & CU_TRSF_READ_AS_INTEGER) === 0 ? 'normalizedFloat' : 'element'
  const mode = (index: number): AddressMode => wordOf(addressModes, found.addressMode[index])
  return Object.freeze({
    addressMode: Object.freeze([mode(0), mode(1), mode(2)] as const),
    filterMode: wordOf(filterModes, found.filterMode),
    readMode,
    normalizedCoordinates: (flags & CU_TRSF_NORMALIZED_COORDINATES) !== 0,
    srgb: (flags & CU_TRSF_SRGB) !== 0,
    borderColor: Object.freeze(
      found.borderColor.map(
        (value, index) => (isInteger && readMode === 'element' ? memory.i32[borderColorAt + index] : value) as number,
      ),
    ),
    mipmapFilterMode: wordOf(filterModes, found.mipmapFilterMode),
    mipmapLevelBias: found.mipmapLevelBias,
    mipmapLevelClamp: Object.freeze([found.minMipmapLevelClamp, found.maxMipmapLevelClamp] as const),
    maxAnisotropy: found.maxAnisotropy,
    seamlessCubemap: (flags & CU_TRSF_SEAMLESS_CUBEMAP) !== 0,
    trilinearOptimization: (flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) === 0,
  })
}

function wordOf<W>(words: readonly W[], index: number | undefined): W {
  const word = words[index ?? -1]
  if (word === undefined) throw wrongType('TextureObject.describe', 'the descriptor', 'one with known modes', index)
  return word
}
