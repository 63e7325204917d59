import { casesOf } from '../corpus.js'

const { each } = casesOf('integer')

const i32 = (value: bigint | number): number => Number(BigInt.asIntN(32, BigInt(value)))
const u32 = (value: bigint | number): number => Number(BigInt.asUintN(32, BigInt(value)))
const high = (a: number, b: number): number => i32((BigInt(a) * BigInt(b)) >> 32n)
const asSigned = (value: bigint): bigint => BigInt.asIntN(64, value)
const asUnsigned = (value: bigint): bigint => BigInt.asUintN(64, value)
/** Splits a word into parts, as signed or unsigned numbers. */
const parts = (word: number, bits: number, isSigned: boolean): number[] =>
  Array.from({ length: 32 / bits }, (_, index) => {
    const part = Number((BigInt(u32(word)) >> BigInt(index * bits)) & ((1n << BigInt(bits)) - 1n))
    return isSigned && part >= 2 ** (bits - 1) ? part - 2 ** bits : part
  })
const dot = (a: readonly number[], b: readonly number[], c: number): number =>
  i32(a.reduce((sum, value, index) => sum + value * (b[index] as number), c))
const joined = (list: readonly number[], bits: number): number =>
  u32(list.reduce((word, part, index) => word | (BigInt.asUintN(bits, BigInt(part)) << BigInt(index * bits)), 0n))
const eachPart = (a: number, b: number, bits: number, of: (x: number, y: number) => number): number => {
  const other = parts(b, bits, false)
  return joined(
    parts(a, bits, false).map((part, index) => of(part, other[index] as number)),
    bits,
  )
}

each('addSubtract', ['i32', 'i32'], 'u32', (a: number, b: number) => [a + b, a - b, -a])
each('multiply32', ['i32', 'i32'], 'i32', (a: number, b: number) => [Math.imul(a, b), high(a, b), high(u32(a), u32(b))])
each('divide32', ['i32', 'i32'], 'i32', (a: number, b: number) => [
  b === 0 || (b === -1 && a === -(2 ** 31)) ? 0 : Math.trunc(a / b),
  b === 0 || b === -1 ? 0 : (a % b) + 0,
])
each('divideUnsigned', ['u32', 'u32'], 'u32', (a: number, b: number) => (b === 0 ? [0, 0] : [Math.floor(a / b), a % b]))
each('divideByConstants', ['i32'], 'i32', (a: number) => [
  ...[Math.trunc(a / 3), a % 7, Math.trunc(a / -16)],
  ...[Math.floor(u32(a) / 10), u32(a) % 1000],
])
each('arithmetic64', ['i64', 'i64'], 'u64', (a: bigint, b: bigint) => [a + b, a - b, a * b, (a * b) >> 64n])
each('divide64', ['i64', 'i64'], 'i64', (a: bigint, b: bigint) => (b === 0n || b === -1n ? [0n, 0n] : [a / b, a % b]))
each('divideUnsigned64', ['u64', 'u64'], 'u64', (a: bigint, b: bigint) => [
  ...(b === 0n ? [0n, 0n] : [a / b, a % b]),
  (a * b) >> 64n,
])
each('widen', ['i32', 'i32'], 'i64', (a: number, b: number) => [BigInt(a) * BigInt(b), BigInt(u32(a)) * BigInt(u32(b))])
each('multiplyAdd', ['i32', 'i32', 'i32'], 'i64', (a: number, b: number, c: number) => [
  BigInt(a) * BigInt(b) + BigInt(c),
  BigInt(i32(Math.imul(a, b) + c)),
])
each('multiply24', ['i32', 'i32'], 'i32', (a: number, b: number) => {
  const low = (value: number, isSigned: boolean): bigint =>
    isSigned ? BigInt.asIntN(24, BigInt(value)) : BigInt.asUintN(24, BigInt(value))
  return [i32(low(a, true) * low(b, true)), i32(low(a, false) * low(b, false))]
})
each('sumOfDifferences', ['i32', 'i32', 'u32'], 'u32', (a: number, b: number, c: number) => [
  Math.abs(a - b) + c,
  Math.abs(u32(a) - u32(b)) + c,
])
each('dots', ['i32', 'i32', 'i32'], 'i32', (a: number, b: number, c: number) => [
  dot(parts(a, 8, true), parts(b, 8, true), c),
  dot(parts(a, 8, false), parts(b, 8, false), c),
  dot(parts(a, 16, true), parts(b, 8, true).slice(0, 2), c),
  dot(parts(a, 16, true), parts(b, 8, true).slice(2), c),
])
each('extremes', ['i32', 'i32'], 'i32', (a: number, b: number) => [
  ...[Math.min(a, b), Math.max(a, b)],
  ...[Math.min(u32(a), u32(b)), Math.abs(b)],
])
each('extremes64', ['i64', 'i64'], 'i64', (a: bigint, b: bigint) => [
  a < b ? a : b,
  a > b ? a : b,
  asSigned(asUnsigned(a) > asUnsigned(b) ? a : b),
])
each('averages', ['i32', 'i32'], 'i32', (a: number, b: number) => [
  Math.floor((a + b) / 2),
  Math.floor((a + b + 1) / 2),
  Math.floor((u32(a) + u32(b)) / 2),
  Math.floor((u32(a) + u32(b) + 1) / 2),
])
each('narrow16', ['i16', 'i16'], 'i32', (a: number, b: number) => [
  ((a + b) << 16) >> 16,
  (Math.imul(a, b) << 16) >> 16,
  (a - b) & 0xffff,
  b === 0 ? 0 : a % b,
])
each('narrow8', ['i8', 'u8'], 'i32', (a: number, b: number) => [
  ((a + b) << 24) >> 24,
  Math.imul(a, b) & 0xff,
  a >> (b & 7),
  b === 0 ? 0 : Math.trunc(a / b),
])
each('wide128', ['u64', 'u64'], 'u64', (a: bigint, b: bigint) => {
  const product = a * b
  const sum = product + (b << 60n)
  return [product, product >> 64n, sum, sum >> 64n]
})
each('carries', ['u64', 'u64'], 'u32', (a: bigint, b: bigint) => {
  const sum = a + b
  const isLess = (a & 0xffffffffn) < (b & 0xffffffffn)
  return [u32(sum), u32(sum >> 32n), u32(sum >> 64n), isLess ? 6 : 7]
})
each('pairs', ['u32', 'u32'], 'u32', (a: number, b: number) => [
  eachPart(a, b, 16, (x, y) => x + y),
  eachPart(a, b, 8, (x, y) => x - y),
  eachPart(a, b, 8, (x, y) => Math.floor((x + y + 1) / 2)),
  eachPart(a, b, 8, (x, y) => (x === y ? 255 : 0)),
])
each('powersModulo', ['u32'], 'u32', (a: number) => {
  let result = 1n
  let base = BigInt(a)
  for (let exponent = (a | 1) >>> 0; exponent !== 0; exponent >>>= 1) {
    if ((exponent & 1) === 1) result = BigInt.asUintN(32, BigInt.asUintN(64, result * base) % 1000003n)
    base = BigInt.asUintN(64, base * base) % 1000003n
  }
  return [Number(result)]
})
