import { createLane, NativeMemory, offThread, waitForEvent } from '@shoal/ffi'
import * as internal from '@shoal/ffi/internal'
import { afterAll, expect, test } from 'vitest'
import { failWith, library, sleepUs } from './support/stubCalls.js'

// With idle processors, the event loop itself polls for the end of a short call. The addon's types are internal.
const native = (internal as unknown as { addon: () => { hasSpareProcessors: boolean } }).addon()
const { hasSpareProcessors } = native
native.hasSpareProcessors = true
const lane = createLane()
afterAll(() => {
  native.hasSpareProcessors = hasSpareProcessors
  lane.dispose()
})

test('calls of any duration settle in order, even if they end just after the event loop stopped polling', async () => {
  const lengths = Array.from({ length: 300 }, (_, index) => (index * 37) % 250)
  const told: number[] = []
  for (const [index, length] of lengths.entries()) {
    const call = offThread(index % 2 === 0 ? { lane } : {}, () => sleepUs(length)).then(() => told.push(index))
    if (index % 3 === 0) await call
  }
  const [status] = await offThread({ lane }, () => failWith(9))
  expect(status).toBe(9)
  await offThread({}, () => failWith(0))
  while (told.length < lengths.length) await new Promise((resolve) => setImmediate(resolve))
  const even = told.filter((index) => index % 2 === 0)
  expect(even).toEqual([...even].sort((a, b) => a - b))
  expect(new Set(told).size).toBe(lengths.length)
})

test('timers and other events are handled between short calls', async () => {
  let turns = 0
  let isOver = false
  const turn = (): void => {
    turns += 1
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const timer = new Promise((resolve) => setTimeout(resolve, 1))
  for (let call = 0; call < 100; call += 1) await offThread({ lane }, () => failWith(0))
  isOver = true
  // Each call's end is reported in a separate turn, unless the event loop was woken for it.
  expect(turns).toBeGreaterThan(20)
  await timer
})

test('waits settle while the event loop polls for calls', async () => {
  const countdown = NativeMemory.allocate(8)
  countdown.i32.set([50, 7])
  const call = offThread({ lane }, () => sleepUs(50))
  const query = library.address('query')
  expect(await waitForEvent({ context: 0n, event: countdown.address, query, notReady: 600 })).toBe(7)
  expect(await call).toEqual([0])
})

test('fake timers of a test framework do not affect short calls', async () => {
  const { setImmediate, setTimeout } = globalThis
  const never = (() => ({ unref: () => undefined })) as never
  Object.assign(globalThis, { setImmediate: never, setTimeout: never })
  try {
    expect(await offThread({ lane }, () => failWith(3))).toEqual([3])
    expect(await offThread({ lane }, () => sleepUs(1000))).toEqual([0])
  } finally {
    Object.assign(globalThis, { setImmediate, setTimeout })
  }
})
