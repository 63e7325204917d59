import { casesOf } from '../corpus.js'
import { convert, even, f32, f64, type Mode, ofInteger, toInteger } from '../real.js'

const { each } = casesOf('convert')

const modes = ['rn', 'rz', 'ru', 'rd'] as const
const limits = {
  i32: [-(2n ** 31n), 2n ** 31n - 1n, 0n],
  u32: [0n, 2n ** 32n - 1n, 0n],
  i64: [-(2n ** 63n), 2n ** 63n - 1n, -(2n ** 63n)],
  u64: [0n, 2n ** 64n - 1n, 2n ** 63n],
} as const
/**
 * A value out of range becomes the nearest integer of the type. NaN becomes 0 from `f32` to 32 bits, otherwise only the
 * highest bit is set.
 */
function integer(value: number, mode: Mode, type: keyof typeof limits): bigint {
  const [low, high, ofNan] = limits[type]
  if (Number.isNaN(value)) return ofNan
  if (!Number.isFinite(value)) return value > 0 ? high : low
  const whole = toInteger(value, mode)
  return whole < low ? low : whole > high ? high : whole
}
const number = (value: number, mode: Mode, type: 'i32' | 'u32'): number => Number(integer(value, mode, type))
const ofDouble = (value: number, mode: Mode, type: 'i32' | 'u32'): number =>
  Number.isNaN(value) ? 2 ** 31 : number(value, mode, type)
const wrapped = (value: bigint): bigint => BigInt.asIntN(64, value)
const between = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high)
/** Avoids NaN, because it loses its payload in JavaScript. */
const noNan = (type: 'f32' | 'f64') => (random: { any(type: 'f32' | 'f64'): unknown }) => {
  const value = random.any(type) as number
  return [Number.isNaN(value) ? -0.75 : value]
}
const bits = new DataView(new ArrayBuffer(8))

each('intToFloat', ['i32'], 'f32', (a: number) => [...modes.map((mode) => ofInteger(BigInt(a), f32, mode)), a >>> 0])
each('longToFloat', ['i64'], 'f32', (a: bigint) => [
  ...(['rn', 'rz', 'ru'] as const).map((mode) => ofInteger(a, f32, mode)),
  ofInteger(BigInt.asUintN(64, a), f32, 'rd'),
])
each('longToDouble', ['i64'], 'f64', (a: bigint) => [
  ...(['rn', 'rz', 'ru'] as const).map((mode) => ofInteger(a, f64, mode)),
  ofInteger(BigInt.asUintN(64, a), f64, 'rd'),
])
each('floatToInt', ['f32'], 'i32', (a: number) => [
  ...modes.map((mode) => number(a, mode, 'i32')),
  number(a, 'rn', 'u32'),
])
each('floatToLong', ['f32'], 'i64', (a: number) => [
  ...(['rz', 'ru'] as const).map((mode) => integer(a, mode, 'i64')),
  wrapped(integer(a, 'rn', 'u64')),
])
each('doubleToInt', ['f64'], 'i32', (a: number) => [
  ...(['rn', 'rz', 'ru'] as const).map((mode) => ofDouble(a, mode, 'i32')),
  ofDouble(a, 'rd', 'u32'),
])
each('doubleToLong', ['f64'], 'i64', (a: number) => [
  ...(['rn', 'rz'] as const).map((mode) => integer(a, mode, 'i64')),
  wrapped(integer(a, 'rd', 'u64')),
])
each('doubleToFloat', ['f64'], 'f32', (a: number) => modes.map((mode) => convert(a, f32, mode)))
each('floatToDouble', ['f32'], 'f64', (a: number) => [a])
each('narrowed', ['i32'], 'i32', (a: number) => [(a << 24) >> 24, a & 0xff, (a << 16) >> 16, a & 0xffff])
each('saturated', ['i32'], 'i32', (a: number) => [
  between(a, -128, 127),
  between(a, 0, 255),
  between(a, -32768, 32767),
  Math.max(a, 0),
])
each('saturatedFloat', ['f32'], 'f32', (a: number) => [
  a > 0 ? Math.min(a, 1) : 0,
  even(Math.abs(a) < 2 ** -126 ? a * 0 : a),
])
each(
  'partsOfDouble',
  ['f64'],
  'i32',
  (a: number) => {
    bits.setFloat64(0, a)
    return [bits.getInt32(0), bits.getInt32(4)]
  },
  { values: noNan('f64') },
)
each('doubleOfParts', ['i32', 'i32'], 'f64', (a: number, b: number) => {
  bits.setInt32(0, a)
  bits.setInt32(4, b)
  return [bits.getFloat64(0)]
})
each(
  'bitsOfFloat',
  ['f32'],
  'i32',
  (a: number) => {
    bits.setFloat32(0, a)
    return [bits.getInt32(0), bits.getInt32(0) ^ 0x80000000]
  },
  { values: noNan('f32') },
)
