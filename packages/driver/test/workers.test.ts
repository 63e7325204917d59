import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

process.env['SHOAL_DEVICE'] = 'sim'
const { Device, DeviceBuffer, pointerInfo } = await import('@shoal/driver')

function start(seed: number, way: string): Worker {
  return new Worker(new URL('./fixtures/worker.mjs', import.meta.url), { workerData: { seed, way } })
}

test('several workers use the driver concurrently with the main thread', async () => {
  const workers = Array.from({ length: 4 }, (_, seed) => start(seed, 'work'))
  const ends = workers.map(async (worker) => {
    const [[message], [code]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')])
    return [message, code]
  })
  using stream = Device.get(0).createStream({ nonBlocking: true })
  for (let round = 0; round < 20; round += 1) {
    using buffer = DeviceBuffer.from(Device.get(0), Float64Array.of(round, 1, 2))
    expect(await buffer.toArray({ stream })).toEqual(Float64Array.of(round, 1, 2))
  }
  expect(await Promise.all(ends)).toEqual(workers.map(() => ['done', 0]))
})

test('a worker terminated with waits in flight does not disturb the rest of the process', async () => {
  const worker = start(1, 'wait')
  expect(await once(worker, 'message')).toEqual(['waiting'])
  expect(await worker.terminate()).toBe(1)
  using buffer = DeviceBuffer.from(Device.get(1), Float32Array.of(1, 2, 3))
  expect(await buffer.toArray()).toEqual(Float32Array.of(1, 2, 3))
  // Waits until the work that the worker left behind is complete.
  await new Promise((resolve) => setTimeout(resolve, 400))
  await Device.get(1).synchronize()
})

test('memory registered by a worker is unregistered after the worker ends and the copies that use it complete', async () => {
  const worker = start(0, 'register')
  const [address] = await once(worker, 'message')
  expect(pointerInfo(Device.get(0), address).type).toBe('host')
  await worker.terminate()
  expect(pointerInfo(Device.get(0), address).type).toBe('unregistered')
  expect(Device.get(0).primaryContextState.active).toBe(true)
})

test('a worker that exits with work in flight ends cleanly', async () => {
  const worker = start(0, 'exit')
  const [code] = await once(worker, 'exit')
  expect(code).toBe(0)
  await Device.get(0).synchronize()
})

test.each(['', 'keep'])('idle resources are freed with a worker that ends without device.dispose() %s', async (way) => {
  const result = await runFixture('workerLeaks.mjs', undefined, { arguments: [way] })
  expect(result.signal).toBeNull()
  expect(result.code).toBe(0)
  const { before, after, codes, active } = JSON.parse(result.stdout)
  expect(codes).toEqual([0, 0, 0, 0, 0])
  // Each worker had 32 MiB of page-locked memory, and a stream with a thread of the software device.
  expect(after.resident - before.resident).toBeLessThan(64)
  expect(after.threads - before.threads).toBeLessThan(3)
  expect(active).toBe(way === 'keep')
})
