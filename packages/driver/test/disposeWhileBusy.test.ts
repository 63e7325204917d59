import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { delay } from './support/delay.js'
import { left, leftSince } from './support/left.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, GrowableRange, Stream } = await import('@shoal/driver')
const { kinds } = (await import('./fixtures/everyObject.mjs' as string)) as {
  readonly kinds: { readonly [name: string]: (device: unknown) => readonly (Disposable & AsyncDisposable & Blocking)[] }
}

interface Blocking {
  disposeSync(): void
}

/** Milliseconds of work on these tests' stream. They must exceed the time of a dispose() that does not wait. */
const busyFor = 400
afterEach(() => Device.get(0).dispose())
afterAll(() => Device.get(0).dispose())

/** Objects whose last release waits for the device. The test asks the driver whether the release is complete. */
const waits = [
  'DeviceBuffer',
  'PitchedBuffer',
  'ManagedBuffer',
  'PinnedBuffer',
  'RegisteredBuffer',
  'GrowableBuffer',
  'MappedRange',
  'Module',
  'Library',
  'CudaArray',
  'MipmappedArray',
  'TextureObject',
  'SurfaceObject',
  'ExternalMemory',
  'ExternalSemaphore',
]

describe.each(Object.entries(kinds))('%s', (name, make) => {
  test('dispose() returns while a kernel still runs on another stream, and its memory is freed afterwards', async () => {
    const device = Device.get(0)
    const stream = Stream.create(device, { nonBlocking: true })
    // Create the objects that the package caches, before the measurement.
    for (const one of make(device)) one[Symbol.dispose]()
    stream.synchronizeSync()
    const before = left()
    const made = make(device)
    delay(stream, busyFor)
    for (const one of made) one[Symbol.dispose]()
    expect(stream.query()).toBe(false)
    stream.synchronizeSync()
    expect(await leftSince(before, 500)).toBe('')
    stream.dispose()
  })

  test('disposeSync() returns after everything is released', async () => {
    const device = Device.get(0)
    const stream = Stream.create(device, { nonBlocking: true })
    for (const one of make(device)) one.disposeSync()
    const before = left()
    const made = make(device)
    if (waits.includes(name)) delay(stream, busyFor)
    for (const one of made) one.disposeSync()
    expect(await leftSince(before, 1)).toBe('')
    if (waits.includes(name)) expect(stream.query()).toBe(true)
    stream.dispose()
  })

  test('await using resolves after everything is released, without blocking the thread', async () => {
    const device = Device.get(0)
    const stream = Stream.create(device, { nonBlocking: true })
    for (const one of make(device)) one.disposeSync()
    const before = left()
    const made = make(device)
    if (waits.includes(name)) delay(stream, busyFor)
    const ended = made.map((one) => one[Symbol.asyncDispose]())
    if (waits.includes(name)) expect(stream.query()).toBe(false)
    await Promise.all(ended)
    expect(await leftSince(before, 1)).toBe('')
    if (waits.includes(name)) expect(stream.query()).toBe(true)
    stream.dispose()
  })
})

test('a GrowableRange shrinks and is disposed while a kernel runs, and grows again once the memory is unmapped', async () => {
  const device = Device.get(0)
  using stream = Stream.create(device, { nonBlocking: true })
  const before = left()
  const unit = 2 ** 21
  const range = GrowableRange.reserve(device, { maximumBytes: 4 * unit, stepBytes: unit })
  for (const pieces of [1, 2, 3]) range.resize(pieces * unit)
  delay(stream, busyFor)
  range.resize(unit)
  expect([stream.query(), range.capacity]).toEqual([false, unit])
  range.resize(3 * unit)
  expect([stream.query(), range.capacity]).toEqual([true, 3 * unit])
  delay(stream, busyFor)
  range.resize(0)
  await range[Symbol.asyncDispose]()
  expect(await leftSince(before, 1)).toBe('')
})
