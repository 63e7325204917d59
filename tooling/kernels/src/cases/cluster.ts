import { casesOf } from '../corpus.js'

const { add } = casesOf('cluster')

add('ranks', async (t) => {
  const [out] = await t.run({ grid: [4, 2], block: 24 }, new Int32Array(8 * 24))
  const expected = Array.from({ length: 8 * 24 }, (_, i) => {
    const [x, y] = [(Math.floor(i / 24) % 4) & 1, Math.floor(i / 96) & 1]
    const rank = y * 2 + x
    return rank * 1000000 + 400000 + (rank * 24 + (i % 24)) * 100 + x * 10 + y
  })
  t.same(out as Int32Array, expected)
})
add('rotate', async (t) => {
  const data = t.array('i32', 64 * 12)
  const [, out] = await t.run({ grid: 12, block: 64 }, data, new Int32Array(data.length))
  t.same(
    out as Int32Array,
    data.map((_, i) => {
      const block = Math.floor(i / 64)
      return data[((block & ~3) + ((block + 1) & 3)) * 64 + 63 - (i % 64)] as number
    }),
  )
})
add('clusterHistogram', async (t) => {
  const data = t.array('u8', t.size(3000, 6000))
  const [, out] = await t.run({ grid: 8, block: 96 }, data, new Uint32Array(256), data.length)
  const expected = new Uint32Array(256)
  for (const value of data) expected[value]! += 1
  t.same(out as Uint32Array, expected)
})
add('clusterSum', async (t) => {
  const data = t.array('i32', 16 * 32)
  const [, out] = await t.run({ grid: 16, block: 32 }, data, new Int32Array(data.length))
  t.same(
    out as Int32Array,
    data.map((_, i) =>
      data.subarray(i & ~255, (i & ~255) + 256).reduce((sum, value) => (sum + value) | 0, Math.floor(i / 32) & 7),
    ),
  )
})
add('writeToOther', async (t) => {
  const data = t.integers(6 * 32, -1000, 1000)
  const [, out] = await t.run({ grid: 6, block: 32 }, data, new Int32Array(data.length))
  t.same(
    out as Int32Array,
    data.map((_, i) => {
      const at = (k: number): number =>
        (data[(Math.floor(i / 32) ^ 1) * 32 + Math.floor(k / 3)] as number) * ((k % 3) + 1)
      return at(i % 32) + at(95 - (i % 32))
    }),
  )
})
