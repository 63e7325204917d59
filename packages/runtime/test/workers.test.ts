import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { currentDevice, DeviceBuffer, setDevice } = await import('@shoal/runtime')

test('each thread has a separate current device', async () => {
  setDevice(0)
  const workers = Array.from(
    { length: 4 },
    (_, seed) => new Worker(new URL('./fixtures/worker.mjs', import.meta.url), { workerData: { seed, way: 'work' } }),
  )
  const ends = workers.map(async (worker) => {
    const [[message], [code]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')])
    return [message, code]
  })
  for (let round = 0; round < 20; round += 1) {
    using memory = DeviceBuffer.from(Float64Array.of(round, 1, 2))
    expect(await memory.toArray()).toEqual(Float64Array.of(round, 1, 2))
    expect(currentDevice().ordinal).toBe(0)
  }
  expect(await Promise.all(ends)).toEqual([0, 1, 2, 3].map((seed) => [{ device: seed % 2 }, 0]))
})

test('a worker terminated with waits in flight does not disturb the rest of the process', async () => {
  const worker = new Worker(new URL('./fixtures/worker.mjs', import.meta.url), { workerData: { seed: 1, way: 'wait' } })
  expect(await once(worker, 'message')).toEqual(['waiting'])
  expect(await worker.terminate()).toBe(1)
  using memory = DeviceBuffer.from(Float32Array.of(1, 2, 3), { device: 1 })
  expect(await memory.toArray()).toEqual(Float32Array.of(1, 2, 3))
})
