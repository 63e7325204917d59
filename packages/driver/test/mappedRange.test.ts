import { inspect } from 'node:util'
import { DisposedError, memoryProtocol } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { AddressRange, allocationGranularity, PhysicalMemory } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const unit = allocationGranularity(device)

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

describe('the access of a MappedRange', () => {
  test('defaults to the device that owns the memory', () => {
    using memory = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit * 2)
    using mapped = range.map(memory)
    expect([mapped.getAccess(device), mapped.getAccess(second)]).toEqual(['readWrite', 'none'])
    using read = range.map(memory, { offset: unit, access: [{ place: second.primaryContext, access: 'read' }] })
    expect([read.getAccess(device), read.getAccess(second.primaryContext)]).toEqual(['none', 'read'])
  })

  test.each([
    ['an empty list', []],
    ["'none'", [{ place: device, access: 'none' }] as const],
  ])('is granted to no device with %s, until it is set', (_, access) => {
    using memory = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit)
    using mapped = range.map(memory, { access })
    expect(mapped.address).toBe(range.address)
    expect([mapped.getAccess(device), mapped.getAccess(second)]).toEqual(['none', 'none'])
    mapped.setAccess([device, second.primaryContext], 'read')
    expect([mapped.getAccess(device), mapped.getAccess(second)]).toEqual(['read', 'read'])
    mapped.setAccess(second, 'none')
    expect([mapped.getAccess(device), mapped.getAccess(second)]).toEqual(['read', 'none'])
  })

  test('refuses wrong places and wrong access values', () => {
    using memory = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit)
    using mapped = range.map(memory)
    const wrongPlace = "place must be a Device, a Context, 'host' or { hostNode }, not 9"
    expect(() => mapped.setAccess(9 as never, 'read')).toThrow(
      new TypeError(`MappedRange.setAccess: ${wrongPlace.replace('place', 'places')}`),
    )
    expect(() => mapped.getAccess(9 as never)).toThrow(new TypeError(`MappedRange.getAccess: ${wrongPlace}`))
    expect(() => mapped.setAccess(device, 'write' as 'read')).toThrow(
      new TypeError("MappedRange.setAccess: access must be 'none', 'read' or 'readWrite', not 'write'"),
    )
    expect(mapped.getAccess(device)).toBe('readWrite')
  })
})

test('a MappedRange works after its memory was disposed, and reports its address', () => {
  const memory = PhysicalMemory.create(device, unit)
  using range = AddressRange.reserve(unit)
  using mapped = range.map(memory)
  memory.dispose()
  expect(mapped.memory).toBe(memory)
  expect(mapped.range).toBe(range)
  expect(mapped[memoryProtocol]).toEqual({
    version: 0,
    address: range.address,
    byteLength: unit,
    deviceOrdinal: 0,
    access: 'granted',
    context: device.primaryContext.handle,
  })
  expect(device.used).toBe(unit)
})

describe('MappedRange.dispose', () => {
  test('unmaps, and later uses throw', () => {
    using memory = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit)
    const mapped = range.map(memory)
    mapped.disposeSync()
    mapped.dispose()
    expect(range.mappedBytes).toBe(0)
    expect(() => mapped.address).toThrow(DisposedError)
    expect(() => mapped[memoryProtocol]).toThrow(DisposedError)
    expect(() => mapped.setAccess(device, 'read')).toThrow(DisposedError)
    expect(() => mapped.getAccess(device)).toThrow(DisposedError)
  })

  test('called twice at once unmaps once', async () => {
    using memory = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit)
    const mapped = range.map(memory)
    const ends = Promise.all([mapped[Symbol.asyncDispose](), mapped[Symbol.asyncDispose]()])
    mapped.dispose()
    await ends
    expect(range.mappedBytes).toBe(0)
    range.map(memory).dispose()
  })
})

test('MappedRange is printed in one line, also after dispose()', () => {
  using memory = PhysicalMemory.create(second, unit)
  using range = AddressRange.reserve(unit)
  const mapped = range.map(memory)
  const line = `MappedRange { address: 0x${range.address.toString(16)}, byteLength: ${unit}, deviceOrdinal: 1`
  expect(inspect(mapped)).toBe(`${line} }`)
  mapped.dispose()
  expect(inspect(mapped)).toBe(`${line}, disposed: true }`)
})
