import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { corpusFile } from './support/corpus.js'

// The software device runs the compiler's PTX of packages/sim/test/ptx/warps.cu.
Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { Device, DeviceBuffer, Module } = await import('@shoal/driver')

let device: import('@shoal/driver').Device
let module: import('@shoal/driver').Module

beforeAll(() => {
  device = Device.get(0)
  module = Module.loadSync(device, readFileSync(corpusFile('warps.ptx'), 'utf8'))
})

async function run(
  name: string,
  shape: { grid: number; block: number },
  ...inputs: Int32Array[]
): Promise<Int32Array[]> {
  const buffers = inputs.map((data) => DeviceBuffer.from(device, data))
  const kernel = module.kernel(
    name,
    inputs.map(() => 'ptr' as const),
  )
  kernel.launch(shape, ...buffers)
  const outputs = await Promise.all(buffers.map((buffer) => buffer.toArray()))
  for (const buffer of buffers) buffer.dispose()
  return outputs
}

const bit = (is: boolean): number => (is ? 1 : 0)

test('the software device runs shuffles, votes, matches and reductions', async () => {
  const count = 96
  const input = Int32Array.from({ length: count }, (_, index) => ((index * 2654435761) >> 7) % 1000)
  const [, out] = (await run('shuffles', { grid: 1, block: count }, input, new Int32Array(count * 8))) as [
    Int32Array,
    Int32Array,
  ]
  for (let i = 0; i < count; i += 1) {
    const warp = input.subarray(i - (i % 32), i - (i % 32) + 32)
    const lane = i % 32
    const own = input[i] as number
    const ballot = (is: (x: number) => boolean): number => warp.reduce((mask, x, at) => mask | (bit(is(x)) << at), 0)
    const at = (index: number): number => warp[index] as number
    expect([...out.subarray(i * 8, i * 8 + 8)]).toEqual([
      at((lane * 7) & 31),
      lane < 3 ? own : at(lane - 3),
      (lane & 15) + 5 > 15 ? own : at(lane + 5),
      at(lane ^ 9),
      ballot((x) => (x & 1) !== 0),
      bit(warp.every((x) => x > -100)) * 2 + bit(warp.some((x) => x > 100)),
      ballot((x) => (x & 3) === (own & 3)),
      warp.reduce((sum, x) => sum + x, 0),
    ])
  }
})

test('the software device sums over many blocks with shuffles, shared memory and atomics', async () => {
  const data = Float32Array.from({ length: 100_003 }, (_, index) => index % 7)
  const input = DeviceBuffer.from(device, data)
  const out = DeviceBuffer.zeros(device, 'f32', 1)
  module.kernel('blockSum', ['ptr', 'ptr', 'i32']).launch({ grid: 37, block: 256 }, input, out, data.length)
  expect([...(await out.toArray())]).toEqual([data.reduce((sum, x) => sum + x, 0)])
})

describe('lanes that wait for each other', () => {
  test('every lane acquires a lock alone', async () => {
    const [lock, count] = await run('lockEachLane', { grid: 12, block: 64 }, new Int32Array(1), new Int32Array(1))
    expect([lock?.[0], count?.[0]]).toEqual([0, 12 * 64])
  })

  test('each lane waits for the previous one', async () => {
    const [flags] = await run('chain', { grid: 1, block: 128 }, new Int32Array(128))
    expect(flags).toEqual(Int32Array.from({ length: 128 }, (_, index) => index + 1))
  })

  test('paths of different lengths end and reconverge', async () => {
    const steps = (start: number): number => {
      let x = start
      let count = 0
      while (x !== 1 && count < 1000) {
        x = x % 2 === 0 ? x / 2 : 3 * x + 1
        count += 1
      }
      return count
    }
    const input = Int32Array.from({ length: 50 }, (_, index) => index + 1)
    const [, out] = await run('divergent', { grid: 1, block: 50 }, input, new Int32Array(50))
    expect(out).toEqual(input.map((x, index) => steps(x) + (index < 32 ? 32 : 18) * 10_000))
  })

  test('tiles of eight lanes do different things', async () => {
    const [out] = await run('tiles', { grid: 1, block: 64 }, new Int32Array(64))
    const expected = Int32Array.from({ length: 64 }, (_, thread) => {
      const tile = Math.floor(thread / 8)
      const members = Array.from({ length: 8 }, (_unused, index) => tile * 8 + index)
      if (tile % 2 === 0) return members.reduce((sum, member) => sum + member, 0)
      return members.reduce((mask, member, index) => mask | (bit(member % 3 === 0) << index), 0)
    })
    expect(out).toEqual(expected)
  })
})

describe('barriers', () => {
  test('of a part of the block, and with a thread count', async () => {
    const [out] = await run('partialBarrier', { grid: 2, block: 128 }, new Int32Array(128))
    const expected = Int32Array.from({ length: 128 }, (_, thread) => (thread < 64 ? (63 - thread) * 3 + 10 : 17))
    expect(out).toEqual(expected)
  })

  test('do not wait for threads that have exited', async () => {
    const [out] = await run('earlyExit', { grid: 1, block: 100 }, new Int32Array(100))
    expect(out).toEqual(Int32Array.from({ length: 100 }, (_, thread) => (thread < 40 ? 40 : 0)))
  })

  test("of a cluster let blocks read each other's shared memory", async () => {
    const [out] = await run('clusterExchange', { grid: 4, block: 32 }, new Int32Array(128))
    const expected = Int32Array.from(
      { length: 128 },
      (_, index) => (Math.floor(index / 32) ^ 1) * 100 + 31 - (index % 32),
    )
    expect(out).toEqual(expected)
  })
})
