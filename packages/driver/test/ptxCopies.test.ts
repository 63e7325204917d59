import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { corpusFile } from './support/corpus.js'

// The software device runs the compiler's PTX of packages/sim/test/ptx/copies.cu.
Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '3', SHOAL_SIM_KERNEL_SECONDS: '2' })
const { Device, DeviceBuffer, Module } = await import('@shoal/driver')

let device: import('@shoal/driver').Device
let module: import('@shoal/driver').Module

beforeAll(() => {
  device = Device.get(0)
  module = Module.loadSync(device, readFileSync(corpusFile('copies.ptx'), 'utf8'))
})

/** Launches a kernel with input, output and numbers. Returns the output. */
async function run(
  name: string,
  shape: { grid: number; block: number },
  input: Int32Array | undefined,
  count: number,
  ...numbers: number[]
): Promise<Int32Array> {
  using out = DeviceBuffer.zeros(device, 'i32', count)
  using from = DeviceBuffer.from(device, input ?? new Int32Array(1))
  const buffers = input === undefined ? [out] : [from, out]
  const kinds = [...buffers.map(() => 'ptr' as const), ...numbers.map(() => 'i32' as const)]
  module.kernel(name, kinds).launch(shape, ...buffers, ...numbers)
  return await out.toArray()
}

const numbers = (count: number): Int32Array => Int32Array.from({ length: count }, (_, index) => (index * 7919) % 1009)
const filled = (count: number, of: (index: number) => number): Int32Array =>
  Int32Array.from({ length: count }, (_, index) => of(index))

test('the software device runs cooperative_groups::memcpy_async', async () => {
  const input = numbers(512)
  const out = await run('groupCopy', { grid: 2, block: 256 }, input, 512)
  expect(out).toEqual(filled(512, (i) => input[(i & ~255) + 255 - (i & 255)] as number))
})

test('the software device runs a two-stage cuda::pipeline of a block', async () => {
  const input = numbers(128 * 7)
  const out = await run('pipelined', { grid: 1, block: 128 }, input, 128, 7)
  const sum = (i: number): number =>
    [1, 2, 3, 4, 5, 6, 7].reduce((total, round) => total + (input[(round - 1) * 128 + 127 - i] as number) * round, 0)
  expect(out).toEqual(filled(128, sum))
})

test('the software device runs a cuda::pipeline per thread', async () => {
  const input = numbers(512)
  const out = await run('threadPipeline', { grid: 1, block: 64 }, input, 256)
  const value = (i: number): number =>
    (input[(63 - (i >> 2)) * 4 + (i & 3)] as number) + ((i & 3) === 0 ? (input[256 + i] as number) : 0)
  expect(out).toEqual(filled(256, value))
})

test('the software device runs a cuda::barrier between a producer and consumers', async () => {
  const out = await run('producerAndConsumers', { grid: 1, block: 128 }, undefined, 96, 9)
  const sum = (i: number): number => 36_000 + 9 * (((i & 31) + (i >> 5) + 1) % 32)
  expect(out).toEqual(filled(96, sum))
})

test('the software device runs lanes of one warp that wait for each other', async () => {
  const out = await run('withinWarp', { grid: 1, block: 32 }, undefined, 32)
  expect(out).toEqual(filled(32, (i) => (i < 16 ? 7 + i : -1)))
})

test('the software device lets threads leave a barrier permanently', async () => {
  expect(await run('dropOut', { grid: 1, block: 96 }, undefined, 48)).toEqual(filled(48, () => 48))
})

test('the software device runs bulk copies that a barrier counts', async () => {
  const input = numbers(512)
  const out = await run('bulk', { grid: 2, block: 128 }, input, 512)
  expect(out).toEqual(filled(512, (i) => ((i & 255) < 128 ? (input[i] as number) + 1 : (input[i] as number) * 2)))
})

test('the software device stores into the other block of a cluster', async () => {
  const out = await run('neighbours', { grid: 4, block: 32 }, undefined, 128)
  expect(out).toEqual(filled(128, (i) => ((i >> 5) ^ 1) * 100 + 31 - (i & 31)))
})

test('waiting at a barrier without arrivals takes no processor time, and is stopped by the limit', async () => {
  const text = (wait: string): string => `.version 8.0
.target sm_90
.address_size 64
.visible .entry k() {
  .reg .pred %p;
  .shared .b64 bar;
  mbarrier.init.shared.b64 [bar], 1;
  L: ${wait} %p, [bar], 0;
  @!%p bra L;
  ret;
}`
  const other = Device.get(1)
  Module.loadSync(other, text('mbarrier.try_wait.parity.shared.b64')).kernel('k', []).launch({ grid: 2, block: 32 })
  const before = process.cpuUsage()
  await expect(other.synchronize()).rejects.toMatchObject({ code: 'CUDA_ERROR_LAUNCH_TIMEOUT' })
  const used = process.cpuUsage(before)
  // The kernel may run for two seconds.
  expect((used.user + used.system) / 1e6).toBeLessThan(1)
  const third = Device.get(2)
  Module.loadSync(third, text('mbarrier.test_wait.parity.shared.b64')).kernel('k', []).launch({ grid: 2, block: 32 })
  await expect(third.synchronize()).rejects.toMatchObject({ code: 'CUDA_ERROR_LAUNCH_TIMEOUT' })
})
