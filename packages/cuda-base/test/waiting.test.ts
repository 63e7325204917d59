import { Worker } from 'node:worker_threads'
import { StatusError } from '@shoal/types'
import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Event, Stream } = await import('@shoal/cuda-base')
const { TestDevice, delay, injectError } = await import('./support.js')

const device = new TestDevice(0)

/** Whether a promise is settled before the event loop begins another turn. */
async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let isNextTurn = false
  setImmediate(() => {
    isNextTurn = true
  })
  await promise
  return !isNextTurn
}

test('what is done already is awaited without a turn of the event loop', async () => {
  using stream = Stream.create(device, { nonBlocking: true })
  expect(await settlesAtOnce(stream.synchronize())).toBe(true)
  using event = Event.create(device)
  stream.record(event)
  stream.synchronizeSync()
  expect(await settlesAtOnce(event.synchronize())).toBe(true)
  delay(stream, 300)
  stream.record(event)
  expect(await settlesAtOnce(event.synchronize())).toBe(false)
  expect(event.query()).toBe(true)
})

test('short and long waits let the event loop go on, and end together or one by one', async () => {
  const streams = Array.from({ length: 100 }, () => Stream.create(device, { nonBlocking: true }))
  let isOver = false
  let turns = 0
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  for (const [index, stream] of streams.entries()) delay(stream, index === 99 ? 300 : index % 10)
  await Promise.all(streams.map((stream) => stream.synchronize().then((done) => expect(done.query()).toBe(true))))
  isOver = true
  expect(turns).toBeGreaterThan(1)
  for (const stream of streams) stream.dispose()
})

test('a short wait ends early with its signal or timeout, or when what is waited for is disposed of', async () => {
  using stream = Stream.create(device, { nonBlocking: true })
  delay(stream, 300)
  const ending = new AbortController()
  const aborted = stream.synchronize({ signal: ending.signal })
  const late = stream.synchronize({ timeout: 0 })
  const event = stream.record()
  const ofEvent = event.synchronize()
  event.dispose()
  ending.abort()
  await expect(aborted).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
  await expect(late).rejects.toMatchObject({ code: 'SHOAL_TIMEOUT' })
  expect(await ofEvent).toBe(event)
  expect(stream.query()).toBe(true)
})

test('a device that fails meanwhile ends the wait with its error', async () => {
  const failing = new TestDevice(1)
  const stream = Stream.create(failing, { nonBlocking: true })
  delay(stream, 300)
  const waits = [stream.synchronize(), stream.synchronize({ timeout: 60_000 })]
  injectError(failing, 700)
  for (const wait of waits) await expect(wait).rejects.toThrow(StatusError)
  await expect(stream.synchronize()).rejects.toThrow(StatusError)
})

test('a thread that ends with short waits pending ends', async () => {
  const worker = new Worker(
    `const { workerData } = require('node:worker_threads')
    import(workerData).then(({ Device, Stream }) => {
      const stream = Device.get(0).createStream({ nonBlocking: true })
      setInterval(() => {
        stream.record()
        for (let i = 0; i < 10; i += 1) stream.synchronize()
      }, 0)
      require('node:worker_threads').parentPort.postMessage('waits')
    })`,
    { eval: true, workerData: new URL('../../driver/dist/index.js', import.meta.url).href },
  )
  await new Promise((resolve) => worker.once('message', resolve))
  expect(await worker.terminate()).toBe(1)
})
