import { CUarray_format } from '@shoal/cuda-sys/driver'
import type { DType } from '@shoal/types'
import { dtypeInfo, outOfRange, requireInteger, requireKeyOf, requireOneOf } from '@shoal/types'

interface FormatFacts {
  readonly code: CUarray_format
  /** Type of a texel on the host; undefined for formats that only the device can read. */
  readonly dtype: DType | undefined
  /** Elements per texel, if they differ from its channels. */
  readonly elements?: number
  /** Number of channels, if the format determines it. */
  readonly channels?: 1 | 2 | 3 | 4
  /** Number of planes of a planar video image. */
  readonly planes?: number
  /** Sizes of a video image that must be even, because two or four texels share their colors. */
  readonly even?: 'width' | 'both'
}

const code = CUarray_format
const plain = {
  u8: { code: code.CU_AD_FORMAT_UNSIGNED_INT8, dtype: 'u8' },
  u16: { code: code.CU_AD_FORMAT_UNSIGNED_INT16, dtype: 'u16' },
  u32: { code: code.CU_AD_FORMAT_UNSIGNED_INT32, dtype: 'u32' },
  i8: { code: code.CU_AD_FORMAT_SIGNED_INT8, dtype: 'i8' },
  i16: { code: code.CU_AD_FORMAT_SIGNED_INT16, dtype: 'i16' },
  i32: { code: code.CU_AD_FORMAT_SIGNED_INT32, dtype: 'i32' },
  f16: { code: code.CU_AD_FORMAT_HALF, dtype: 'f16' },
  f32: { code: code.CU_AD_FORMAT_FLOAT, dtype: 'f32' },
} as const

/** Formats with one code per number of channels: one, two and four. */
const normalized = {
  unorm8: { code: code.CU_AD_FORMAT_UNORM_INT8X1, dtype: 'u8' },
  unorm16: { code: code.CU_AD_FORMAT_UNORM_INT16X1, dtype: 'u16' },
  snorm8: { code: code.CU_AD_FORMAT_SNORM_INT8X1, dtype: 'i8' },
  snorm16: { code: code.CU_AD_FORMAT_SNORM_INT16X1, dtype: 'i16' },
} as const

const inPlanes = (code: CUarray_format, planes: number, even?: 'width' | 'both'): FormatFacts => ({
  code,
  dtype: undefined,
  channels: 3,
  planes,
  ...(even === undefined ? {} : { even }),
})
const packed = (code: CUarray_format, channels: 1 | 2 | 3 | 4): FormatFacts => ({ code, dtype: undefined, channels })

/** Video images, in planes or packed. */
const pictures = {
  nv12: inPlanes(code.CU_AD_FORMAT_NV12, 2, 'both'),
  p010: inPlanes(code.CU_AD_FORMAT_P010, 2, 'both'),
  p016: inPlanes(code.CU_AD_FORMAT_P016, 2, 'both'),
  nv16: inPlanes(code.CU_AD_FORMAT_NV16, 2, 'width'),
  p210: inPlanes(code.CU_AD_FORMAT_P210, 2, 'width'),
  p216: inPlanes(code.CU_AD_FORMAT_P216, 2, 'width'),
  'yuv444-planar8': inPlanes(code.CU_AD_FORMAT_Y444_PLANAR8, 3),
  'yuv444-planar10': inPlanes(code.CU_AD_FORMAT_Y444_PLANAR10, 3),
  'yuv444-semiplanar8': inPlanes(code.CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 2),
  'yuv444-semiplanar16': inPlanes(code.CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 2),
  yuy2: packed(code.CU_AD_FORMAT_YUY2, 2),
  y210: packed(code.CU_AD_FORMAT_Y210, 2),
  y216: packed(code.CU_AD_FORMAT_Y216, 2),
  ayuv: packed(code.CU_AD_FORMAT_AYUV, 4),
  y410: packed(code.CU_AD_FORMAT_Y410, 4),
  y416: packed(code.CU_AD_FORMAT_Y416, 4),
} as const

/** Compressed blocks of 4 × 4 texels. */
const compressed = {
  bc1: packed(code.CU_AD_FORMAT_BC1_UNORM, 4),
  'bc1-srgb': packed(code.CU_AD_FORMAT_BC1_UNORM_SRGB, 4),
  bc2: packed(code.CU_AD_FORMAT_BC2_UNORM, 4),
  'bc2-srgb': packed(code.CU_AD_FORMAT_BC2_UNORM_SRGB, 4),
  bc3: packed(code.CU_AD_FORMAT_BC3_UNORM, 4),
  'bc3-srgb': packed(code.CU_AD_FORMAT_BC3_UNORM_SRGB, 4),
  bc4: packed(code.CU_AD_FORMAT_BC4_UNORM, 1),
  'bc4-signed': packed(code.CU_AD_FORMAT_BC4_SNORM, 1),
  bc5: packed(code.CU_AD_FORMAT_BC5_UNORM, 2),
  'bc5-signed': packed(code.CU_AD_FORMAT_BC5_SNORM, 2),
  bc6h: packed(code.CU_AD_FORMAT_BC6H_UF16, 3),
  'bc6h-signed': packed(code.CU_AD_FORMAT_BC6H_SF16, 3),
  bc7: packed(code.CU_AD_FORMAT_BC7_UNORM, 4),
  'bc7-srgb': packed(code.CU_AD_FORMAT_BC7_UNORM_SRGB, 4),
} as const

