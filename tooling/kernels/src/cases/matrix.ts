import { casesOf } from '../corpus.js'
import { f64 as double, fma32, fused } from '../real.js'

const { add } = casesOf('matrix')

const { fround } = Math
const plane = (width: number, height: number, x: number, y: number) =>
  ({ grid: [Math.ceil(width / x), Math.ceil(height / y)], block: [x, y] }) as const
/** Computes c = a b, with each sum in order of its index. */
function product(a: Float32Array, b: Float32Array, m: number, n: number, k: number): Float32Array {
  return Float32Array.from({ length: m * n }, (_, at) => {
    const [row, column] = [Math.floor(at / n), at % n]
    let sum = 0
    for (let i = 0; i < k; i += 1) sum = fma32(a[row * k + i] as number, b[i * n + column] as number, sum)
    return sum
  })
}

for (const [name, x, y] of [
  ['multiplyPlain', 16, 8],
  ['multiplyTiled', 16, 16],
] as const) {
  add(name, async (t) => {
    const [m, n, k] = [t.size(20, 50), t.size(20, 50), t.size(20, 50)]
    const [a, b] = [t.floats(m * k, -1, 1), t.floats(k * n, -1, 1)]
    const [, , c] = await t.run(plane(n, m, x, y), a, b, new Float32Array(m * n), m, n, k)
    t.same(c as Float32Array, product(a, b, m, n, k))
  })
}
add('multiplyBlocked', async (t) => {
  const n = t.random.integer(8, 14) * 2
  const [a, b] = [t.doubles(n * n, -1, 1), t.doubles(n * n, -1, 1)]
  const [, , c] = await t.run(plane(n / 2, n / 2, 8, 4), a, b, new Float64Array(n * n), n)
  const expected = a.map((_, at) => {
    let sum = 0
    for (let i = 0; i < n; i += 1)
      sum = fused(a[at - (at % n) + i] as number, b[i * n + (at % n)] as number, sum, double)
    return sum
  })
  t.same(c as Float64Array, expected)
})
add('multiplyBytes', async (t) => {
  const [m, n, words] = [t.size(15, 40), t.size(15, 40), t.size(3, 9)]
  const [a, b] = [t.array('i8', m * words * 4), t.array('i8', n * words * 4)]
  const [, , c] = await t.run(plane(n, m, 8, 8), a, b, new Int32Array(m * n), m, n, words)
  const expected = Int32Array.from({ length: m * n }, (_, at) => {
    let sum = 0
    for (let i = 0; i < words * 4; i += 1)
      sum += (a[Math.floor(at / n) * words * 4 + i] as number) * (b[(at % n) * words * 4 + i] as number)
    return sum
  })
  t.same(c as Int32Array, expected)
})
add('matrixVector', async (t) => {
  const [rows, columns] = [t.size(20, 60), t.size(50, 150)]
  const [a, x] = [t.floats(rows * columns, -1, 1), t.floats(columns, -1, 1)]
  const [, , y] = await t.run({ grid: Math.ceil(rows / 4), block: 128 }, a, x, new Float32Array(rows), rows, columns)
  const expected = Float32Array.from({ length: rows }, (_, row) => {
    let sums = Array.from({ length: 32 }, (_, lane) => {
      let sum = 0
      for (let i = lane; i < columns; i += 32) sum = fma32(a[row * columns + i] as number, x[i] as number, sum)
      return sum
    })
    for (let d = 16; d >= 1; d /= 2) sums = sums.map((sum, lane) => fround(sum + (sums[lane ^ d] as number)))
    return sums[0] as number
  })
  t.same(y as Float32Array, expected)
})
add('sparseVector', async (t) => {
  const rows = t.size(100, 300)
  const starts = new Int32Array(rows + 1)
  for (let row = 0; row < rows; row += 1) starts[row + 1] = (starts[row] as number) + t.random.integer(0, 12)
  const count = starts[rows] as number
  const [columns, values, x] = [t.integers(count, 0, rows - 1), t.doubles(count, -1, 1), t.doubles(rows, -1, 1)]
  const [, , , , y] = await t.run(
    { grid: Math.ceil(rows / 64), block: 64 },
    starts,
    columns,
    values,
    x,
    new Float64Array(rows),
    rows,
  )
  const expected = Float64Array.from({ length: rows }, (_, row) => {
    let sum = 0
    for (let i = starts[row] as number; i < (starts[row + 1] as number); i += 1)
      sum += (values[i] as number) * (x[columns[i] as number] as number)
    return sum
  })
  t.same(y as Float64Array, expected)
})
add('determinants', async (t) => {
  const n = t.size(50, 150)
  const data = t.array('f64', n * 25, () => t.random.integer(-9, 9))
  const [, out] = await t.run({ grid: Math.ceil(n / 32), block: 32 }, data, new Float64Array(n), n)
  const expected = Float64Array.from({ length: n }, (_, i) => {
    const m = Array.from({ length: 5 }, (_, row) => [...data.subarray(i * 25 + row * 5, i * 25 + row * 5 + 5)])
    let result = 1
    for (let k = 0; k < 5; k += 1) {
      let best = k
      for (let r = k + 1; r < 5; r += 1) if (Math.abs(m[r]?.[k] as number) > Math.abs(m[best]?.[k] as number)) best = r
      const pivots = m[best] as number[]
      if (pivots[k] === 0) return 0
      if (best !== k) {
        result = -result
        ;[m[k], m[best]] = [pivots, m[k] as number[]]
      }
      result *= pivots[k] as number
      for (let r = k + 1; r < 5; r += 1) {
        const row = m[r] as number[]
        const factor = (row[k] as number) / (pivots[k] as number)
        for (let c = k; c < 5; c += 1) row[c] = (row[c] as number) - factor * (pivots[c] as number)
      }
    }
    return result
  })
  t.same(out as Float64Array, expected)
})
add('cholesky', async (t) => {
  const n = t.size(9, 30)
  const grid = 5
  const data = new Float32Array(grid * n * n)
  for (let at = 0; at < grid; at += 1) {
    for (let r = 0; r < n; r += 1) {
      for (let c = 0; c <= r; c += 1)
        data[at * n * n + r * n + c] = data[at * n * n + c * n + r] = r === c ? n + r : t.random.real(-1, 1)
    }
  }
  const [, out] = await t.run({ grid, block: 64, sharedMemory: n * n * 4 }, data, new Float32Array(data.length), n)
  const expected = data.slice()
  for (let at = 0; at < grid; at += 1) {
    const l = expected.subarray(at * n * n, (at + 1) * n * n)
    for (let k = 0; k < n; k += 1) {
      l[k * n + k] = Math.sqrt(l[k * n + k] as number)
      for (let r = k + 1; r < n; r += 1) l[r * n + k] = (l[r * n + k] as number) / (l[k * n + k] as number)
      for (let r = k + 1; r < n; r += 1) {
        for (let c = k + 1; c <= r; c += 1)
          l[r * n + c] = (l[r * n + c] as number) - fround((l[r * n + k] as number) * (l[c * n + k] as number))
      }
    }
    for (let r = 0; r < n; r += 1) for (let c = r + 1; c < n; c += 1) l[r * n + c] = 0
  }
  t.same(out as Float32Array, expected)
})
