import { casesOf } from '../corpus.js'
import { bitsOf, f64 as double, f16, fused } from '../real.js'

const { add, each } = casesOf('tensor')

/** Eighths below 1: their products and sums are exact in single precision. */
const eighths = (random: { integer(low: number, high: number): number }, length: number): number[] =>
  Array.from({ length }, () => random.integer(-8, 8) / 8)
const bits = (values: readonly number[]): Uint16Array => Uint16Array.from(values, (value) => bitsOf(value, f16))
/** c[row][column] of rows of a and rows of b, with k elements each. */
const product = (a: ArrayLike<number>, b: ArrayLike<number>, m: number, n: number, k: number): number[] =>
  Array.from({ length: m * n }, (_, at) => {
    let sum = 0
    for (let i = 0; i < k; i += 1) sum += (a[Math.floor(at / n) * k + i] as number) * (b[(at % n) * k + i] as number)
    return sum
  })

add('wmmaHalf', async (t) => {
  const [m, n, k] = [48, 32, 80]
  const [a, b] = [eighths(t.random, m * k), eighths(t.random, n * k)]
  const [, , c] = await t.run({ grid: [n / 16, m / 16], block: 32 }, bits(a), bits(b), new Float32Array(m * n), n, k)
  t.same(c as Float32Array, product(a, b, m, n, k))
})
add('wmmaBytes', async (t) => {
  const [m, n, k] = [32, 48, 64]
  const [a, b] = [t.array('i8', m * k), t.array('i8', n * k)]
  const [, , c] = await t.run({ grid: [n / 16, m / 16], block: 32 }, a, b, new Int32Array(m * n), n, k)
  t.same(c as Int32Array, product(a, b, m, n, k))
})
add('mmaLoaded', async (t) => {
  const tiles = 5
  const [a, b] = [eighths(t.random, tiles * 256), eighths(t.random, tiles * 128)]
  const [, , c] = await t.run({ grid: tiles, block: 32 }, bits(a), bits(b), new Float32Array(tiles * 128))
  const expected = Array.from({ length: tiles }, (_, at) => product(a.slice(at * 256), b.slice(at * 128), 16, 8, 16))
  t.same(c as Float32Array, expected.flat())
})
add('mmaDouble', async (t) => {
  const tiles = 7
  const [a, b] = [t.doubles(tiles * 32, -1, 1), t.doubles(tiles * 32, -1, 1)]
  const [, , c] = await t.run({ grid: tiles, block: 32 }, a, b, new Float64Array(tiles * 64))
  const expected = Array.from({ length: tiles * 64 }, (_, at) => {
    const [tile, row, column] = [Math.floor(at / 64), Math.floor(at / 8) % 8, at % 8]
    let sum = 0
    for (let i = 0; i < 4; i += 1)
      sum = fused(a[tile * 32 + row * 4 + i] as number, b[tile * 32 + column * 4 + i] as number, sum, double)
    return sum
  })
  t.same(c as Float64Array, expected)
})
add('pipelined', async (t) => {
  const [blocks, tiles] = [3, t.size(3, 9)]
  const data = t.array('i32', blocks * tiles * 256)
  const [, out] = await t.run({ grid: blocks, block: 64 }, data, new Int32Array(blocks * 64), tiles)
  const expected = Int32Array.from({ length: blocks * 64 }, (_, i) => {
    let sum = 0
    for (let tile = 0; tile < tiles; tile += 1) {
      const at = ((Math.floor(i / 64) * tiles + tile) * 64 + 63 - (i % 64)) * 4
      const [x, y, z, w] = data.subarray(at, at + 4) as unknown as [number, number, number, number]
      sum = (Math.imul(sum, 31) + (x ^ y) + (z ^ w)) | 0
    }
    return sum
  })
  t.same(out as Int32Array, expected)
})
add('splitBarrier', async (t) => {
  const block = t.random.pick([32, 70, 96])
  const data = t.integers(block * 3, -1000, 1000)
  const [, out] = await t.run({ grid: 3, block }, data, new Int32Array(data.length))
  let kept = data
  for (let round = 0; round < 3; round += 1)
    kept = kept.map((x, i) => x * 3 + round + (kept[i - (i % block) + ((i + 1) % block)] as number))
  t.same(out as Int32Array, kept)
})
each('videoInstructions', ['i32', 'i32', 'i32'], 'i32', (a: number, b: number, c: number) => {
  const byte = (word: number, at: number): number => (word >>> (8 * at)) & 255
  const half = (word: number, at: number): number => (word << (16 - 16 * at)) >> 16
  const differences = [0, 1, 2, 3].reduce((sum, at) => sum + Math.abs(byte(a, at) - byte(b, at)), 0)
  const largest = (at: number): number => Math.max(half(a, at), half(b, at)) & 0xffff
  return [Math.min(Math.max(a + b, -(2 ** 31)), 2 ** 31 - 1), (c + differences) | 0, largest(0) | (largest(1) << 16)]
})