/**
 * Format of a channel, or of a whole texel.
 *
 * A channel is an element type, or `unorm8` and similar, which kernels read as floats from 0 to 1, or from -1 to 1 if
 * signed. Formats of whole texels have fixed channels: `unorm-101010-2` (three channels of 10 bits and one of 2 in a
 * `u32`), video images in planes (`nv12`) or packed (`yuy2`), and compressed blocks (`bc1`). Of these formats, copies
 * support only `unorm-101010-2` and planes.
 */
export type ArrayFormat =
  | keyof typeof plain
  | keyof typeof normalized
  | keyof typeof pictures
  | keyof typeof compressed
  | 'unorm-101010-2'

const all: { readonly [F in ArrayFormat]: FormatFacts } = {
  ...plain,
  ...normalized,
  'unorm-101010-2': { code: code.CU_AD_FORMAT_UNORM_INT_101010_2, dtype: 'u32', elements: 1, channels: 4 },
  ...pictures,
  ...compressed,
}

/** Number of channels per texel. */
export type ChannelCount = 1 | 2 | 4

const counts: readonly unknown[] = [1, 2, 4]

/** A format with its channels. */
export interface TexelFormat {
  /** Format of each channel. */
  readonly format: ArrayFormat
  /** Number of channels. */
  readonly channels: ChannelCount | 3
}

/** Checks a format and its channels. @throws TypeError, RangeError */
export function requireTexelFormat(
  format: ArrayFormat,
  channels: ChannelCount | undefined,
  api: string,
  name = 'channels',
): TexelFormat {
  requireKeyOf(format, api, 'format', all)
  const { channels: own } = all[format]
  if (own !== undefined) {
    if (channels !== undefined) throw outOfRange(api, name, `left out for '${format}'`, channels)
    return { format, channels: own }
  }
  const count = channels === undefined ? 1 : requireInteger(channels, api, name, 1, 4)
  if (!counts.includes(count)) throw outOfRange(api, name, '1, 2 or 4', count)
  return { format, channels: count as ChannelCount }
}

/** Returns the texel format of linear memory, from its element type. @throws TypeError, RangeError */
export function requireElementFormat(dtype: unknown, channels: ChannelCount | undefined, api: string): TexelFormat {
  const format = requireOneOf(dtype, api, 'resource.memory.dtype', Object.keys(plain) as (keyof typeof plain)[])
  return requireTexelFormat(format, channels, api, 'resource.channels')
}

/** Returns the `CUarray_format`. */
export function codeOf({ format, channels }: TexelFormat): CUarray_format {
  const { code: first } = all[format]
  return Object.hasOwn(normalized, format) ? ((first + counts.indexOf(channels)) as CUarray_format) : first
}

/** Returns the type of a texel's elements on the host; undefined for formats that only the device can read. */
export function dtypeOfFormat({ format }: TexelFormat): DType | undefined {
  return all[format].dtype
}

/** Returns the bytes of a texel on the host; 0 for formats that only the device can read. */
export function texelBytes({ format, channels }: TexelFormat): number {
  const { dtype, elements = channels } = all[format]
  return dtype === undefined ? 0 : dtypeInfo(dtype).bytes * elements
}

/** Returns the number of planes of a video image; 0 for other formats. */
export function planesOf(format: ArrayFormat): number {
  return all[format].planes ?? 0
}

/** Whether a format allows these sizes. Planar video images have two dimensions, some with even sizes. */
export function fitsFormat(format: ArrayFormat, width: number, rows: number, slices: number): boolean {
  const { planes, even } = all[format]
  if (planes === undefined) return true
  return rows > 0 && slices === 0 && (even === undefined || width % 2 === 0) && (even !== 'both' || rows % 2 === 0)
}

/** Returns the format for the driver's code; undefined for a format without a name here. */
export function formatOf(found: number, channels: number): TexelFormat | undefined {
  for (const [format, facts] of Object.entries(all) as [ArrayFormat, FormatFacts][]) {
    const texel = { format, channels: facts.channels ?? (channels as ChannelCount) }
    if (facts.code <= found && found <= facts.code + 2 && codeOf(texel) === found) return texel
  }
  return undefined
}
