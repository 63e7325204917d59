import { inspect } from 'node:util'
import { DisposedError, memoryProtocol, StatusError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { AddressRange, allocationGranularity, DeviceBuffer, PhysicalMemory } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const device = new TestDevice(0)
const unit = allocationGranularity(device)

beforeEach(() => expect(device.used).toBe(0))

describe('AddressRange.reserve', () => {
  test('reserves addresses without memory', () => {
    using range = AddressRange.reserve(unit * 1000)
    expect(range.address).toBeTypeOf('bigint')
    expect([range.byteLength, range.mappedBytes, device.used]).toEqual([unit * 1000, 0, 0])
  })

  test('aligns the address, and uses the requested address if it is free', () => {
    const aligned = AddressRange.reserve(unit, { alignment: 2 ** 30 })
    const { address } = aligned
    expect(address % 2n ** 30n).toBe(0n)
    aligned.dispose()
    using again = AddressRange.reserve(unit, { address })
    expect(again.address).toBe(address)
  })

  test.each([
    [unit + 1, {}, RangeError, `byteLength must be a multiple of the granularity of ${unit} bytes, not ${unit + 1}`],
    [0, {}, RangeError, 'byteLength must be an integer from 1 to 2^53 - 1, not 0'],
    [-1, {}, RangeError, 'byteLength must be an integer from 1 to 2^53 - 1, not -1'],
    [1.5, {}, TypeError, 'byteLength must be an integer from 1 to 2^53 - 1, not 1.5'],
    [`${unit}`, {}, TypeError, `byteLength must be an integer from 1 to 2^53 - 1, not '${unit}'`],
    [unit, { alignment: 3 }, RangeError, 'alignment must be a power of two, not 3'],
    [unit, { address: 2n ** 64n }, RangeError, `address must be a bigint of 64 bits without a sign, not ${2n ** 64n}n`],
    [unit, { address: 5 }, TypeError, 'address must be a bigint, not 5'],
    [unit, { aligned: 1 }, TypeError, "options must have only the keys alignment, address, not 'aligned'"],
    [unit, null, TypeError, 'options must be a plain object such as { alignment, address }, not null'],
    [
      unit,
      new Map(),
      TypeError,
      'options must be a plain object such as { alignment, address }, not an object of class Map',
    ],
  ])('refuses %s bytes with %o', (byteLength, options, kind, message) => {
    expect(() => AddressRange.reserve(byteLength as number, options as object)).toThrow(
      new kind(`AddressRange.reserve: ${message}`),
    )
  })

  test('rethrows an error thrown by a getter of the options', () => {
    const options = {
      get alignment(): number {
        throw new Error('from the getter')
      },
    }
    expect(() => AddressRange.reserve(unit, options)).toThrow('from the getter')
  })
})

describe('AddressRange.map', () => {
  test('maps at offsets, and refuses mappings that overlap or do not fit', () => {
    using range = AddressRange.reserve(unit * 4)
    using memory = PhysicalMemory.create(device, unit)
    using first = range.map(memory, { offset: unit })
    const last = range.map(memory, { offset: unit * 3 })
    expect(range.mappedBytes).toBe(unit * 2)
    const overlap = `such that ${unit} bytes do not overlap the ${unit} bytes mapped at ${unit}, not ${unit}`
    expect(() => range.map(memory, { offset: unit })).toThrow(
      new RangeError(`AddressRange.map: offset must be ${overlap}`),
    )
    const beyond = `such that ${unit} bytes end within the range of ${unit * 4} bytes, not ${unit * 4}`
    expect(() => range.map(memory, { offset: unit * 4 })).toThrow(
      new RangeError(`AddressRange.map: offset must be ${beyond}`),
    )
    last.disposeSync()
    expect(range.mappedBytes).toBe(unit)
    expect(first.offset).toBe(unit)
    using again = range.map(memory, { offset: unit * 3 })
    expect(again.address).toBe(range.address + BigInt(unit * 3))
  })

  test('accepts a raw memory handle together with its size', () => {
    using range = AddressRange.reserve(unit * 2)
    using memory = PhysicalMemory.create(device, unit)
    const raw = memory.handle as bigint
    using mapped = range.map(raw, { byteLength: unit, offset: unit })
    expect(mapped[memoryProtocol]).toMatchObject({ address: range.address + BigInt(unit), deviceOrdinal: 0 })
    using same = range.map(memory)
    DeviceBuffer.view(device, mapped, 'u8', { length: 4 }).fillSync(7)
    expect(DeviceBuffer.view(device, same, 'u8', { length: 4 }).toArraySync()).toEqual(Uint8Array.of(7, 7, 7, 7))
    for (const [handle, options, type, words] of [
      [raw, {}, TypeError, 'byteLength must be an integer from 1 to 2^53 - 1, not undefined'],
      [raw, { byteLength: 5 }, RangeError, `byteLength must be a multiple of the granularity of ${unit} bytes, not 5`],
      [-1n, { byteLength: unit }, RangeError, 'memory must be'],
      [12345n, { byteLength: unit }, StatusError, 'cuMemGetAllocationPropertiesFromHandle failed'],
    ] as const) {
      expect(() => range.map(handle, options)).toThrow(type)
      expect(() => range.map(handle, options)).toThrow(words)
    }
  })

  test.each([
    [undefined, {}, 'memory must be PhysicalMemory or a MulticastObject, not undefined'],
    [{}, {}, 'memory must be PhysicalMemory or a MulticastObject, not a plain object'],
    [
      'memory',
      { offsets: 0 },
      "options must have only the keys offset, memoryOffset, byteLength, access, not 'offsets'; did you mean 'offset'?",
    ],
    ['memory', { access: 'read' }, "access must be an array, not 'read'"],
    ['memory', { access: [5] }, 'access[0] must be a plain object such as { place, access }, not 5'],
    [
      'memory',
      { access: [{ place: 5, access: 'read' }] },
      "access[0].place must be a Device, a Context, 'host' or { hostNode }, not 5",
    ],
    [
      'memory',
      { access: [{ place: { hostNode: 0, on: 1 }, access: 'read' }] },
      "access[0].place must have only the keys hostNode, not 'on'",
    ],
    [
      'memory',
      { access: [{ place: device, access: 'write' }] },
      "access[0].access must be 'none', 'read' or 'readWrite', not 'write'",
    ],
  ])('refuses %s with %o, and maps nothing', (what, options, message) => {
    using range = AddressRange.reserve(unit)
    using memory = PhysicalMemory.create(device, unit)
    const given = what === 'memory' ? memory : what
    expect(() => range.map(given as typeof memory, options as object)).toThrow(
      new TypeError(`AddressRange.map: ${message}`),
    )
    expect(range.mappedBytes).toBe(0)
  })

  test('names the second copy of the package when memory belongs to it', async () => {
    const other = await secondCopy()
    const theirs = other.AddressRange.reserve(unit)
    expect(theirs).not.toBeInstanceOf(AddressRange)
    using memory = PhysicalMemory.create(device, unit)
    expect(() => theirs.map(memory as never)).toThrow(/memory must be a PhysicalMemory of the copy/)
    theirs.dispose()
    using range = AddressRange.reserve(unit)
    const foreign = Object.create(other.PhysicalMemory.prototype, {
      _granularity: { value: unit },
      _contexts: { value: [{}] },
    }) as typeof memory
    expect(() => range.map(foreign)).toThrow(twoCopies)
  })
})

describe('AddressRange.dispose', () => {
  test('frees the addresses at once if nothing is mapped', () => {
    const range = AddressRange.reserve(unit)
    const { address } = range
    range.dispose()
    range.dispose()
    using again = AddressRange.reserve(unit, { address })
    expect(again.address).toBe(address)
    expect(() => range.address).toThrow(DisposedError)
    expect(() => range.map(undefined as never)).toThrow(DisposedError)
  })

  test('frees the addresses together with the last mapping', () => {
    const range = AddressRange.reserve(unit)
    using memory = PhysicalMemory.create(device, unit)
    const mapped = range.map(memory)
    range.dispose()
    expect(() => range.address).toThrow('its addresses are freed with its last mapping')
    expect(mapped.address).toBeTypeOf('bigint')
    mapped.disposeSync()
    expect(() => range.address).toThrow(DisposedError)
    expect(() => range.address).not.toThrow('its addresses are freed')
  })
})

test('AddressRange is printed in one line, also after dispose()', () => {
  const range = AddressRange.reserve(unit)
  const address = `0x${range.address.toString(16)}`
  const line = `AddressRange { address: ${address}, byteLength: ${unit}, mappedBytes: 0`
  expect(inspect(range)).toBe(`${line} }`)
  range.dispose()
  expect(inspect(range)).toBe(`${line}, disposed: true }`)
})
