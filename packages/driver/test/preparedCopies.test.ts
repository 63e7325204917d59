import { inspect } from 'node:util'
import { DisposedError, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { randomFloats, randomInteger } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, PinnedBuffer, prepareCopies, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)

describe('prepareCopies', () => {
  test('copies any sizes and kinds of memory at every launch', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    const lengths = Array.from({ length: 50 }, () => randomInteger(1, 3000))
    const total = lengths.reduce((sum, length) => sum + length, 0)
    using from = PinnedBuffer.allocate(device, 'f32', total)
    using to = DeviceBuffer.zeros(device, 'f32', total)
    using between = DeviceBuffer.zeros(device, 'f32', total)
    const parts = lengths.map((length, index) => {
      const start = lengths.slice(0, index).reduce((sum, each) => sum + each, 0)
      return { start, end: start + length }
    })
    const memory = DeviceBuffer.view(device, from, 'f32')
    const up = prepareCopies(
      device,
      parts.map(({ start, end }) => ({ target: between.slice(start, end), source: memory.slice(start, end) })),
    )
    const across = prepareCopies(
      device,
      [...parts]
        .reverse()
        .map(({ start, end }) => ({ target: to.slice(start, end), source: between.slice(start, end) })),
    )
    expect([up.count, inspect(across)]).toEqual([50, 'PreparedCopies { device: 0, count: 50 }'])
    for (let turn = 0; turn < 3; turn += 1) {
      const values = randomFloats(total)
      from.array.set(values)
      up.launch({ stream })
      across.launch({ stream })
      await stream.synchronize()
      expect(await to.toArray()).toEqual(values)
    }
  })

  test('refuses wrong arguments and the default stream by name', () => {
    using stream = Stream.create(device)
    using one = DeviceBuffer.zeros(device, 'u8', 8)
    using other = DeviceBuffer.zeros(device, 'u8', 9)
    for (const [copies, message] of [
      [[], /^prepareCopies: copies must be at least one copy/],
      [1, /^prepareCopies: copies must be/],
      [[{ target: one, source: other }], /copies\[0\].source must be as long as its target, 8 bytes/],
      [[{ target: one.slice(0, 0), source: one }], /copies\[0\].target must be memory of at least one byte/],
      [[{ target: one, source: new Uint8Array(8) }], /copies\[0\].source/],
      [[{ target: one, source: one, length: 3 }], /length/],
    ] as const) {
      expect(() => prepareCopies(device, copies as never)).toThrow(message)
    }
    const copies = prepareCopies(device, [{ target: one, source: other.slice(1) }])
    expect(() => copies.launch({})).toThrow('PreparedCopies.launch: stream must be a stream')
    expect(() => copies.launch({ stream: Stream.borrow(device, 1n) })).toThrow(StatusError)
    copies.launch({ stream })
    one.dispose()
    expect(() => copies.launch({ stream })).toThrow(DisposedError)
  })
})
