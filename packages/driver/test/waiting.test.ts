import { Worker } from 'node:worker_threads'
import { StatusError } from '@shoal/types'
import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, Event, Stream } = await import('@shoal/driver/shared')
const { TestDevice, delay, injectError } = await import('./support/testDevice.js')
// No caller throws in its callback, so the test calls the function itself.
const { ShortWait, shortWait } = await import('../src/core/waiting/shortWait.js')

const device = new TestDevice(0)

/** Whether a promise settles before the event loop starts another turn. */
async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let isNextTurn = false
  setImmediate(() => {
    isNextTurn = true
  })
  await promise
  return !isNextTurn
}

test('awaiting completed work takes no turn of the event loop', async () => {
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

test('short and long waits do not block the event loop, and settle together or one by one', async () => {
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

test('fake timers of a test framework do not affect waits', async () => {
  using stream = Stream.create(device, { nonBlocking: true })
  using buffer = DeviceBuffer.zeros(device, 'u8', 3 * 1024 * 1024)
  const { setImmediate, setTimeout } = globalThis
  const never = (() => ({ unref: () => undefined })) as never
  Object.assign(globalThis, { setImmediate: never, setTimeout: never })
  try {
    delay(stream, 20)
    await stream.synchronize()
    await buffer.copyFrom(new Uint8Array(buffer.length), { stream })
    expect((await buffer.toArray({ stream })).length).toBe(buffer.length)
    let isCalled = false
    delay(stream, 1)
    await stream.hostFunction(() => {
      isCalled = true
    })
    expect(isCalled).toBe(true)
  } finally {
    Object.assign(globalThis, { setImmediate, setTimeout })
  }
})

test('a short wait ends early by its signal or timeout, or when its event is disposed', async () => {
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

test('aborted waits and waits of disposed streams do not disturb other waits', async () => {
  const stream = Stream.create(device, { nonBlocking: true })
  const already = AbortSignal.abort('too late')
  await expect(stream.synchronize({ signal: already })).rejects.toMatchObject({
    code: 'SHOAL_ABORTED',
    cause: 'too late',
  })
  using flag = DeviceBuffer.zeros(device, 'u32', 1)
  using other = Stream.create(device, { nonBlocking: true })
  stream.waitValue(flag, 1)
  const event = stream.record()
  const endings = Array.from({ length: 40 }, () => new AbortController())
  const aborted = endings.map(({ signal }, index) => (index % 2 === 0 ? stream : event).synchronize({ signal }))
  const unlimited = [stream.synchronize({ timeout: 60_000 }), event.synchronize(), stream.synchronize()]
  const outcomes = Promise.allSettled(aborted)
  for (const ending of endings) ending.abort()
  // The stream's work still completes, and its waits too.
  stream.dispose()
  event.dispose()
  for (const { status } of await outcomes) expect(status).toBe('rejected')
  other.writeValue(flag, 1)
  expect(await Promise.all(unlimited)).toEqual([stream, event, stream])
  await expect(stream.synchronize()).rejects.toMatchObject({ code: 'SHOAL_DISPOSED' })
})

test('a wait that completes before its timeout is not rejected by the timeout', async () => {
  using stream = Stream.create(device, { nonBlocking: true })
  const ending = new AbortController()
  delay(stream, 1)
  expect(await stream.synchronize({ timeout: 60_000, signal: ending.signal })).toBe(stream)
  ending.abort()
  delay(stream, 1)
  const event = stream.record()
  expect(await event.synchronize({ timeout: 60_000 })).toBe(event)
})

test('a device reset waits for short waits on the device', async () => {
  const own = new TestDevice(0)
  const stream = Stream.create(own, { nonBlocking: true })
  delay(stream, 5)
  const order: string[] = []
  const waits = Array.from({ length: 40 }, () => stream.synchronize().then(() => order.push('wait')))
  await own.reset().then(() => order.push('reset'))
  await Promise.all(waits)
  expect([order.at(-1), order.length]).toEqual(['reset', 41])
  await expect(stream.synchronize()).rejects.toMatchObject({ code: 'SHOAL_DISPOSED' })
  stream.dispose()
  own.dispose()
})

test('a device failure during a wait rejects the wait with its error', async () => {
  const failing = new TestDevice(1)
  const stream = Stream.create(failing, { nonBlocking: true })
  delay(stream, 300)
  using intact = Stream.create(device, { nonBlocking: true })
  delay(intact, 300)
  const event = stream.record()
  // More waits than one turn polls: the native thread already has some of them.
  const waits = Array.from({ length: 40 }, (_, index) =>
    (index % 2 === 0 ? stream : event).synchronize(index % 3 === 0 ? { timeout: 60_000 } : {}),
  )
  const ofTheOther = intact.synchronize()
  injectError(failing, 700)
  const reasons = (await Promise.allSettled(waits)).map((one) => one.status === 'rejected' && one.reason)
  for (const reason of reasons) expect(reason).toBeInstanceOf(StatusError)
  expect(await ofTheOther).toBe(intact)
  await expect(stream.synchronize()).rejects.toThrow(StatusError)
})

test("an error thrown by a wait's callback is an uncaught exception, and other waits continue", async () => {
  using stream = Stream.create(device, { nonBlocking: true })
  const uncaught: unknown[] = []
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => uncaught.push(error))
  try {
    const wait = (isUrgent: boolean, index: number): Promise<number> =>
      new Promise((resolve) => {
        class OneWait extends ShortWait {
          readonly event = stream.record().handle
          reached(status: number): void {
            resolve(status)
            if (index % 2 === 0) throw new Error(`wait ${index}`)
          }
        }
        shortWait(new OneWait(stream.context as never), isUrgent)
      })
    for (const isUrgent of [true, false]) {
      expect(await Promise.all([0, 1, 2, 3].map((index) => wait(isUrgent, index)))).toEqual([0, 0, 0, 0])
      expect(await wait(isUrgent, 1)).toBe(0)
    }
  } finally {
    process.removeAllListeners('uncaughtException')
    for (const listener of listeners) process.on('uncaughtException', listener)
  }
  expect(uncaught.map(String)).toEqual(['Error: wait 0', 'Error: wait 2', 'Error: wait 0', 'Error: wait 2'])
})

test('a thread with short waits pending can exit', async () => {
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
    { eval: true, workerData: new URL('../dist/index.js', import.meta.url).href },
  )
  await new Promise((resolve) => worker.once('message', resolve))
  expect(await worker.terminate()).toBe(1)
})
