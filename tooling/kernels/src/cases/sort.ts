import { casesOf } from '../corpus.js'
import { f32 } from '../trial.js'

const { add } = casesOf('sort')

add('bitonic', async (t) => {
  const data = t.array('i32', t.size(200, 500))
  const [out] = await t.run({ grid: 1, block: 256 }, data, data.length)
  t.same(out as Int32Array, data.slice().sort())
})
add('oddEven', async (t) => {
  const data = t.floats(t.size(100, 190), -1, 1)
  const [out] = await t.run({ grid: 1, block: 96 }, data, data.length)
  t.same(out as Float32Array, data.slice().sort())
})
add('radix', async (t) => {
  const data = t.array('u32', t.size(500, 3000))
  const [out] = await t.run({ grid: 1, block: 128 }, data, new Uint32Array(data.length), data.length)
  t.same(out as Uint32Array, data.slice().sort())
})
add('merge', async (t) => {
  const [x, y] = [t.integers(t.size(), -300, 300).sort(), t.integers(t.size(), -300, 300).sort()]
  const n = x.length + y.length
  const [, , out] = await t.run({ grid: Math.ceil(n / 96), block: 96 }, x, y, new Int32Array(n), x.length, y.length)
  t.same(out as Int32Array, Int32Array.of(...x, ...y).sort())
})
add('histogram', async (t) => {
  const data = t.array('u8', t.size(3000, 9000))
  const [, out] = await t.run({ grid: 9, block: 160 }, data, new Uint32Array(256), data.length)
  const expected = new Uint32Array(256)
  for (const value of data) expected[value]! += 1
  t.same(out as Uint32Array, expected)
})
add('weightedHistogram', async (t) => {
  const n = t.size()
  const [data, weights] = [t.floats(n, -3, 7), t.integers(n, 0, 1e6)]
  const [low, width, bins] = [Math.fround(-2.3), Math.fround(0.37), 21]
  const [, , out] = await t.run(
    { grid: Math.ceil(n / 64), block: 64 },
    data,
    weights,
    new BigUint64Array(bins),
    f32(low),
    f32(width),
    bins,
    n,
  )
  const expected = new BigUint64Array(bins)
  data.forEach((value, i) => {
    const bin = Math.floor(Math.fround(Math.fround(value - low) / width))
    if (bin >= 0 && bin < bins) expected[bin]! += BigInt(weights[i] as number)
  })
  t.same(out as BigUint64Array, expected)
})
add('rankSort', async (t) => {
  const data = t.integers(t.size(200, 600), -50, 50)
  const [, out] = await t.run(
    { grid: Math.ceil(data.length / 64), block: 64 },
    data,
    new Int32Array(data.length),
    data.length,
  )
  t.same(out as Int32Array, data.slice().sort())
})
