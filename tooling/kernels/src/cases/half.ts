import { casesOf } from '../corpus.js'
import {
  bf16,
  bitsOf,
  convert,
  type Format,
  f16,
  fused,
  multiply,
  ofInteger,
  rounded,
  add as sum,
  toInteger,
  valueOfBits,
} from '../real.js'

const { each } = casesOf('half')

const h = (bits: number): number => valueOfBits(bits, f16)
const b16 = (bits: number): number => valueOfBits(bits, bf16)
const bitsOfHalf = (value: number): number => bitsOf(value, f16)
const bitsOfBf16 = (value: number): number => bitsOf(value, bf16)
const flag = (is: boolean, at = 0): number => (is ? 1 << at : 0)
const extreme = (a: number, b: number, of: (a: number, b: number) => number): number =>
  Number.isNaN(a) ? b : Number.isNaN(b) ? a : of(a, b)
const modes = ['rn', 'rz', 'ru', 'rd'] as const
const pair =
  (of: (...parts: number[]) => number) =>
  (...words: number[]): number => {
    const low = of(...words.map((word) => h(word & 0xffff)))
    const high = of(...words.map((word) => h(word >>> 16)))
    return (bitsOfHalf(low) | (bitsOfHalf(high) << 16)) >>> 0
  }
const clamped = (value: bigint, low: bigint, high: bigint): number =>
  Number(value < low ? low : value > high ? high : value)
const integerOf = (value: number, mode: (typeof modes)[number], low: bigint, high: bigint): number => {
  if (Number.isNaN(value)) return 0
  if (!Number.isFinite(value)) return Number(value > 0 ? high : low)
  return clamped(toInteger(value, mode), low, high)
}

each('halfBasic', ['u16', 'u16'], 'u16', (a: number, b: number) => [
  bitsOfHalf(sum(h(a), h(b), f16)),
  bitsOfHalf(sum(h(a), -h(b), f16)),
  bitsOfHalf(multiply(h(a), h(b), f16)),
  Number.isNaN(h(a)) ? 0 : a ^ 0x8000,
])
each('halfFused', ['u16', 'u16', 'u16'], 'u16', (a: number, b: number, c: number) => [
  bitsOfHalf(fused(h(a), h(b), h(c), f16)),
])
each('halfExtremes', ['u16', 'u16'], 'u16', (a: number, b: number) => [
  bitsOfHalf(extreme(h(a), h(b), Math.min)),
  bitsOfHalf(extreme(h(a), h(b), Math.max)),
])
each('halfCompare', ['u16', 'u16'], 'i32', (a: number, b: number) => {
  const [x, y] = [h(a), h(b)]
  const isOther = x !== y && !Number.isNaN(x) && !Number.isNaN(y)
  return [flag(x < y) | flag(x <= y, 1) | flag(x === y, 2) | flag(x > y, 3) | flag(isOther, 4)]
})
each('halfToFloat', ['u16'], 'f32', (a: number) => [h(a), b16(a)])
each('floatToHalf', ['f32'], 'u16', (a: number) => [
  ...modes.map((mode) => bitsOfHalf(convert(a, f16, mode))),
  bitsOfBf16(convert(a, bf16)),
])
each('halfToInteger', ['u16'], 'i32', (a: number) => [
  ...(['rn', 'rz', 'ru'] as const).map((mode) => integerOf(h(a), mode, -(2n ** 31n), 2n ** 31n - 1n)),
  integerOf(h(a), 'rd', 0n, 2n ** 32n - 1n),
])
each('integerToHalf', ['i32'], 'u16', (a: number) => [
  bitsOfHalf(ofInteger(BigInt(a), f16)),
  bitsOfHalf(ofInteger(BigInt(a), f16, 'rz')),
])
each('bf16Basic', ['u16', 'u16'], 'u16', (a: number, b: number) => [
  bitsOfBf16(sum(b16(a), b16(b), bf16)),
  bitsOfBf16(multiply(b16(a), b16(b), bf16)),
  bitsOfBf16(extreme(b16(a), b16(b), Math.max)),
])
each('halfPairs', ['u32', 'u32'], 'u32', (a: number, b: number) => {
  const total = pair((x, y) => sum(x as number, y as number, f16))(a, b)
  return [
    total,
    pair((x, y) => multiply(x as number, y as number, f16))(a, b),
    pair((x, y, z) => fused(x as number, y as number, z as number, f16))(a, b, total),
  ]
})

/** 8-bit floats: e4m3 has no infinities and one NaN per sign. e5m2 is the upper half of f16. */
function toSmall(a: number, exponentBits: 4 | 5): number {
  const fraction = 7 - exponentBits
  const least = exponentBits === 4 ? -9 : -16
  const largest = exponentBits === 4 ? 448 : 57344
  if (Number.isNaN(a)) return 0x7f
  const sign = a < 0 || Object.is(a, -0) ? 0x80 : 0
  const format: Format = { bits: fraction + 1, least, largest: Infinity }
  const value = Math.min(Math.abs(convert(a, format)), largest)
  if (value < 2 ** (least + fraction)) return sign | (value / 2 ** least)
  const exponent = Math.floor(Math.log2(value))
  return sign | ((exponent - least - fraction + 1) << fraction) | ((value / 2 ** exponent - 1) * 2 ** fraction)
}
each('toFloat8', ['f32'], 'u8', (a: number) => [toSmall(a, 4), toSmall(a, 5)])
each('fromFloat8', ['u8'], 'u16', (a: number) => {
  const exponent = (a >> 3) & 15
  const size = exponent === 0 ? (a & 7) * 2 ** -9 : (1 + (a & 7) / 8) * 2 ** (exponent - 7)
  const value = (a & 0x7f) === 0x7f ? NaN : (a & 0x80) === 0 ? size : -size
  const five = h(a << 8)
  return [bitsOfHalf(value), Number.isNaN(five) ? 0x7fff : a << 8]
})
void rounded
