/** Kernels that Triton 3.6 made from `python/tritonKernels.py`, one module per kernel. */
import { readFileSync } from 'node:fs'
import { casesOf } from '../corpus.js'
import { bitsOf, f16 } from '../real.js'
import { type Argument, f32, type Trial } from '../trial.js'

interface Facts {
  readonly entry: string
  readonly block: number
  readonly shared: number
}
const facts = JSON.parse(readFileSync(new URL('../../ptx/others/triton.json', import.meta.url), 'utf8')) as Record<
  string,
  Facts
>

type Launch = (grid: number | readonly [number, number], ...args: readonly Argument[]) => ReturnType<Trial['run']>

function kernel(name: string, run: (t: Trial, launch: Launch) => Promise<void>): void {
  const { entry, block, shared } = facts[name] as Facts
  casesOf(`others/triton_${name}`).add(entry, (t) =>
    // Each kernel has two more parameters, for memory that these kernels do not use.
    run(t, (grid, ...args) => t.run({ grid, block, sharedMemory: shared }, ...args, nothing, nothing)),
  )
}
const nothing: Argument = { type: 'u64', value: 0n }
const sumOf = (list: Iterable<number>): number => {
  let sum = 0
  for (const value of list) sum += value
  return sum
}
const rowsOf = (data: Float32Array, columns: number): number[][] =>
  Array.from({ length: data.length / columns }, (_, row) => [...data.subarray(row * columns, (row + 1) * columns)])

kernel('axpy', async (t, launch) => {
  const n = t.size()
  const [x, y, a] = [t.array('f32', n, () => t.random.integer(-99, 99)), t.floats(n, -1, 1), 2.5]
  const [, , out] = await launch(Math.ceil(n / 256), x, y, new Float32Array(n), f32(a), n)
  t.same(
    out as Float32Array,
    x.map((value, i) => a * value + (y[i] as number)),
  )
})
kernel('row_sum', async (t, launch) => {
  const [rows, columns] = [t.size(5, 21), t.size(100, 900)]
  const data = t.array('f32', rows * columns, () => t.random.integer(-99, 99))
  const [, out] = await launch(rows, data, new Float32Array(rows), columns)
  t.same(out as Float32Array, rowsOf(data, columns).map(sumOf))
})
kernel('softmax', async (t, launch) => {
  const [rows, columns] = [t.size(5, 21), t.size(100, 511)]
  const data = t.floats(rows * columns, -6, 6)
  const [, out] = await launch(rows, data, new Float32Array(data.length), columns)
  const expected = rowsOf(data, columns).flatMap((row) => {
    const weights = row.map((value) => Math.exp(value - Math.max(...row)))
    return weights.map((weight) => weight / sumOf(weights))
  })
  // The kernel computes `ex2.approx` of a product. Its error grows with the exponent.
  t.near(out as Float32Array, expected, 48)
})
kernel('layer_norm', async (t, launch) => {
  const [rows, columns] = [t.size(5, 21), t.size(100, 511)]
  const [data, gain, bias] = [t.floats(rows * columns, -2, 3), t.floats(columns, 0.5, 2), t.floats(columns, -1, 1)]
  const epsilon = Math.fround(1e-5)
  const [, , , out] = await launch(rows, data, gain, bias, new Float32Array(data.length), columns, f32(epsilon))
  const expected = rowsOf(data, columns).flatMap((row) => {
    const mean = sumOf(row) / columns
    const scale = 1 / Math.sqrt(sumOf(row.map((value) => (value - mean) ** 2)) / columns + epsilon)
    return row.map((value, i) => (value - mean) * scale * (gain[i] as number) + (bias[i] as number))
  })
  t.near(out as Float32Array, expected, 16, 1)
})
for (const name of ['matmul_f32', 'matmul_f16'] as const) {
  kernel(name, async (t, launch) => {
    const [m, n, k] = [t.size(20, 80), t.size(20, 80), t.size(20, 80)]
    // The inputs are eighths below 1, so their products and sums are exact.
    const [a, b] = [m * k, k * n].map((length) => t.array('f32', length, () => t.random.integer(-8, 8) / 8)) as [
      Float32Array,
      Float32Array,
    ]
    const given = [a, b].map((list) => (name === 'matmul_f32' ? list : Uint16Array.from(list, (x) => bitsOf(x, f16))))
    const out = new Float32Array(m * n)
    const [, , c] = await launch([Math.ceil(m / 32), Math.ceil(n / 32)], ...given, out, m, n, k)
    const expected = out.map((_, at) => {
      let sum = 0
      for (let i = 0; i < k; i += 1) sum += (a[Math.floor(at / n) * k + i] as number) * (b[i * n + (at % n)] as number)
      return sum
    })
    t.same(c as Float32Array, expected)
  })
}
kernel('scan', async (t, launch) => {
  const data = t.array('i32', t.size(100, 255))
  const [, out] = await launch(1, data, new Int32Array(data.length), data.length)
  let sum = 0
  t.same(
    out as Int32Array,
    data.map((value) => {
      sum = (sum + value) | 0
      return sum
    }),
  )
})
kernel('histogram', async (t, launch) => {
  const data = t.integers(t.size(), 0, 31)
  const [, out] = await launch(Math.ceil(data.length / 128), data, new Int32Array(32), data.length)
  const expected = new Int32Array(32)
  for (const bin of data) expected[bin]! += 1
  t.same(out as Int32Array, expected)
})
