import { DisposedError, type MemoryLike, memoryProtocol } from '@shoal/types'
import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { AddressRange, allocationGranularity, DeviceBuffer, PhysicalMemory } = await import('@shoal/runtime')

const unit = allocationGranularity()
const read = (memory: MemoryLike) => memory[memoryProtocol]

/** Reads the memory twice: a loop of operations receives one object that was checked once. */
function readAgain(memory: MemoryLike): void {
  const range = read(memory)
  expect(Object.isFrozen(range)).toBe(true)
  expect(read(memory)).toBe(range)
}

test('memory that was used before is refused once it or the buffer it is a slice of was disposed', () => {
  const whole = DeviceBuffer.allocate('f32', 100)
  const [kept, given] = [whole.slice(10), whole.slice(20)]
  for (const memory of [whole, kept, given]) readAgain(memory)
  given.dispose()
  expect(() => read(given)).toThrow(DisposedError)
  readAgain(kept)
  whole.dispose()
  for (const memory of [whole, kept]) expect(() => read(memory)).toThrow(DisposedError)
})

test('mapped memory that was used before is refused once it was unmapped, also through views', () => {
  using range = AddressRange.reserve(unit)
  using physical = PhysicalMemory.create(unit)
  const mapped = range.map(physical)
  const view = DeviceBuffer.view(mapped, 'u8')
  const part = view.slice(5)
  for (const memory of [mapped, view, part]) readAgain(memory)
  mapped.dispose()
  for (const memory of [mapped, view, part]) expect(() => read(memory)).toThrow(DisposedError)
})
