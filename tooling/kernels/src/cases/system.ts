import { casesOf } from '../corpus.js'
import { f32 } from '../trial.js'

const { add } = casesOf('system')

// This case only runs the kernel. Callers that can read the output of the process check its text.
add('prints', async (t) => {
  await t.run({ grid: 2, block: 33 }, 0xbeef, f32(2.71))
  t.device.synchronizeSync()
  t.same([0], [0])
})
add('asserts', async (t) => {
  const data = t.integers(t.size(), -1000, 999)
  const [, out] = await t.run(
    { grid: Math.ceil(data.length / 64), block: 64 },
    data,
    new Int32Array(data.length),
    data.length,
  )
  t.same(
    out as Int32Array,
    data.map((x) => x + 1),
  )
})
add('fromHeap', async (t) => {
  const data = t.integers(t.size(), 0, 1000)
  const [, out] = await t.run(
    { grid: Math.ceil(data.length / 64), block: 64 },
    data,
    new Int32Array(data.length),
    data.length,
  )
  const expected = data.map((x) => Array.from({ length: (x & 15) + 1 }, (_, k) => x + k * k).reduce((a, b) => a + b, 0))
  t.same(out as Int32Array, expected)
})
add('takeList', async (t) => {
  const n = t.size(100, 400)
  await t.runNamed('makeList', { grid: Math.ceil(n / 64), block: 64 }, n)
  const [out] = await t.run({ grid: 1, block: 1 }, new Int32Array(n))
  t.same(out as Int32Array, new Int32Array(n).fill(1))
})
add('places', async (t) => {
  const [gx, gy, gz, bx, by, bz] = [3, 2, 2, 5, 3, 3]
  const blockThreads = bx * by * bz
  const n = gx * gy * gz * blockThreads
  const [out] = await t.run({ grid: [gx, gy, gz], block: [bx, by, bz], sharedMemory: 64 }, new Int32Array(n * 5))
  const packed = (i: number, x: number, y: number): number =>
    (i % x) | ((Math.floor(i / x) % y) << 8) | (Math.floor(i / x / y) << 16)
  const expected = Array.from({ length: n }, (_, i) => {
    const thread = i % blockThreads
    return [
      packed(thread, bx, by),
      packed(Math.floor(i / blockThreads), gx, gy),
      bx * 10000 + by * 100 + bz,
      gx * 10000 + gy * 100 + gz,
      (thread % 32) + 6400,
    ]
  })
  t.same(out as Int32Array, expected.flat())
})
add('clocks', async (t) => {
  const [out] = await t.run({ grid: 3, block: 40 }, new Int32Array(120))
  t.same(out as Int32Array, new Int32Array(120).fill(3))
})
