import { casesOf } from '../corpus.js'
import { bitsOf, f64 as double, f16, fused } from '../real.js'

const { add } = casesOf('tensor')

/** Eighths below 1. Their products and sums are exact in single precision. */
const eighths = (random: { integer(low: number, high: number): number }, length: number): number[] =>
  Array.from({ length }, () => random.integer(-8, 8) / 8)
const bits = (values: readonly number[]): Uint16Array => Uint16Array.from(values, (value) => bitsOf(value, f16))
/** Computes c[row][column] from rows of a and rows of b, with k elements each. */
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
