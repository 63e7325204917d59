import { casesOf } from '../corpus.js'

const { add } = casesOf('scan')

const grid = (n: number, block: number) => ({ grid: Math.ceil(n / block), block })
/** Running sums that restart every `every` elements. */
const sums = (data: Int32Array, every: number): Int32Array => {
  let sum = 0
  return data.map((value, i) => (sum = ((i % every === 0 ? 0 : sum) + value) | 0))
}

add('scanWarps', async (t) => {
  const data = t.array('i32', t.size())
  const [, out] = await t.run(grid(data.length, 96), data, new Int32Array(data.length), data.length)
  t.same(out as Int32Array, sums(data, 32))
})
add('scanBlock', async (t) => {
  const data = t.array('i32', t.size())
  const [, out] = await t.run(grid(data.length, 256), data, new Int32Array(data.length), data.length)
  t.same(out as Int32Array, sums(data, 256))
})
add('scanTree', async (t) => {
  const data = t.array('i32', 512)
  const [, out] = await t.run({ grid: 1, block: 256 }, data, new Int32Array(512))
  const inclusive = sums(data, 512)
  t.same(
    out as Int32Array,
    data.map((_, i) => (i === 0 ? 0 : (inclusive[i - 1] as number))),
  )
})
add('scanLookBack', async (t) => {
  const data = t.array('i32', t.size(2000, 6000))
  t.variable('nextTile', 'u32').copyFrom(new Uint32Array(1))
  const tiles = Math.ceil(data.length / 128)
  const [, out] = await t.run(
    { grid: tiles, block: 128 },
    data,
    new Int32Array(data.length),
    new BigUint64Array(tiles),
    data.length,
  )
  t.same(out as Int32Array, sums(data, data.length))
})
add('compact', async (t) => {
  const data = t.integers(t.size(), -100, 100)
  const [, out, count] = await t.run(
    { grid: 1, block: 160 },
    data,
    new Int32Array(data.length),
    new Int32Array(1),
    data.length,
  )
  const expected = data.filter((value) => value > 0)
  t.same(count as Int32Array, [expected.length])
  t.same((out as Int32Array).subarray(0, expected.length), expected)
})
add('scanSegments', async (t) => {
  const n = t.size()
  const data = t.integers(n, -1000, 1000)
  const heads = t.array('u8', n, () => (t.random.integer(0, 9) === 0 ? 1 : 0))
  const [, , out] = await t.run(grid(n, 64), data, heads, new Int32Array(n), n)
  let sum = 0
  t.same(
    out as Int32Array,
    data.map((value, i) => (sum = (i % 32 === 0 || heads[i] === 1 ? 0 : sum) + value)),
  )
})
