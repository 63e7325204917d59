import { DisposedError, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, ManagedBuffer, Stream } = await import('@shoal/driver/shared')
const { discardBatch, prefetchBatch } = await import('@shoal/driver/memory')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)

describe('prefetchBatch', () => {
  test('moves each piece to a separate place', () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using one = ManagedBuffer.allocate(device, 'f32', 5000)
    using two = ManagedBuffer.allocate(device, 'u8', 100)
    using three = ManagedBuffer.allocate(device, 'u64', 7)
    three.array.fill(5n)
    prefetchBatch(
      device,
      [
        { memory: one, place: 1 },
        { memory: two, place: 'host' },
        { memory: three, place: device },
      ],
      { stream },
    )
    const places = (): unknown[] => [one, two, three].map(({ attributes }) => attributes.lastPrefetchLocation)
    expect(places()).toEqual([
      { type: 'device', deviceOrdinal: 1 },
      { type: 'host' },
      { type: 'device', deviceOrdinal: 0 },
    ])
    expect(three.array).toEqual(new BigUint64Array(7).fill(5n))
    prefetchBatch(device, [{ memory: one, place: 0 }], { stream, discard: true })
    expect(one.attributes.lastPrefetchLocation).toEqual({ type: 'device', deviceOrdinal: 0 })
    discardBatch(device, [one, two], { stream })
    one.array.fill(2)
    expect(one.array[4999]).toBe(2)
  })

  test('accepts parts of managed memory', () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using all = ManagedBuffer.allocate(device, 'u8', 3 * 4096)
    prefetchBatch(device, [{ memory: all.memory.slice(0, 4096), place: 1 }], { stream })
    expect(all.attributes.lastPrefetchLocation).toBeUndefined()
    prefetchBatch(device, [{ memory: all.memory.slice(4096), place: 1 }], { stream })
    expect(all.attributes.lastPrefetchLocation).toEqual({ type: 'device', deviceOrdinal: 1 })
  })

  test('refuses wrong arguments by name without moving memory', () => {
    using stream = Stream.create(device)
    using managed = ManagedBuffer.allocate(device, 'u8', 8)
    using plain = DeviceBuffer.zeros(device, 'u8', 8)
    const good = { memory: managed, place: 1 }
    for (const [prefetches, options, message] of [
      [[], { stream }, /^prefetchBatch: prefetches must be at least one piece of memory/],
      [1, { stream }, /prefetches must be an array of prefetches/],
      [[{ memory: managed }], { stream }, /prefetches\[0\].place/],
      [
        [good, { memory: managed, place: 9 }],
        { stream },
        /prefetches\[1\].place must be the ordinal of one of the 2 devices, not 9/,
      ],
      [[{ memory: 5, place: 0 }], { stream }, /prefetches\[0\].memory/],
      [[{ ...good, where: 1 }], { stream }, /prefetches\[0\] must have only the keys memory, place/],
      [
        [{ memory: managed.memory.slice(0, 0), place: 0 }],
        { stream },
        /prefetches\[0\] must be memory of at least one byte/,
      ],
      [[good], {}, /stream must be a stream, not undefined/],
      [[good], undefined, /options must be a plain object/],
      [[good], { stream, discard: 1 }, /discard must be a boolean/],
    ] as const) {
      expect(() => prefetchBatch(device, prefetches as never, options as never)).toThrow(message)
    }
    expect(() => discardBatch(device, [], { stream })).toThrow(/memories must be at least one/)
    expect(() => discardBatch(device, [3 as never], { stream })).toThrow(/memories\[0\]/)
    // Only the driver knows whether memory is managed.
    expect(() => prefetchBatch(device, [good, { memory: plain, place: 0 }], { stream })).toThrow(StatusError)
    expect(() => discardBatch(device, [plain], { stream })).toThrow(StatusError)
    expect(managed.attributes.lastPrefetchLocation).toBeUndefined()
    managed.dispose()
    expect(() => prefetchBatch(device, [good], { stream })).toThrow(DisposedError)
  })
})
