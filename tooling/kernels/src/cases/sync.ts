import { casesOf } from '../corpus.js'

const { add } = casesOf('sync')

const chunk = (data: Int32Array, i: number, size: number): Int32Array =>
  data.subarray(i - (i % size), i - (i % size) + size)

add('spinLock', async (t) => {
  const grid = t.size(3, 9)
  const out = await t.run({ grid, block: 48 }, new Int32Array(1), new Int32Array(1))
  t.same(
    out.map((list) => list[0] as number),
    [0, grid * 48],
  )
})
add('ticketLock', async (t) => {
  const grid = t.size(9, 30)
  const [, list] = await t.run({ grid, block: 32 }, new Uint32Array(2), new Int32Array(grid + 1))
  t.same(list as Int32Array, [grid, ...Array.from({ length: grid }, (_, i) => i)])
})
add('flagChain', async (t) => {
  const n = 64 * 3
  const [flags] = await t.run({ grid: 3, block: 64 }, new Int32Array(n))
  t.same(
    flags as Int32Array,
    Array.from({ length: n }, (_, i) => 1 + (i * (i + 1)) / 2),
  )
})
add('stack', async (t) => {
  const n = t.size(50, 200)
  const [, , popped] = await t.run(
    { grid: Math.ceil(n / 32), block: 32 },
    new BigUint64Array(1),
    new Int32Array(n),
    new Int32Array(n),
    n,
  )
  t.same(popped as Int32Array, new Int32Array(n).fill(1))
})
add('producer', async (t) => {
  const [grid, rounds] = [5, 7]
  const [, , out] = await t.run(
    { grid, block: 32 },
    new Int32Array(grid),
    new Int32Array(grid),
    new Int32Array(grid * rounds),
    rounds,
  )
  t.same(
    out as Int32Array,
    Array.from({ length: grid * rounds }, (_, i) => (i < rounds ? 0 : (i % rounds) * 100 + Math.floor(i / rounds))),
  )
})
add('acquireRelease', async (t) => {
  const [, , out] = await t.run({ grid: 6, block: 32 }, new Int32Array(2), new Int32Array(1), new Int32Array(6))
  t.same(out as Int32Array, [0, 425, 425, 425, 425, 425])
})
add('countingBarriers', async (t) => {
  const block = t.random.pick([40, 96, 250])
  const data = t.array('i32', block * 4)
  if (t.random.integer(0, 1) === 1) data[t.random.integer(0, data.length - 1)] = 12345
  const [, out] = await t.run({ grid: 4, block }, data, new Int32Array(data.length * 3))
  const expected = Array.from(data, (_, i) => {
    const own = chunk(data, i, block)
    return [
      own.filter((x) => (x & 1) === 1).length,
      own.every((x) => x > -1000000) ? 1 : 0,
      own.includes(12345) ? 1 : 0,
    ]
  })
  t.same(out as Int32Array, expected.flat())
})
add('namedBarriers', async (t) => {
  const data = t.integers(384, -1000, 1000)
  const [, out] = await t.run({ grid: 3, block: 128 }, data, new Int32Array(384))
  const step = (v: Int32Array): Int32Array => v.map((x, i) => x + (v[i - (i % 64) + ((i + 1) % 64)] as number))
  const once = step(data)
  const fourTimes = step(step(step(once)))
  t.same(
    out as Int32Array,
    data.map((_, i) => {
      const at = i - (i % 128) + 127 - (i % 128)
      return (at % 128 < 64 ? once : fourTimes)[at] as number
    }),
  )
})
add('arriveAndWait', async (t) => {
  const data = t.integers(192, -1000, 1000)
  const [, out] = await t.run({ grid: 3, block: 128 }, data, new Int32Array(768))
  const expected = Array.from(
    { length: 768 },
    (_, i) => ((data[Math.floor(i / 256) * 64 + 63 - (i % 64)] as number) + (Math.floor(i / 64) % 4)) * 2,
  )
  t.same(out as Int32Array, expected)
})
add('sharedLock', async (t) => {
  const block = t.random.pick([32, 70, 128])
  const [out] = await t.run({ grid: 2, block }, new Int32Array(block * 2))
  t.same(out as Int32Array, new Int32Array(block * 2).fill((block * (block + 1)) / 2))
})
