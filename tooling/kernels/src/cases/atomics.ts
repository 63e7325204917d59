import { casesOf } from '../corpus.js'
import { bf16, f16, valueOfBits } from '../real.js'

const { add } = casesOf('atomics')

const grid = (n: number, block: number) => ({ grid: Math.ceil(n / block), block })
const u32 = (value: number): number => value >>> 0

add('addIntegers', async (t) => {
  const n = t.size()
  const data = t.array('i32', n)
  const [, sums, wide] = await t.run(grid(n, 96), data, new Int32Array(4), new BigUint64Array(1), n)
  const sum = data.reduce((total, value) => (total + value) | 0, 0)
  const indices = [0, 1].map((odd) => Array.from(data, (_, i) => (i % 2 === odd ? i : 0)).reduce((a, b) => a + b, 0))
  t.same(sums as Int32Array, [sum, (0 - sum) | 0, ...indices])
  const squares = data.reduce((total, value) => total + BigInt(value) * BigInt(value), 0n)
  t.same(wide as BigUint64Array, [BigInt.asUintN(64, squares)])
})
add('addFloats', async (t) => {
  const n = t.size()
  const data = t.integers(n, 0, 100000)
  const [, sums, wide] = await t.run(grid(n, 64), data, new Float32Array(4), new Float64Array(1), n)
  const expected = new Float32Array(4)
  for (const value of data) expected[value & 3]! += (value & 31) * 0.25
  t.same(sums as Float32Array, expected)
  t.same(wide as Float64Array, [data.reduce((sum, value) => sum + (value & 1023) * 0.125, 0)])
})
add('addHalves', async (t) => {
  const n = t.size()
  const data = t.integers(n, 0, 1000)
  const [, sums, pairs, bfloats] = await t.run(
    grid(n, 64),
    data,
    new Uint16Array(64),
    new Uint16Array(128),
    new Uint16Array(64),
    n,
  )
  const counts = new Array<number>(64).fill(0)
  for (const value of data) counts[value & 63]! += 1
  t.same(
    Array.from(sums as Uint16Array, (bits) => valueOfBits(bits, f16)),
    counts.map((count) => count / 2),
  )
  t.same(
    Array.from(bfloats as Uint16Array, (bits) => valueOfBits(bits, bf16)),
    counts.map((count) => count / 2),
  )
  t.same(
    Array.from(pairs as Uint16Array, (bits) => valueOfBits(bits, f16)),
    counts.flatMap((count) => [count, count === 0 ? 0 : count * -0.25]),
  )
})
add('extremes', async (t) => {
  const n = t.size()
  const data = t.array('i32', n)
  const start = Int32Array.of(2 ** 31 - 1, -(2 ** 31), -1, 0)
  const [, out, wide] = await t.run(grid(n, 128), data, start, BigInt64Array.of(2n ** 62n, -(2n ** 62n), 0n), n)
  const list = [...data]
  const unsigned = list.map(u32)
  t.same(out as Int32Array, [
    Math.min(...list),
    Math.max(...list),
    Math.min(...unsigned) | 0,
    Math.max(...unsigned) | 0,
  ])
  const wides = list.map((value) => BigInt.asIntN(64, BigInt(value) * 0x100000001n))
  const reduced = (from: readonly bigint[], start: bigint, isMore: (a: bigint, b: bigint) => boolean): bigint =>
    from.reduce((best, value) => (isMore(value, best) ? value : best), start)
  t.same(wide as BigInt64Array, [
    reduced(wides, 2n ** 62n, (a, b) => a < b),
    reduced(wides, -(2n ** 62n), (a, b) => a > b),
    reduced(wides, 0n, (a, b) => BigInt.asUintN(64, a) > BigInt.asUintN(64, b)),
  ])
})
add('bitwise', async (t) => {
  const n = t.size()
  const data = t.array('u32', n)
  const all = 2n ** 64n - 1n
  const [, out, wide] = await t.run(
    grid(n, 64),
    data,
    Uint32Array.of(2 ** 32 - 1, 0, 0),
    BigUint64Array.of(0n, 0n, all),
    n,
  )
  const fold = (of: (sum: number, value: number) => number, start: number): number => u32(data.reduce(of, start))
  t.same(out as Uint32Array, [
    fold((sum, value) => sum & (value | 0xf0f0f0f0), -1),
    fold((sum, value) => sum | (value & 0x0f0f0f0f), 0),
    fold((sum, value) => sum ^ value, 0),
  ])
  const list = Array.from(data, BigInt)
  t.same(wide as BigUint64Array, [
    list.reduce((sum, value) => sum | ((value & 0xffn) << 32n), 0n),
    list.reduce((sum, value) => sum ^ (value << 16n), 0n),
    list.reduce((sum, value) => sum & ~(1n << (value & 63n)) & all, all),
  ])
})
add('tickets', async (t) => {
  const n = t.size()
  const [counters, taken] = await t.run(grid(n, 96), Uint32Array.of(0, 0, 16), new Uint32Array(n + 34), n)
  t.same(counters as Uint32Array, [n, n % 17, 16 - (n % 17)])
  const round = (at: number): number => Math.floor((n - at + 16) / 17)
  t.same(taken as Uint32Array, [
    ...new Array<number>(n).fill(1),
    ...Array.from({ length: 17 }, (_, at) => round(at)),
    ...Array.from({ length: 17 }, (_, at) => round(16 - at)),
  ])
})
add('exchanges', async (t) => {
  const n = t.size()
  const [cell, seen] = await t.run(grid(n, 64), Int32Array.of(-1), new Int32Array(n), n)
  // Each value was written once and read once, except the last value.
  const all = [...(seen as Int32Array), (cell as Int32Array)[0] as number].sort((a, b) => a - b)
  t.same(
    all,
    Array.from({ length: n + 1 }, (_, i) => i - 1),
  )
})
add('swapLoop', async (t) => {
  const n = t.size(100, 600)
  const data = t.array('u32', n)
  const [, cells, wide] = await t.run(grid(n, 64), data, new Uint32Array(4).fill(1), new BigUint64Array(1), n)
  const expected = [1, 1, 1, 1]
  data.forEach((value, i) => {
    expected[i & 3] = ((expected[i & 3] as number) * ((value % 1000) + 1)) % 65521
  })
  t.same(cells as Uint32Array, expected)
  t.same(wide as BigUint64Array, [data.reduce((sum, value) => sum + (BigInt(value) << 8n), 0n)])
})
add('swapShort', async (t) => {
  const n = t.size(100, 600)
  const [cells] = await t.run(grid(n, 64), new Uint16Array(5), n)
  t.same(
    cells as Uint16Array,
    Array.from({ length: 5 }, (_, at) => Math.ceil((n - at) / 5) * 3),
  )
})
add('sharedAtomics', async (t) => {
  const block = t.random.pick([64, 96, 256])
  const n = t.size()
  const data = t.array('i32', n)
  const blocks = Math.ceil(n / block)
  const [, out] = await t.run({ grid: blocks, block }, data, new Int32Array(blocks * 8), n)
  const expected = Array.from({ length: blocks }, (_, at) => {
    const own = [...data.subarray(at * block, (at + 1) * block)]
    const wide = own.reduce((sum, value) => sum + BigInt(u32(value)), 0n)
    return [
      own.reduce((sum, value) => (sum + value) | 0, 0),
      Math.min(2 ** 31 - 1, ...own),
      Math.max(-(2 ** 31) + 1, ...own),
      own.reduce((sum, value) => sum ^ value, 0),
      own.length % 7,
      own.reduce((sum, value) => sum + (value & 7), 0),
      Number(BigInt.asIntN(32, wide)),
      Number(wide >> 32n),
    ]
  })
  t.same(out as Int32Array, expected.flat())
})
add('scopes', async (t) => {
  const block = 64
  const n = t.size(300, 600)
  const blocks = Math.ceil(n / block)
  const data = t.integers(n, -1000, 1000)
  const [, out] = await t.run({ grid: blocks, block }, data, new Int32Array(blocks + 3), n)
  const sum = (list: Int32Array): number => list.reduce((total, value) => total + value, 0)
  const own = Array.from({ length: blocks }, (_, at) => sum(data.subarray(at * block, (at + 1) * block)))
  t.same(out as Int32Array, [...own, sum(data), sum(data), Math.max(0, ...data)])
})
