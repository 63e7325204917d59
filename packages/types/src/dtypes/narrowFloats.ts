import { type OptionKeys, optionalOptions } from '../arguments/options.js'
import { optionalBoolean, requireInteger, wrongType } from '../arguments/scalars.js'
import type { DType } from './dtype.js'
import { decodeFloat, encodeFloat, type FloatFormat } from './floatFormat.js'

/** Dtypes without a JavaScript number type; typed arrays hold their bits. */
export type NarrowFloat = 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2'

/** Options for numbers that a narrow float cannot hold. */
export interface EncodeOptions {
  /**
   * Whether magnitudes beyond the largest finite value, infinity included, become that value.
   *
   * This is `satfinite` in CUDA's conversions. Otherwise they become infinity, or NaN in f8e4m3, which has no infinity.
   * Default: true for the 8-bit formats, as in CUDA; false for f16 and bf16, as in IEEE 754.
   */
  readonly saturate?: boolean
}

// The NaNs of CUDA's own conversions from double.
export const floatFormats: { readonly [D in NarrowFloat]: FloatFormat } = {
  f16: { significandBits: 10, exponentBias: 15, signShift: 15, largest: 0x7bff, beyond: 0x7c00, nan: 0x7fff },
  bf16: { significandBits: 7, exponentBias: 127, signShift: 15, largest: 0x7f7f, beyond: 0x7f80, nan: 0x7fff },
  f8e4m3: { significandBits: 3, exponentBias: 7, signShift: 7, largest: 0x7e, beyond: 0x7f, nan: 0x7f },
  f8e5m2: { significandBits: 2, exponentBias: 15, signShift: 7, largest: 0x7b, beyond: 0x7c, nan: 0x7e },
}

/** Whether encoding to a dtype saturates by default. */
export function saturatesByDefault(dtype: DType): boolean {
  return dtype === 'f8e4m3' || dtype === 'f8e5m2'
}

/**
 * Encodes a number as the nearest f16 (IEEE 754 binary16), ties to even.
 *
 * Numbers that round beyond ±65504 become infinity; NaN becomes 0x7fff.
 *
 * @throws TypeError when `value` is not a number
 */
export function encodeF16(value: number, options?: EncodeOptions): number {
  return encode('f16', value, options, 'encodeF16')
}

/**
 * Decodes f16 bits exactly.
 *
 * @throws TypeError, RangeError when `bits` is not an integer from 0 to 65535
 */
export function decodeF16(bits: number): number {
  return decodeFloat(floatFormats.f16, requireInteger(bits, 'decodeF16', 'bits', 0, 0xffff))
}

/**
 * Encodes a number as the nearest bf16, ties to even.
 *
 * Numbers that round beyond about ±3.39e38 become infinity; NaN becomes 0x7fff.
 *
 * @throws TypeError when `value` is not a number
 */
export function encodeBF16(value: number, options?: EncodeOptions): number {
  return encode('bf16', value, options, 'encodeBF16')
}

/**
 * Decodes bf16 bits exactly.
 *
 * @throws TypeError, RangeError when `bits` is not an integer from 0 to 65535
 */
export function decodeBF16(bits: number): number {
  return decodeFloat(floatFormats.bf16, requireInteger(bits, 'decodeBF16', 'bits', 0, 0xffff))
}

/**
 * Encodes a number as the nearest f8e4m3 (OCP E4M3FN), ties to even.
 *
 * Numbers beyond ±448 saturate by default, and become NaN with `saturate: false`. NaN becomes 0x7f.
 *
 * @throws TypeError when `value` is not a number
 */
export function encodeF8E4M3(value: number, options?: EncodeOptions): number {
  return encode('f8e4m3', value, options, 'encodeF8E4M3')
}

/**
 * Decodes f8e4m3 bits exactly.
 *
 * @throws TypeError, RangeError when `bits` is not an integer from 0 to 255
 */
export function decodeF8E4M3(bits: number): number {
  return decodeFloat(floatFormats.f8e4m3, requireInteger(bits, 'decodeF8E4M3', 'bits', 0, 0xff))
}

/**
 * Encodes a number as the nearest f8e5m2, ties to even.
 *
 * Numbers beyond ±57344 saturate by default, and become infinity with `saturate: false`. NaN becomes 0x7e.
 *
 * @throws TypeError when `value` is not a number
 */
export function encodeF8E5M2(value: number, options?: EncodeOptions): number {
  return encode('f8e5m2', value, options, 'encodeF8E5M2')
}

/**
 * Decodes f8e5m2 bits exactly.
 *
 * @throws TypeError, RangeError when `bits` is not an integer from 0 to 255
 */
export function decodeF8E5M2(bits: number): number {
  return decodeFloat(floatFormats.f8e5m2, requireInteger(bits, 'decodeF8E5M2', 'bits', 0, 0xff))
}

const encodeKeys: OptionKeys<EncodeOptions> = { saturate: true }

function encode(dtype: NarrowFloat, value: number, options: EncodeOptions | undefined, api: string): number {
  if (typeof value !== 'number') throw wrongType(api, 'value', 'a number', value)
  return encodeFloat(floatFormats[dtype], value, readSaturate(options, dtype, api))
}

/** Returns the option `saturate`, or the dtype's default. @throws TypeError */
export function readSaturate(options: EncodeOptions | undefined, dtype: DType, api: string): boolean {
  const { saturate } = optionalOptions(options, api, encodeKeys)
  return optionalBoolean(saturate, api, 'saturate', saturatesByDefault(dtype))
}
