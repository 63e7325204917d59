import { casesOf } from '../corpus.js'

const { add } = casesOf('groups')

const chunk = (data: Int32Array, i: number, size: number): Int32Array =>
  data.subarray(i - (i % size), i - (i % size) + size)
const sum = (list: Iterable<number>): number => {
  let total = 0
  for (const value of list) total = (total + value) | 0
  return total
}

add('tiles', async (t) => {
  const data = t.integers(192, -1000, 1000)
  const [, out] = await t.run({ grid: 2, block: 96 }, data, new Int32Array(192))
  const expected = data.map((_, i) => {
    const tile = chunk(data, i, 8)
    return (
      sum(tile) * 100 +
      Math.floor((i % 96) / 8) * 10 +
      (i % 8) +
      tile.reduce((mask, x, at) => mask | ((x & 1) << at), 0)
    )
  })
  t.same(out as Int32Array, expected)
})
add('reduceTiles', async (t) => {
  const data = t.array('i32', 128)
  const [, out] = await t.run({ grid: 2, block: 64 }, data, new Int32Array(128))
  t.same(
    out as Int32Array,
    data.map(
      (_, i) =>
        sum(chunk(data, i, 16)) ^ Math.max(...chunk(data, i, 16)) ^ chunk(data, i, 16).reduce((a, b) => a ^ b, 0),
    ),
  )
})
add('scanTiles', async (t) => {
  const data = t.array('i32', 96)
  const [, out] = await t.run({ grid: 1, block: 96 }, data, new Int32Array(192))
  const expected = Array.from(data, (x, i) => {
    const inclusive = sum(chunk(data, i, 32).subarray(0, (i % 32) + 1))
    return [inclusive, (inclusive - x) | 0]
  })
  t.same(out as Int32Array, expected.flat())
})
add('largeTiles', async (t) => {
  const data = t.array('i32', 768)
  const [, out] = await t.run({ grid: 3, block: 256 }, data, new Int32Array(768))
  const expected = data.map((_, i) => {
    const xor = chunk(data, i, 64).reduce((a, b) => a ^ b, 0)
    const large = chunk(data, i, 128)
    return sum(large) + Math.imul(xor, 3) + Math.floor((i % 256) / 128) + (large[77] as number)
  })
  t.same(out as Int32Array, expected)
})
add('coalesced', async (t) => {
  const data = t.integers(256, 0, 99)
  const [, out] = await t.run({ grid: 2, block: 128 }, data, new Int32Array(256))
  const expected = data.map((x, i) => {
    if (x % 3 === 0) return -1
    const active = [...chunk(data, i, 32)]
      .map((value, lane) => ({ value, lane }))
      .filter(({ value }) => value % 3 !== 0)
    return active.findIndex(({ lane }) => lane === i % 32) * 100 + active.length + (active[0]?.value as number) * 10000
  })
  t.same(out as Int32Array, expected)
})
add('partitions', async (t) => {
  const data = t.integers(128, 0, 10000)
  const [, out] = await t.run({ grid: 2, block: 64 }, data, new Int32Array(128))
  const expected = data.map((x, i) => {
    const warp = [...chunk(data, i, 32)]
    const same = warp.filter((value) => (value & 3) === (x & 3)).map((value) => value & 255)
    return sum(same) + warp.filter((value) => (value & 8) === (x & 8)).length * 100000
  })
  t.same(out as Int32Array, expected)
})
add('gridRounds', async (t) => {
  const [grid, block, rounds] = [t.size(3, 9), 64, 3]
  const n = grid * block
  const data = t.integers(n, -100, 100)
  const [out] = await t.run({ grid, block, isCooperative: true }, data, new Int32Array(n), rounds)
  let v = data
  for (let round = 0; round < rounds; round += 1) {
    const other = v.map((_, i) => ((v[(i + 97) % n] as number) + (v[(i + n - 31) % n] as number) * 2 + round) | 0)
    v = v.map((_, i) => (other[(i + 5) % n] as number) ^ i)
  }
  t.same(out as Int32Array, v)
})
add('blockGroup', async (t) => {
  const block = t.random.pick([33, 96, 127])
  const data = t.integers(block * 3, -1000, 1000)
  const [, out] = await t.run({ grid: 3, block }, data, new Int32Array(data.length))
  const expected = data.map((_, i) => {
    const own = chunk(data, i, block)
    const at = block - 1 - (i % block)
    return (own[at] as number) + (own[(at + 1) % block] as number) + Math.floor(i / block) + block
  })
  t.same(out as Int32Array, expected)
})
