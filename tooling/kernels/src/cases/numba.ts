/** Kernels that Numba made from `python/numbaKernels.py`, one module per kernel. */
import { casesOf } from '../corpus.js'
import { fma32 } from '../real.js'
import { type Argument, f32, type Trial } from '../trial.js'

const kernel = (name: string, run: (t: Trial) => Promise<void>): void => casesOf(`others/${name}`).add(name, run)

/** Numba's parameters for an array: owners, number of elements, element size, address, lengths and strides. */
function array(data: Float32Array, ...shape: readonly number[]): Argument[] {
  const long = (value: number): Argument => ({ type: 'u64', value: BigInt(value) })
  const strides = shape.map((_, at) => shape.slice(at + 1).reduce((product, length) => product * length, 4))
  return [...[0, 0, data.length, 4].map(long), data, ...[...shape, ...strides].map(long)]
}
const sumOf = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0)
const rowsOf = (data: Float32Array, columns: number): number[][] =>
  Array.from({ length: data.length / columns }, (_, row) => [...data.subarray(row * columns, (row + 1) * columns)])

kernel('numba_axpy', async (t) => {
  const n = t.size()
  const [x, y] = [t.array('f32', n, () => t.random.integer(-99, 99)), t.floats(n, -1, 1)]
  const shape = { grid: Math.ceil(n / 96), block: 96 }
  const [, , out] = await t.run(shape, ...array(x, n), ...array(y, n), ...array(new Float32Array(n), n), f32(2.5))
  t.same(
    out as Float32Array,
    x.map((value, i) => 2.5 * value + (y[i] as number)),
  )
})
kernel('numba_total', async (t) => {
  const data = t.array('f32', t.size(), () => t.random.integer(-99, 99))
  const [, out] = await t.run({ grid: 3, block: 128 }, ...array(data, data.length), ...array(new Float32Array(1), 1))
  t.same(out as Float32Array, [sumOf([...data])])
})
kernel('numba_softmax', async (t) => {
  const [rows, columns] = [t.size(20, 60), t.size(20, 60)]
  const data = t.floats(rows * columns, -6, 6)
  const arrays = [...array(data, rows, columns), ...array(new Float32Array(data.length), rows, columns)]
  const [, out] = await t.run({ grid: Math.ceil(rows / 32), block: 32 }, ...arrays)
  const expected = rowsOf(data, columns).flatMap((row) => {
    const weights = row.map((value) => Math.exp(value - Math.max(...row)))
    return weights.map((weight) => weight / sumOf(weights))
  })
  t.near(out as Float32Array, expected, 32)
})
kernel('numba_layer_norm', async (t) => {
  const [rows, columns] = [t.size(5, 15), t.size(50, 200)]
  const data = t.floats(rows * columns, -2, 3)
  const arrays = [...array(data, rows, columns), ...array(new Float32Array(data.length), rows, columns)]
  const [, out] = await t.run({ grid: rows, block: 32 }, ...arrays, f32(1e-5))
  const expected = rowsOf(data, columns).flatMap((row) => {
    const mean = sumOf(row) / columns
    const scale = 1 / Math.sqrt(sumOf(row.map((value) => (value - mean) ** 2)) / columns + Math.fround(1e-5))
    return row.map((value) => (value - mean) * scale)
  })
  t.near(out as Float32Array, expected, 16, 1)
})
kernel('numba_matmul', async (t) => {
  const [m, n, k] = [t.size(9, 40), t.size(9, 40), t.size(9, 40)]
  const [a, b] = [t.floats(m * k, -1, 1), t.floats(k * n, -1, 1)]
  const shape = { grid: [Math.ceil(n / 8), Math.ceil(m / 8)], block: [8, 8] } as const
  const arrays = [...array(a, m, k), ...array(b, k, n), ...array(new Float32Array(m * n), m, n)]
  const [, , c] = await t.run(shape, ...arrays)
  // Numba lets the compiler fuse products and sums.
  const expected = Float32Array.from({ length: m * n }, (_, at) => {
    let sum = 0
    for (let i = 0; i < k; i += 1) {
      sum = fma32(a[Math.floor(at / n) * k + i] as number, b[i * n + (at % n)] as number, sum)
    }
    return sum
  })
  t.same(c as Float32Array, expected)
})
