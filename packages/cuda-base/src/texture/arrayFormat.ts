import { CUarray_format } from '@shoal/cuda-sys/driver'
import type { DType } from '@shoal/types'
import { outOfRange, requireInteger, requireKeyOf, requireOneOf } from '@shoal/types'

interface FormatFacts {
  readonly code: CUarray_format
  /** How a channel is held on the host; undefined for pictures in planes. */
  readonly dtype: DType | undefined
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

/** Those whose codes go by their channels: of one, two and four. */
const normalized = {
  unorm8: { code: code.CU_AD_FORMAT_UNORM_INT8X1, dtype: 'u8' },
  unorm16: { code: code.CU_AD_FORMAT_UNORM_INT16X1, dtype: 'u16' },
  snorm8: { code: code.CU_AD_FORMAT_SNORM_INT8X1, dtype: 'i8' },
  snorm16: { code: code.CU_AD_FORMAT_SNORM_INT16X1, dtype: 'i16' },
} as const

/**
 * What a channel of a texel is: an element type; `unorm8` and its kin, which are always read as numbers from 0 (or -1) to 1; or
 * `nv12`, a picture in two planes.
 */
export type ArrayFormat = keyof typeof plain | keyof typeof normalized | 'nv12'

const all: { readonly [F in ArrayFormat]: FormatFacts } = {
  ...plain,
  ...normalized,
  nv12: { code: code.CU_AD_FORMAT_NV12, dtype: undefined },
}

/** Channels of a texel. */
export type ChannelCount = 1 | 2 | 4

const counts: readonly unknown[] = [1, 2, 4]
const nv12Channels = 3

/** A format with its channels. */
export interface TexelFormat {
  /** The format of each channel. */
  readonly format: ArrayFormat
  /** Number of channels. */
  readonly channels: ChannelCount | 3
}

/** @throws TypeError, RangeError */
export function requireTexelFormat(
  format: ArrayFormat,
  channels: ChannelCount | undefined,
  api: string,
  name = 'channels',
): TexelFormat {
  requireKeyOf(format, api, 'format', all)
  if (format === 'nv12') {
    if (channels !== undefined) throw outOfRange(api, name, "left out for 'nv12'", channels)
    return { format, channels: nv12Channels }
  }
  const count = channels === undefined ? 1 : requireInteger(channels, api, name, 1, 4)
  if (!counts.includes(count)) throw outOfRange(api, name, '1, 2 or 4', count)
  return { format, channels: count as ChannelCount }
}

/** A format of textures of linear memory, which has the type of its elements. @throws TypeError, RangeError */
export function requireElementFormat(dtype: unknown, channels: ChannelCount | undefined, api: string): TexelFormat {
  const format = requireOneOf(dtype, api, 'resource.memory.dtype', Object.keys(plain) as (keyof typeof plain)[])
  return requireTexelFormat(format, channels, api, 'resource.channels')
}

/** The `CUarray_format`. */
export function codeOf({ format, channels }: TexelFormat): CUarray_format {
  const { code: first } = all[format]
  return Object.hasOwn(normalized, format) ? ((first + counts.indexOf(channels)) as CUarray_format) : first
}

/** The type of a channel on the host; undefined for pictures in planes. */
export function dtypeOfFormat({ format }: TexelFormat): DType | undefined {
  return all[format].dtype
}

/** The format behind what the driver says; undefined for one that has no word here. */
export function formatOf(found: number, channels: number): TexelFormat | undefined {
  for (const [format, facts] of Object.entries(all) as [ArrayFormat, FormatFacts][]) {
    const texel = { format, channels: channels as ChannelCount }
    if (facts.code <= found && found <= facts.code + 2 && codeOf(texel) === found) return texel
  }
  return undefined
}
