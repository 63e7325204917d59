import { DisposedError, type MemoryLike, memoryProtocol } from '@shoal/types'
import { afterAll, describe, expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { AddressRange, allocationGranularity, Device, DeviceBuffer, GrowableBuffer, PhysicalMemory } = await import(
  '@shoal/driver'
)

const device = Device.get(0)
const unit = allocationGranularity(device)

afterAll(() => device.dispose())

const read = (memory: MemoryLike) => memory[memoryProtocol]

/** Reads the memory twice: a loop of operations receives one object that was checked once. */
function readAgain(memory: MemoryLike): void {
  const range = read(memory)
  expect(Object.isFrozen(range)).toBe(true)
  expect(read(memory)).toBe(range)
}

describe('memory that was used before', () => {
  test.each([
    ['DeviceBuffer', () => DeviceBuffer.allocate(device, 'f32', 100)],
    ['stream-ordered DeviceBuffer', () => DeviceBuffer.allocateOn(device.createStream(), 'f32', 100)],
  ])('of a %s is refused once it or the buffer it is a slice of was disposed', (_, make) => {
    const whole = make()
    const [kept, given] = [whole.slice(10), whole.slice(20)]
    for (const memory of [whole, kept, given]) readAgain(memory)
    given.dispose()
    expect(() => read(given)).toThrow(DisposedError)
    readAgain(kept)
    whole.dispose()
    for (const memory of [whole, kept]) expect(() => read(memory)).toThrow(DisposedError)
  })

  test('and is mapped is refused after it was unmapped, also through views', () => {
    using range = AddressRange.reserve(unit)
    using physical = PhysicalMemory.create(device, unit)
    const mapped = range.map(physical)
    const view = DeviceBuffer.view(device, mapped, 'u8')
    const part = view.slice(5)
    for (const memory of [mapped, view, part]) readAgain(memory)
    mapped.dispose()
    for (const memory of [mapped, view, part]) expect(() => read(memory)).toThrow(DisposedError)
  })

  test('and can grow is refused beyond its current length', () => {
    using growable = GrowableBuffer.reserve(device, 'u8', { maximumLength: 4 * unit, length: 100, stepBytes: unit })
    const before = growable.buffer
    const [start, end] = [before.slice(0, 50), before.slice(50)]
    for (const memory of [growable, before, start, end]) readAgain(memory)
    growable.resize(60)
    readAgain(growable)
    expect(read(growable).byteLength).toBe(60)
    readAgain(start)
    for (const memory of [before, end]) expect(() => read(memory)).toThrow('which has only 60 bytes now')
    growable.resize(3 * unit)
    expect(read(growable).byteLength).toBe(3 * unit)
    for (const memory of [growable, before, start, end]) readAgain(memory)
  })

  test('of another package is queried each time, unless its answer is frozen', () => {
    using buffer = DeviceBuffer.allocate(device, 'u8', 100)
    const range = { ...read(buffer) }
    const view = DeviceBuffer.view(device, { [memoryProtocol]: range }, 'u8')
    readAgain(view)
    range.byteLength = 50
    expect(() => read(view)).toThrow('the view ends at byte 100 of its memory, which has only 50 bytes now')
  })

  test('is refused after the device was reset', async () => {
    const buffer = DeviceBuffer.allocate(device, 'u8', 100)
    const growable = GrowableBuffer.reserve(device, 'u8', { maximumLength: unit, length: 100 })
    const view = growable.buffer
    for (const memory of [buffer, growable, view]) readAgain(memory)
    await device.reset()
    for (const memory of [buffer, growable, view]) expect(() => read(memory)).toThrow(DisposedError)
    buffer.dispose()
    growable.dispose()
  })
})
