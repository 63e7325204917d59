import { casesOf } from '../corpus.js'

const { add } = casesOf('async')

add('pipelined', async (t) => {
  const [blocks, tiles] = [3, t.size(3, 9)]
  const data = t.array('i32', blocks * tiles * 256)
  const [, out] = await t.run({ grid: blocks, block: 64 }, data, new Int32Array(blocks * 64), tiles)
  const expected = Int32Array.from({ length: blocks * 64 }, (_, i) => {
    let sum = 0
    for (let tile = 0; tile < tiles; tile += 1) {
      const at = ((Math.floor(i / 64) * tiles + tile) * 64 + 63 - (i % 64)) * 4
      const [x, y, z, w] = data.subarray(at, at + 4) as unknown as [number, number, number, number]
      sum = (Math.imul(sum, 31) + (x ^ y) + (z ^ w)) | 0
    }
    return sum
  })
  t.same(out as Int32Array, expected)
})
add('splitBarrier', async (t) => {
  const block = t.random.pick([32, 70, 96])
  const data = t.integers(block * 3, -1000, 1000)
  const [, out] = await t.run({ grid: 3, block }, data, new Int32Array(data.length))
  let kept = data
  for (let round = 0; round < 3; round += 1)
    kept = kept.map((x, i) => x * 3 + round + (kept[i - (i % block) + ((i + 1) % block)] as number))
  t.same(out as Int32Array, kept)
})
