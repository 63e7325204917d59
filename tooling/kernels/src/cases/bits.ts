import { casesOf } from '../corpus.js'

const { each } = casesOf('bits')

const count = (value: bigint): number => value.toString(2).replaceAll('0', '').length
const clz = (value: bigint, bits: number): number => (value === 0n ? bits : bits - value.toString(2).length)
const first = (value: bigint, bits: number): number => {
  for (let at = 0; at < bits; at += 1) if (((value >> BigInt(at)) & 1n) === 1n) return at + 1
  return 0
}
const reversed = (value: bigint, bits: number): bigint =>
  BigInt(`0b${[...value.toString(2).padStart(bits, '0')].reverse().join('')}`)
const lowBits = (length: number): bigint => (1n << BigInt(length)) - 1n
const byteOf = (a: number, b: number, at: number): number =>
  Number((((BigInt(b) << 32n) | BigInt(a)) >> BigInt(8 * (at & 7))) & 0xffn)
const ofBytes = (...bytes: number[]): number => bytes.reduce((word, byte, at) => word + byte * 2 ** (8 * at), 0)

each('counts', ['u32'], 'i32', (a: number) => [
  ...[count(BigInt(a)), Math.clz32(a), first(BigInt(a), 32)],
  Number(BigInt.asIntN(32, reversed(BigInt(a), 32))),
])
each('counts64', ['u64'], 'i32', (a: bigint) => [count(a), clz(a, 64), first(a, 64)])
each('reverse64', ['u64'], 'u64', (a: bigint) => [reversed(a, 64)])
each('shifts', ['u32', 'u32'], 'u32', (a: number, b: number) => {
  const by = b % 40
  const wide = BigInt(a)
  return [
    by > 31 ? 0 : a << by,
    by > 31 ? 0 : a >>> by,
    (a | 0) >> Math.min(by, 31),
    Number(BigInt.asUintN(32, (wide << BigInt(by & 31)) | (wide >> BigInt(-by & 31)))),
  ]
})
each('shifts64', ['u64', 'u32'], 'u64', (a: bigint, b: number) => {
  const by = BigInt(Math.min(b % 80, 64))
  return [a << by, a >> by, BigInt.asIntN(64, a) >> by]
})
each('funnels', ['u32', 'u32', 'u32'], 'u32', (a: number, b: number, c: number) => {
  const by = BigInt(c % 40)
  const wide = (BigInt(b) << 32n) | BigInt(a)
  const clamped = by > 32n ? 32n : by
  return [(wide << (by & 31n)) >> 32n, wide >> (by & 31n), (wide << clamped) >> 32n, wide >> clamped].map((value) =>
    Number(value & 0xffffffffn),
  )
})
each('fields', ['u32', 'u32', 'u32'], 'u32', (a: number, b: number, c: number) => {
  const at = b % 36
  const length = c % 36
  const field = (BigInt(a) >> BigInt(at)) & lowBits(length)
  // The sign is the last bit of the field. If the field extends beyond the word, it is the last bit of the word.
  const sign = length === 0 ? 0n : (BigInt(a) >> BigInt(Math.min(at + length - 1, 31))) & 1n
  const inside = Math.max(0, Math.min(length, 32 - at))
  const extended = sign === 1n ? (field & lowBits(inside)) | (~0n << BigInt(inside)) : field
  const mask = (lowBits(length) << BigInt(at)) & 0xffffffffn
  const inserted = (BigInt(b) & ~mask) | ((BigInt(a) << BigInt(at)) & mask)
  return [Number(field), Number(BigInt.asUintN(32, extended)), Number(BigInt.asUintN(32, inserted))]
})
each('logic3', ['u32', 'u32', 'u32'], 'u32', (a: number, b: number, c: number) => {
  let looked = 0
  for (let bit = 0; bit < 32; bit += 1) {
    const row = (((a >>> bit) & 1) << 2) | (((b >>> bit) & 1) << 1) | ((c >>> bit) & 1)
    looked |= ((0x1b >> row) & 1) << bit
  }
  return [(a & b) | (~a & c), a ^ b ^ c, (a & b) | (a & c) | (b & c), looked]
})
each('permutes', ['u32', 'u32', 'u32'], 'u32', (a: number, b: number, c: number) => {
  const chosen = [0, 1, 2, 3].map((at) => {
    const selector = (c >>> (4 * at)) & 15
    const byte = byteOf(a, b, selector)
    return (selector & 8) === 0 ? byte : byte >= 128 ? 255 : 0
  })
  const from = c & 3
  const forward = [0, 1, 2, 3].map((at) => byteOf(a, b, from + at))
  const half = (c & 1) * 2
  const twice = [half, half + 1, half, half + 1].map((at) => byteOf(a, b, at))
  return [ofBytes(...chosen), ofBytes(...forward), ofBytes(...twice)]
})
each('masks', ['u32', 'u32'], 'u32', (a: number, b: number) => {
  const at = a & 31
  const length = b & 31
  return [
    Number((lowBits(length) << BigInt(at)) & 0xffffffffn),
    Number(BigInt(a) & lowBits(length)),
    a === 0 ? 2 ** 32 - 1 : 31 - Math.clz32(a),
  ]
})
each('nthSet', ['u32', 'u32'], 'i32', (a: number, b: number) => {
  const base = b & 31
  let left = ((b >>> 8) & 15) - 7
  if (left === 0) return [((a >>> base) & 1) === 1 ? base : -1]
  const step = left > 0 ? 1 : -1
  for (let at = base; at >= 0 && at < 32; at += step) {
    if (((a >>> at) & 1) === 0) continue
    left -= step
    if (left === 0) return [at]
  }
  return [-1]
})
each('interleave', ['u32', 'u32'], 'u64', (a: number, b: number) => {
  let z = 0n
  for (let bit = 0; bit < 32; bit += 1) {
    z |= (BigInt((a >>> bit) & 1) << BigInt(2 * bit)) | (BigInt((b >>> bit) & 1) << BigInt(2 * bit + 1))
  }
  return [z]
})
each('gray', ['u32'], 'u32', (a: number) => [a ^ (a >>> 1), a])
each('crc32', ['u32'], 'u32', (a: number) => {
  let crc = 0xffffffffn
  for (let byte = 0; byte < 4; byte += 1) {
    crc ^= BigInt((a >>> (8 * byte)) & 255)
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1n) === 1n ? (crc >> 1n) ^ 0xedb88320n : crc >> 1n
  }
  return [Number(crc ^ 0xffffffffn)]
})
each('hashes', ['u32'], 'u32', (a: number) => {
  let h = a ^ (a >>> 16)
  h = Math.imul(h, 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  let f = 2166136261
  for (let byte = 0; byte < 4; byte += 1) f = Math.imul(f ^ ((a >>> (8 * byte)) & 255), 16777619)
  return [h ^ (h >>> 16), f]
})
