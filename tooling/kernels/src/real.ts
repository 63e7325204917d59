/** Arithmetic of floats with one rounding, by fractions of integers: slow, but correct. */

export type Mode = 'rn' | 'rz' | 'ru' | 'rd'
export interface Format {
  /** Bits of the significand, including the hidden bit. */
  readonly bits: number
  /** The exponent of the smallest subnormal number. */
  readonly least: number
  readonly largest: number
}
export const f16: Format = { bits: 11, least: -24, largest: 65504 }
export const bf16: Format = { bits: 8, least: -133, largest: 2 ** 127 * (2 - 2 ** -7) }
export const f32: Format = { bits: 24, least: -149, largest: 2 ** 127 * (2 - 2 ** -23) }
export const f64: Format = { bits: 53, least: -1074, largest: Number.MAX_VALUE }

export interface Fraction {
  readonly top: bigint
  readonly bottom: bigint
}

const lengthOf = (value: bigint): number => value.toString(2).length
const words = new DataView(new ArrayBuffer(8))

/** Converts a finite double to an exact fraction. */
export function exactly(value: number): Fraction {
  words.setFloat64(0, value)
  const all = words.getBigUint64(0)
  const field = Number((all >> 52n) & 0x7ffn)
  const bits = (all & (2n ** 52n - 1n)) | (field === 0 ? 0n : 2n ** 52n)
  const exponent = (field === 0 ? 1 : field) - 1075
  const top = value < 0 ? -bits : bits
  return exponent >= 0 ? { top: top << BigInt(exponent), bottom: 1n } : { top, bottom: 1n << BigInt(-exponent) }
}

/** Rounds a fraction to a format. `zero` is the result for an exact zero. */
export function rounded({ top, bottom }: Fraction, format: Format, mode: Mode = 'rn', zero = 0): number {
  if (top === 0n) return zero
  const isNegative = top < 0n
  const size = isNegative ? -top : top
  let exponent = lengthOf(size) - lengthOf(bottom)
  const isBelow = exponent >= 0 ? size < bottom << BigInt(exponent) : size << BigInt(-exponent) < bottom
  if (isBelow) exponent -= 1
  const unit = Math.max(exponent - format.bits + 1, format.least)
  const scaled = unit >= 0 ? size : size << BigInt(-unit)
  const divisor = unit >= 0 ? bottom << BigInt(unit) : bottom
  let whole = scaled / divisor
  const rest = scaled - whole * divisor
  const isAway = mode === (isNegative ? 'rd' : 'ru')
  if (rest !== 0n && isAway) whole += 1n
  if (mode === 'rn' && (rest * 2n > divisor || (rest * 2n === divisor && (whole & 1n) === 1n))) whole += 1n
  // Multiplies in two steps, because a power below the smallest double would be lost.
  const half = Math.trunc(unit / 2)
  const value = Number(whole) * 2 ** half * 2 ** (unit - half)
  const isBeyond = value > format.largest || exponent > 1023
  const result = !isBeyond ? value : mode === 'rn' || isAway ? Infinity : format.largest
  return isNegative ? -result : result
}

const isFinite3 = (...values: number[]): boolean => values.every((value) => Number.isFinite(value))

export function add(a: number, b: number, format: Format, mode: Mode = 'rn'): number {
  if (!isFinite3(a, b)) return a + b
  const x = exactly(a)
  const y = exactly(b)
  const top = x.top * y.bottom + y.top * x.bottom
  // An exact zero is -0 only if both numbers are -0, or if the mode rounds down.
  const zero = a === 0 && b === 0 ? (Object.is(a, b) ? a : mode === 'rd' ? -0 : 0) : mode === 'rd' ? -0 : 0
  return rounded({ top, bottom: x.bottom * y.bottom }, format, mode, zero)
}

export function multiply(a: number, b: number, format: Format, mode: Mode = 'rn'): number {
  if (!isFinite3(a, b) || a === 0 || b === 0) return a * b
  const x = exactly(a)
  const y = exactly(b)
  return signed(rounded({ top: x.top * y.top, bottom: x.bottom * y.bottom }, format, mode), a < 0 !== b < 0)
}

export function divide(a: number, b: number, format: Format, mode: Mode = 'rn'): number {
  if (!isFinite3(a, b) || a === 0 || b === 0) return a / b
  const x = exactly(a)
  const y = exactly(b)
  const sign = b < 0 ? -1n : 1n
  const top = sign * x.top * y.bottom
  return signed(rounded({ top, bottom: sign * y.top * x.bottom }, format, mode), a < 0 !== b < 0)
}

export function fused(a: number, b: number, c: number, format: Format, mode: Mode = 'rn'): number {
  if (!isFinite3(a, b)) return a * b + c
  if (!Number.isFinite(c)) return c
  const x = exactly(a)
  const y = exactly(b)
  const z = exactly(c)
  const bottom = x.bottom * y.bottom
  const top = x.top * y.top * z.bottom + z.top * bottom
  const isProductNegative = (a < 0 || Object.is(a, -0)) !== (b < 0 || Object.is(b, -0))
  const isThirdNegative = c < 0 || Object.is(c, -0)
  const isNothing = (a === 0 || b === 0) && c === 0
  const zero = isNothing && isProductNegative && isThirdNegative ? -0 : 0
  return rounded({ top, bottom: bottom * z.bottom }, format, mode, zero)
}

