import { casesOf } from '../corpus.js'

const { add } = casesOf('warp')

/** Calls `of` for each element with its lane and the 32 values of its warp. */
function perLane<T>(data: ArrayLike<number>, of: (lane: number, warp: number[], index: number) => T): T[] {
  return Array.from({ length: data.length }, (_, i) => {
    const lane = i % 32
    return of(
      lane,
      Array.from({ length: 32 }, (_, k) => data[i - lane + k] as number),
      i,
    )
  })
}
const ballot = (warp: readonly number[], is: (value: number, lane: number) => boolean): number =>
  warp.reduce((mask, value, lane) => mask | (is(value, lane) ? 1 << lane : 0), 0)
const ones = (mask: number): number => (mask >>> 0).toString(2).replaceAll('0', '').length

add('shuffles', async (t) => {
  const [data, from] = [t.array('i32', 192), t.integers(192, 0, 31)]
  const [, , out] = await t.run({ grid: 2, block: 96 }, data, from, new Int32Array(192 * 8))
  const expected = perLane(data, (lane, warp, i) => {
    const at = (index: number): number => warp[index] as number
    const own = at(lane)
    const wanted = from[i] as number
    return [
      at(wanted),
      at((lane & ~7) + (wanted & 7)),
      lane < 5 ? own : at(lane - 5),
      (lane & 15) < 3 ? own : at(lane - 3),
      lane > 24 ? own : at(lane + 7),
      (lane & 3) === 3 ? own : at(lane + 1),
      at(lane ^ 21),
      at(lane ^ 6),
    ]
  })
  t.same(out as Int32Array, expected.flat())
})
add('shuffleDoubles', async (t) => {
  const data = t.doubles(96, -1, 1)
  const [, out] = await t.run({ grid: 1, block: 96 }, data, new Float64Array(96))
  t.same(
    out as Float64Array,
    perLane(data, (lane, warp) => (warp[lane ^ 13] as number) + (warp[lane > 29 ? lane : lane + 2] as number)),
  )
})
add('votes', async (t) => {
  const data = t.integers(256, 0, t.random.pick([3, 300]))
  data.fill(9, 0, 32)
  const [, out] = await t.run({ grid: 4, block: 64 }, data, new Int32Array(1024))
  const expected = perLane(data, (lane, warp) => [
    ballot(warp, (x) => (x & 1) === 1),
    (warp.every((x) => x > 2) ? 1 : 0) + (warp.some((x) => x > 200) ? 2 : 0),
    ballot(warp, (x) => (x & 7) === ((warp[lane] as number) & 7)),
    -1 ^ 1,
  ])
  t.same(out as Int32Array, expected.flat())
})
add('votesOfSome', async (t) => {
  const data = t.array('i32', 256)
  const [, out] = await t.run({ grid: 4, block: 64 }, data, new Uint32Array(256))
  const expected = perLane(data, (lane, warp) => {
    const isOdd = ((warp[lane] as number) & 1) === 1
    const mask = ballot(warp, (x) => ((x & 1) === 1) === isOdd)
    const voted = ballot(warp, (x) => ((x & 1) === 1) === isOdd && (x & (isOdd ? 2 : 4)) !== 0)
    return (isOdd ? voted + ones(mask) : voted ^ ones(mask)) >>> 0
  })
  t.same(out as Uint32Array, expected)
})
add('reductions', async (t) => {
  const data = t.array('i32', 160)
  const [, out] = await t.run({ grid: 1, block: 160 }, data, new Int32Array(160 * 7))
  const expected = perLane(data, (_, warp) => [
    warp.reduce((sum, x) => (sum + x) | 0, 0),
    Math.min(...warp),
    Math.max(...warp),
    Math.max(...warp.map((x) => x >>> 0)) | 0,
    warp.reduce((sum, x) => sum & (x | 0xff00ff00), -1),
    warp.reduce((sum, x) => sum | (x & 0x10101010), 0),
    warp.reduce((sum, x) => sum ^ x, 0),
  ])
  t.same(out as Int32Array, expected.flat())
})
add('reductionsOfHalves', async (t) => {
  const data = t.array('i32', 128)
  const [, out] = await t.run({ grid: 2, block: 64 }, data, new Int32Array(128))
  t.same(
    out as Int32Array,
    perLane(data, (lane, warp) =>
      lane < 13 ? warp.slice(0, 13).reduce((sum, x) => (sum + x) | 0, 0) : Math.max(...warp.slice(13)),
    ),
  )
})
add('exchangeInShared', async (t) => {
  const data = t.array('i32', 192)
  const [, out] = await t.run({ grid: 3, block: 64 }, data, new Int32Array(192))
  let now = data
  for (let round = 0; round < 5; round += 1)
    now = now.map((x, i) => (Math.imul(x, 3) + (now[i ^ (1 << round)] as number)) | 0)
  t.same(out as Int32Array, now)
})
add('aggregated', async (t) => {
  const data = t.integers(t.size(), 0, 1000)
  const n = data.length
  const [, counters, out] = await t.run(
    { grid: Math.ceil(n / 96), block: 96 },
    data,
    new Int32Array(4),
    new Int32Array(4 * n),
    n,
  )
  const counts = [0, 0, 0, 0]
  for (const value of data) counts[value & 3]! += 1
  t.same(counters as Int32Array, counts)
  t.same(
    out as Int32Array,
    counts.flatMap((count) => Array.from({ length: n }, (_, i) => (i < count ? 1 : 0))),
  )
})
add('transposeInWarp', async (t) => {
  const data = t.array('i32', 64 * 8)
  const [, out] = await t.run({ grid: 1, block: 64 }, data, new Int32Array(data.length))
  t.same(
    out as Int32Array,
    data.map((_, i) => data[i - (i % 256) + (i % 8) * 32 + ((Math.floor(i / 8) % 32) ^ (i % 8))] as number),
  )
})
add('leaders', async (t) => {
  const [out] = await t.run({ grid: 2, block: 64 }, new Uint32Array(128))
  // Any lane may be elected, but it must be exactly one, and the same for all.
  const elected = (out as Uint32Array)[0]! >>> 24
  t.same(
    out as Uint32Array,
    Array.from(
      { length: 128 },
      (_, i) => ((elected << 24) | ((i % 32 === elected ? 1 : 0) << 16) | (1 << 8) | (i % 32)) >>> 0,
    ),
  )
})
