import { casesOf } from '../corpus.js'
import { f64 as double, fused } from '../real.js'

const { add } = casesOf('reduce')

const { fround } = Math

add('sumIntegers', async (t) => {
  const data = t.array('i32', t.size(1000, 20000))
  const [, out] = await t.run({ grid: 7, block: 160 }, data, new Int32Array(1), data.length)
  t.same(out as Int32Array, [data.reduce((sum, value) => (sum + value) | 0, 0)])
})
add('sumFloats', async (t) => {
  const data = t.floats(t.size(1000, 3000), -10, 10)
  const blocks = Math.ceil(data.length / 256)
  const [, out] = await t.run({ grid: blocks, block: 256 }, data, new Float32Array(blocks), data.length)
  const expected = Float32Array.from({ length: blocks }, (_, at) => {
    const part = Float32Array.from({ length: 256 }, (_, k) => data[at * 256 + k] ?? 0)
    for (let d = 128; d >= 1; d /= 2)
      for (let k = 0; k < d; k += 1) part[k] = (part[k] as number) + (part[k + d] as number)
    return part[0] as number
  })
  t.same(out as Float32Array, expected)
})
add('dot', async (t) => {
  const n = t.size(100, 500)
  const [x, y] = [t.doubles(n, -2, 2), t.doubles(n, -2, 2)]
  const [, , out] = await t.run({ grid: 1, block: 32 }, x, y, new Float64Array(1), n)
  let sums = Array.from({ length: 32 }, (_, lane) => {
    let sum = 0
    for (let i = lane; i < n; i += 32) sum = fused(x[i] as number, y[i] as number, sum, double)
    return sum
  })
  for (let d = 1; d < 32; d *= 2) sums = sums.map((sum, lane) => sum + (sums[lane ^ d] as number))
  t.same(out as Float64Array, [sums[0] as number])
})
add('largestAt', async (t) => {
  const data = t.floats(t.size(1000, 5000), -10, 10)
  const at = t.random.integer(0, data.length - 1)
  data[at] = data[t.random.integer(0, data.length - 1)] = 11
  const [, out] = await t.run({ grid: 5, block: 96 }, data, new BigUint64Array(1), data.length)
  const first = data.indexOf(11)
  t.same([Number(BigInt.asIntN(32, ~((out as BigUint64Array)[0] as bigint)))], [first])
})
add('rowSums', async (t) => {
  const rows = t.size(40, 90)
  const starts = new Int32Array(rows + 1)
  for (let row = 0; row < rows; row += 1) starts[row + 1] = (starts[row] as number) + t.random.integer(0, 100)
  const data = t.array('i32', (starts[rows] as number) + 1)
  const [, , out] = await t.run({ grid: Math.ceil(rows / 3), block: 96 }, data, starts, new BigInt64Array(rows), rows)
  const expected = Array.from({ length: rows }, (_, row) =>
    data.subarray(starts[row], starts[row + 1]).reduce((sum, value) => sum + BigInt(value), 0n),
  )
  t.same(out as BigInt64Array, expected)
})
add('sumByLastBlock', async (t) => {
  const data = t.array('i32', t.size(3000, 9000))
  const [, , out] = await t.run(
    { grid: 13, block: 128 },
    data,
    new BigInt64Array(13),
    new BigInt64Array(1),
    data.length,
  )
  t.same(out as BigInt64Array, [data.reduce((sum, value) => sum + BigInt(value), 0n)])
})
add('meanAndVariance', async (t) => {
  const data = t.floats(t.size(500, 2000), -3, 5)
  const [, out] = await t.run({ grid: 1, block: 64 }, data, new Float64Array(2), data.length)
  const partial = (of: (value: number) => number): number => {
    const sums = new Float64Array(64)
    data.forEach((value, i) => {
      sums[i % 64]! += of(value)
    })
    for (let d = 32; d >= 1; d /= 2) for (let k = 0; k < d; k += 1) sums[k]! += sums[k + d] as number
    return (sums[0] as number) / data.length
  }
  const mean = partial((value) => value)
  t.same(out as Float64Array, [mean, partial((value) => value * value) - mean * mean])
})
void fround