/** The square root of a number that is not negative. */
export function root(a: number, format: Format, mode: Mode = 'rn'): number {
  if (!Number.isFinite(a) || a === 0) return Math.sqrt(a)
  const { top, bottom } = exactly(a)
  // top / bottom = top * bottom / bottom². The root has 120 bits more than any format, and one last bit for the
  // remainder.
  const shifted = (top * bottom) << 240n
  let whole = 1n << BigInt((lengthOf(shifted) >> 1) + 1)
  for (;;) {
    const next = (whole + shifted / whole) >> 1n
    if (next >= whole) break
    whole = next
  }
  const isExact = whole * whole === shifted
  return rounded({ top: whole * 2n + (isExact ? 0n : 1n), bottom: bottom << 121n }, format, mode)
}

/** Rounds a number to a format. */
export function convert(a: number, format: Format, mode: Mode = 'rn'): number {
  if (!Number.isFinite(a) || a === 0) return a
  return signed(rounded(exactly(a), format, mode), a < 0)
}

/** Rounds an integer of any size to a format. */
export const ofInteger = (value: bigint, format: Format, mode: Mode = 'rn'): number =>
  rounded({ top: value, bottom: 1n }, format, mode)

/** Rounds a float to an integer. */
export function toInteger(a: number, mode: Mode): bigint {
  const whole = mode === 'ru' ? Math.ceil(a) : mode === 'rd' ? Math.floor(a) : mode === 'rz' ? Math.trunc(a) : even(a)
  return BigInt(whole)
}

/** Returns the nearest integer, and the even one of two. */
export function even(a: number): number {
  if (!Number.isFinite(a) || Math.abs(a) >= 2 ** 52) return a
  const low = Math.floor(a)
  const rest = a - low
  const result = rest < 0.5 ? low : rest > 0.5 ? low + 1 : low % 2 === 0 ? low : low + 1
  return result === 0 && (a < 0 || Object.is(a, -0)) ? -0 : result
}

const signed = (value: number, isNegative: boolean): number => (value === 0 && isNegative ? -0 : value)

const single = (a: number, b: number, c: number): number => fused(a, b, c, f32)

/** `fmaf`. It is fast if the product and the sum in double precision determine the rounding. */
export function fma32(a: number, b: number, c: number): number {
  const product = a * b // exact: 48 bits, unless the product is tiny
  const sum = product + c
  if (!Number.isFinite(sum) || Math.abs(sum) < 2 ** -100 || (product !== 0 && Math.abs(product) < 2 ** -900))
    return single(a, b, c)
  const back = sum - product
  const error = product - (sum - back) + (c - back)
  if (error === 0) return Math.fround(sum)
  // Rounds the sum to odd, so that the second rounding sees that bits were lost.
  words.setFloat64(0, sum)
  const bits = words.getBigInt64(0)
  if ((bits & 1n) === 1n) return Math.fround(sum)
  words.setBigInt64(0, bits + (error > 0 === sum > 0 ? 1n : -1n))
  return Math.fround(words.getFloat64(0))
}

/** Returns the bits of a 16-bit float. NaN has the bits that arithmetic gives it. */
export function bitsOf(value: number, format: Format): number {
  const fraction = format.bits - 1
  const most = 2 ** (15 - fraction) - 1
  if (Number.isNaN(value)) return 0x7fff
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
  const size = Math.abs(value)
  if (size === Infinity) return sign | (most << fraction)
  const unit = 2 ** format.least
  if (size < unit * 2 ** fraction) return sign | (size / unit)
  const exponent = Math.floor(Math.log2(size))
  const power = size / 2 ** exponent >= 2 ? exponent + 1 : size / 2 ** exponent < 1 ? exponent - 1 : exponent
  return sign | ((power - format.least - fraction + 1) << fraction) | ((size / 2 ** power - 1) * 2 ** fraction)
}

export function valueOfBits(bits: number, format: Format): number {
  const fraction = format.bits - 1
  const field = (bits & 0x7fff) >> fraction
  const rest = bits & (2 ** fraction - 1)
  const sign = (bits & 0x8000) === 0 ? 1 : -1
  if (field === 2 ** (15 - fraction) - 1) return rest === 0 ? sign * Infinity : NaN
  return field === 0 ? sign * rest * 2 ** format.least : sign * (rest + 2 ** fraction) * 2 ** (field - 1 + format.least)
}

/** Returns the distance between a float and the one nearest to `expected`, in units of the last place of `format`. */
export function distance(actual: number, expected: number, format: Format): number {
  if (Object.is(actual, expected) || (Number.isNaN(actual) && Number.isNaN(expected))) return 0
  if (actual === expected) return 0
  const nearest = convert(expected, format)
  if (!Number.isFinite(actual) || !Number.isFinite(nearest)) {
    if (actual === nearest) return 0
    // The distance between the largest number and infinity is one.
    return Number.isFinite(actual) && Math.abs(actual) === format.largest && Math.sign(actual) === Math.sign(nearest)
      ? 1
      : Infinity
  }
  const exponent = expected === 0 ? format.least : Math.floor(Math.log2(Math.abs(expected)))
  return Math.abs(actual - nearest) / 2 ** Math.max(exponent - format.bits + 1, format.least)
}
