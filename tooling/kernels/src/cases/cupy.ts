/**
 * Kernels that CuPy made from `python/cupyKernels.py`, one module per kernel: elementwise, a reduction, fused kernels,
 * and its JIT.
 */
import { defineStruct, type StructType } from '@shoal/types'
import { casesOf } from '../corpus.js'
import { fma32 } from '../real.js'
import { f32, type Trial, type Typed, u32 } from '../trial.js'

const kernel = (name: string, run: (t: Trial) => Promise<void>): void => casesOf(`others/${name}`).add(name, run)

/**
 * CuPy's kernel parameters, passed as structs by value: an array of one dimension, an array of none, and an indexer.
 */
const Line = defineStruct('Line', { data: 'u64', size: 'u64', length: 'u64', stride: 'u64' })
const Scalar = defineStruct('Scalar', { data: 'u64', size: 'u64' })
const LineIndex = defineStruct('LineIndex', { size: 'u64', length: 'u64', index: 'u64' })
const ScalarIndex = defineStruct('ScalarIndex', { size: 'u64' })

const typed = (type: StructType, value: Record<string, bigint>): Typed => ({ type: type as StructType, value })
const index = (n: number): Typed => typed(LineIndex, { size: BigInt(n), length: BigInt(n), index: 0n })

/** Creates an array on the device. Returns its kernel argument and a function that reads it. */
function line(t: Trial, values: Float32Array | Int32Array) {
  const buffer = t.buffer(values)
  const [size, stride] = [BigInt(values.length), BigInt(values.BYTES_PER_ELEMENT)]
  const argument = typed(Line, { data: buffer.address, size, length: size, stride })
  return { argument, read: async () => (await buffer.toArray()) as Float32Array }
}
const sumOf = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0)
const rowsOf = (data: Float32Array, columns: number): number[][] =>
  Array.from({ length: data.length / columns }, (_, row) => [...data.subarray(row * columns, (row + 1) * columns)])

kernel('cupy_axpy', async (t) => {
  const n = t.size()
  const [x, y] = [t.array('f32', n, () => t.random.integer(-99, 99)), t.floats(n, -1, 1)]
  const out = line(t, new Float32Array(n))
  await t.run({ grid: 3, block: 128 }, line(t, x).argument, line(t, y).argument, f32(2.5), out.argument, index(n))
  t.same(
    await out.read(),
    x.map((value, i) => 2.5 * value + (y[i] as number)),
  )
})
kernel('cupy_total', async (t) => {
  const n = t.size(600, 3000)
  const data = t.array('f32', n, () => t.random.integer(-99, 99))
  const out = t.buffer(new Float32Array(1))
  const argument = typed(Scalar, { data: out.address, size: 1n })
  await t.run({ grid: 1, block: 512 }, line(t, data).argument, argument, index(n), typed(ScalarIndex, { size: 1n }), 1)
  t.same((await out.toArray()) as Float32Array, [sumOf([...data])])
})
kernel('cupy_softplus', async (t) => {
  const n = t.size()
  const [x, y] = [t.floats(n, -6, 6), t.floats(n, -2, 2)]
  const out = line(t, new Float32Array(n))
  await t.run({ grid: 3, block: 128 }, line(t, x).argument, line(t, y).argument, out.argument, index(n))
  const expected = [...x].map((value, i) => {
    const weight = y[i] as number
    return Math.log1p(Math.exp(value)) * weight + Math.sqrt(Math.abs(weight))
  })
  t.near(await out.read(), expected, 8, 1)
})
kernel('cupy_softmax', async (t) => {
  const [rows, columns] = [t.size(5, 21), t.size(20, 300)]
  const data = t.floats(rows * columns, -6, 6)
  const out = line(t, new Float32Array(data.length))
  await t.run({ grid: rows, block: 64 }, line(t, data).argument, out.argument, u32(columns))
  const expected = rowsOf(data, columns).flatMap((row) => {
    const weights = row.map((value) => Math.exp(value - Math.max(...row)))
    return weights.map((weight) => weight / sumOf(weights))
  })
  t.near(await out.read(), expected, 32)
})
kernel('cupy_layer_norm', async (t) => {
  const [rows, columns] = [t.size(5, 15), t.size(50, 200)]
  const data = t.floats(rows * columns, -2, 3)
  const out = line(t, new Float32Array(data.length))
  await t.run({ grid: rows, block: 32 }, line(t, data).argument, out.argument, u32(columns), f32(1e-5))
  const expected = rowsOf(data, columns).flatMap((row) => {
    const mean = sumOf(row) / columns
    const scale = 1 / Math.sqrt(sumOf(row.map((value) => (value - mean) ** 2)) / columns + Math.fround(1e-5))
    return row.map((value) => (value - mean) * scale)
  })
  t.near(await out.read(), expected, 16, 1)
})
kernel('cupy_matmul', async (t) => {
  const [m, n, k] = [t.size(9, 40), t.size(9, 40), t.size(9, 40)]
  const [a, b] = [t.floats(m * k, -1, 1), t.floats(k * n, -1, 1)]
  const c = line(t, new Float32Array(m * n))
  const arrays = [line(t, a).argument, line(t, b).argument, c.argument]
  await t.run(
    { grid: [Math.ceil(n / 8), Math.ceil(m / 8)], block: [8, 8] },
    ...arrays,
    ...[m, n, k].map((size) => u32(size)),
  )
  // The compiler fuses products and sums.
  const expected = Float32Array.from({ length: m * n }, (_, at) => {
    let sum = 0
    for (let i = 0; i < k; i += 1) {
      sum = fma32(a[Math.floor(at / n) * k + i] as number, b[i * n + (at % n)] as number, sum)
    }
    return sum
  })
  t.same(await c.read(), expected)
})
kernel('cupy_count', async (t) => {
  const data = t.integers(t.size(), 0, 1 << 20)
  const counts = line(t, new Int32Array(16))
  await t.run({ grid: 3, block: 64 }, line(t, data).argument, counts.argument, u32(data.length))
  t.same(
    await counts.read(),
    Array.from({ length: 16 }, (_, at) => data.filter((value) => value % 16 === at).length),
  )
})
