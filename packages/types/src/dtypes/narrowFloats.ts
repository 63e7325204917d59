import { describeValue } from '../describeValue.js'
import { decodeFloat, encodeFloat, type FloatFormat } from './floatFormat.js'

/** The dtypes that JavaScript has no number type for; typed arrays hold their bits. */
export type NarrowFloat = 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2'

export interface EncodeOptions {
  /**
   * Whether magnitudes beyond the largest finite value become that value, infinity included, as in CUDA's conversions
   * `satfinite`. Otherwise they become infinity, in f8e4m3 (which has none) NaN. Default: true for the 8-bit formats as
   * in CUDA, false for f16 and bf16 as in IEEE 754.
   */
  readonly saturate?: boolean
}

// The NaNs are those of CUDA's own conversions from double.
export const floatFormats: { readonly [D in NarrowFloat]: FloatFormat } = {
  f16: { significandBits: 10, exponentBias: 15, signShift: 15, largest: 0x7bff, beyond: 0x7c00, nan: 0x7fff },
  bf16: { significandBits: 7, exponentBias: 127, signShift: 15, largest: 0x7f7f, beyond: 0x7f80, nan: 0x7fff },
  f8e4m3: { significandBits: 3, exponentBias: 7, signShift: 7, largest: 0x7e, beyond: 0x7f, nan: 0x7f },
  f8e5m2: { significandBits: 2, exponentBias: 15, signShift: 7, largest: 0x7b, beyond: 0x7c, nan: 0x7e },
}

/** Whether elements of a dtype saturate when nothing is said. */
export function saturatesByDefault(dtype: NarrowFloat): boolean {
  return dtype === 'f8e4m3' || dtype === 'f8e5m2'
}

/**
 * The bits of the f16 (IEEE 754 binary16) nearest to a number, ties to even. Beyond ±65504 infinity; NaN is 0x7fff.
 *
 * @throws TypeError when `value` is not a number
 */
export function encodeF16(value: number, options?: EncodeOptions): number {
  return encodeFloat(floatFormats.f16, checkedNumber(value), options?.saturate ?? false)
}

/**
 * The value of f16 bits, exactly.
 *
 * @throws RangeError when `bits` is not a whole number from 0 to 65535
 */
export function decodeF16(bits: number): number {
  return decodeFloat(floatFormats.f16, checkedBits(bits, 0xffff))
}

/**
 * The bits of the bf16 nearest to a number, ties to even. Beyond about ±3.39e38 infinity; NaN is 0x7fff.
 *
 * @throws TypeError when `value` is not a number
 */
export function encodeBF16(value: number, options?: EncodeOptions): number {
  return encodeFloat(floatFormats.bf16, checkedNumber(value), options?.saturate ?? false)
}

/**
 * The value of bf16 bits, exactly.
 *
 * @throws RangeError when `bits` is not a whole number from 0 to 65535
 */
export function decodeBF16(bits: number): number {
  return decodeFloat(floatFormats.bf16, checkedBits(bits, 0xffff))
}

/**
 * The bits of the f8e4m3 (OCP E4M3FN) nearest to a number, ties to even. Beyond ±448 it saturates unless told
 * otherwise, and then gives NaN; NaN is 0x7f.
 *
 * @throws TypeError when `value` is not a number
 */
export function encodeF8E4M3(value: number, options?: EncodeOptions): number {
  return encodeFloat(floatFormats.f8e4m3, checkedNumber(value), options?.saturate ?? true)
}

/**
 * The value of f8e4m3 bits, exactly.
 *
 * @throws RangeError when `bits` is not a whole number from 0 to 255
 */
export function decodeF8E4M3(bits: number): number {
  return decodeFloat(floatFormats.f8e4m3, checkedBits(bits, 0xff))
}

/**
 * The bits of the f8e5m2 nearest to a number, ties to even. Beyond ±57344 it saturates unless told otherwise, and then
 * gives infinity; NaN is 0x7e.
 *
 * @throws TypeError when `value` is not a number
 */
export function encodeF8E5M2(value: number, options?: EncodeOptions): number {
  return encodeFloat(floatFormats.f8e5m2, checkedNumber(value), options?.saturate ?? true)
}

/**
 * The value of f8e5m2 bits, exactly.
 *
 * @throws RangeError when `bits` is not a whole number from 0 to 255
 */
export function decodeF8E5M2(bits: number): number {
  return decodeFloat(floatFormats.f8e5m2, checkedBits(bits, 0xff))
}

function checkedNumber(value: unknown): number {
  if (typeof value !== 'number') throw new TypeError(`expected a number, got ${describeValue(value)}`)
  return value
}

function checkedBits(bits: unknown, largest: number): number {
  if (typeof bits !== 'number' || !Number.isInteger(bits) || bits < 0 || bits > largest) {
    throw new RangeError(`bits must be a whole number from 0 to ${largest}, got ${describeValue(bits)}`)
  }
  return bits
}
