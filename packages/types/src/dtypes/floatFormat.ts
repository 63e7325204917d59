/** A binary floating-point format narrower than f32. */
export interface FloatFormat {
  /** Bits of the stored significand, without the hidden bit. */
  readonly significandBits: number
  readonly exponentBias: number
  /** Position of the sign bit. */
  readonly signShift: number
  /** Bits of the largest finite magnitude. */
  readonly largest: number
  /** Bits for a magnitude beyond the largest: infinity, or NaN if the format has no infinity. */
  readonly beyond: number
  /** Bits that NaN is encoded as. */
  readonly nan: number
}

const scratch = new Float64Array(1)
const words = new Uint32Array(scratch.buffer)
// The byte order of the machine decides which half of a double holds its sign and exponent.
scratch[0] = 1
const high = words[1] === 0 ? 0 : 1
const low = 1 - high

/**
 * Encodes a double as the nearest value of `format`, ties to even.
 *
 * It works on the double itself, because rounding to f32 first would round twice and can pick the wrong neighbour.
 *
 * @param saturate whether magnitudes beyond the largest finite value become that value
 */
export function encodeFloat(format: FloatFormat, value: number, saturate: boolean): number {
  scratch[0] = value
  const top = words[high] as number
  const sign = (top >>> 31) << format.signShift
  const exponentField = (top >>> 20) & 0x7ff
  if (exponentField === 0x7ff) {
    if (Number.isNaN(value)) return format.nan
    return sign | (saturate ? format.largest : format.beyond)
  }
  // Doubles below 2^-1022 are far below half the smallest value of any narrow format, so they become 0.
  if (exponentField === 0) return sign

  const exponent = exponentField - 1023
  const smallestNormal = 1 - format.exponentBias
  const belowNormal = exponent < smallestNormal ? smallestNormal - exponent : 0
  // Bits to drop from the upper 21 bits of the significand. The lower 32 bits are always dropped.
  const drop = 20 - format.significandBits + belowNormal
  if (drop > 21) return sign
  const significand = (top & 0xf_ffff) | 0x10_0000
  const rest = significand & ((1 << drop) - 1)
  const half = 1 << (drop - 1)
  let kept = significand >>> drop
  if (rest > half || (rest === half && (words[low] !== 0 || (kept & 1) === 1))) kept += 1

  // `kept` includes its hidden bit, which adds 1 to the exponent field; so does a carry out of the significand.
  const exponentBits = belowNormal > 0 ? 0 : exponent - smallestNormal
  const magnitude = exponentBits * 2 ** format.significandBits + kept
  if (magnitude > format.largest) return sign | (saturate ? format.largest : format.beyond)
  return sign | magnitude
}

/** Decodes bits of `format` exactly. */
export function decodeFloat(format: FloatFormat, bits: number): number {
  const magnitudeBits = bits & ((1 << format.signShift) - 1)
  if (magnitudeBits > format.largest) {
    // Infinity follows the largest finite value, and NaNs follow infinity.
    if (magnitudeBits !== format.beyond || format.beyond === format.nan) return Number.NaN
    return bits >>> format.signShift === 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
  }
  const exponentField = magnitudeBits >>> format.significandBits
  const fraction = magnitudeBits & ((1 << format.significandBits) - 1)
  const unit = 2 ** (Math.max(exponentField, 1) - format.exponentBias - format.significandBits)
  const magnitude = (exponentField === 0 ? fraction : fraction + 2 ** format.significandBits) * unit
  return bits >>> format.signShift === 0 ? magnitude : -magnitude
}
