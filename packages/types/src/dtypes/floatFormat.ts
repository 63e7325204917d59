/** A binary floating-point format narrower than f32, described well enough to encode and decode it. */
export interface FloatFormat {
  /** Bits of the stored significand, without the hidden one. */
  readonly significandBits: number
  readonly exponentBias: number
  /** Where the sign bit is. */
  readonly signShift: number
  /** Bits of the largest finite magnitude. */
  readonly largest: number
  /** Bits of what a magnitude beyond the largest becomes: infinity, or NaN where the format has no infinity. */
  readonly beyond: number
  /** Bits of the NaN that encoding gives. */
  readonly nan: number
}

const scratch = new Float64Array(1)
const words = new Uint32Array(scratch.buffer)
// Which half of a double holds its sign and exponent differs with the byte order of the machine.
scratch[0] = 1
const high = words[1] === 0 ? 0 : 1
const low = 1 - high

/**
 * The bits of the value of `format` nearest to a double, ties to the even one. It works on the double itself: going
 * through f32 first would round twice, and sometimes to the wrong neighbour.
 *
 * @param saturate whether magnitudes beyond the largest finite one become that one
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
  // Doubles below 2^-1022 are far below half the smallest value of any narrow format.
  if (exponentField === 0) return sign

  const exponent = exponentField - 1023
  const smallestNormal = 1 - format.exponentBias
  const belowNormal = exponent < smallestNormal ? smallestNormal - exponent : 0
  // Bits to drop from the 21 upper ones of the significand; the 32 lower ones always go.
  const drop = 20 - format.significandBits + belowNormal
  if (drop > 21) return sign
  const significand = (top & 0xf_ffff) | 0x10_0000
  const rest = significand & ((1 << drop) - 1)
  const half = 1 << (drop - 1)
  let kept = significand >>> drop
  if (rest > half || (rest === half && (words[low] !== 0 || (kept & 1) === 1))) kept += 1

  // `kept` still has its hidden bit, which adds 1 to the exponent field; so does a carry out of the significand.
  const exponentBits = belowNormal > 0 ? 0 : exponent - smallestNormal
  const magnitude = exponentBits * 2 ** format.significandBits + kept
  if (magnitude > format.largest) return sign | (saturate ? format.largest : format.beyond)
  return sign | magnitude
}

/** The value of bits of `format`, exactly. */
export function decodeFloat(format: FloatFormat, bits: number): number {
  const magnitudeBits = bits & ((1 << format.signShift) - 1)
  if (magnitudeBits > format.largest) {
    // Infinity comes right after the largest finite value, NaNs after it.
    if (magnitudeBits !== format.beyond || format.beyond === format.nan) return Number.NaN
    return bits >>> format.signShift === 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
  }
  const exponentField = magnitudeBits >>> format.significandBits
  const fraction = magnitudeBits & ((1 << format.significandBits) - 1)
  const unit = 2 ** (Math.max(exponentField, 1) - format.exponentBias - format.significandBits)
  const magnitude = (exponentField === 0 ? fraction : fraction + 2 ** format.significandBits) * unit
  return bits >>> format.signShift === 0 ? magnitude : -magnitude
}
