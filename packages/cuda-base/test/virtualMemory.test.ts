import { DisposedError, memoryProtocol } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
process.env['SHOAL_SIM_DEVICES'] = '2'
const {
  AddressRange,
  allocationGranularity,
  GrowableRange,
  MulticastObject,
  multicastGranularity,
  PhysicalMemory,
  requireMulticast,
} = await import('@shoal/cuda-base')
const { TestDevice } = await import('./support.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const unit = allocationGranularity(device)

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

describe('AddressRange', () => {
  test('knows what is mapped in it', () => {
    using range = AddressRange.reserve(unit * 4)
    using memory = PhysicalMemory.create(device, unit)
    using first = range.map(memory, { offset: unit })
    const last = range.map(memory, { offset: unit * 3 })
    expect(range.mappedBytes).toBe(unit * 2)
    expect(() => range.map(memory, { offset: unit })).toThrow(
      `${unit} bytes at offset ${unit} overlap what is mapped at ${unit}, ${unit} bytes`,
    )
    expect(() => range.map(memory, { offset: unit * 4 })).toThrow(
      `offset ${unit * 4} and ${unit} bytes end beyond the range, which has ${unit * 4} bytes`,
    )
    last.dispose()
    expect(range.mappedBytes).toBe(unit)
    expect(first.offset).toBe(unit)
    using again = range.map(memory, { offset: unit * 3 })
    expect(again.address).toBe(range.address + BigInt(unit * 3))
  })

  test('says of itself that its addresses wait for its last mapping', () => {
    const range = AddressRange.reserve(unit)
    using memory = PhysicalMemory.create(device, unit)
    const mapped = range.map(memory)
    range.dispose()
    expect(() => range.address).toThrow('its addresses go with its last mapping')
    expect(mapped.address).toBeTypeOf('bigint')
    mapped.dispose()
    expect(() => range.address).toThrow(DisposedError)
  })

  test.each([
    [unit + 1, {}, `byteLength must be a multiple of the granularity of ${unit} bytes, not ${unit + 1}`],
    [unit, { alignment: 3 }, 'alignment must be a power of two, not 3'],
    [unit, { address: 2n ** 64n }, `address must fit 64 bits, not ${2n ** 64n}`],
    [-1, {}, 'byteLength must be between 1'],
  ])('of %i bytes with %o is refused with the rule and the value', (byteLength, options, message) => {
    expect(() => AddressRange.reserve(byteLength, options)).toThrow(message)
  })
})

describe('MappedRange', () => {
  test('gives access to nobody, to one or to several', () => {
    using memory = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit * 3)
    using closed = range.map(memory, { access: [] })
    expect([closed.getAccess(device), closed.getAccess(second)]).toEqual(['none', 'none'])
    using read = range.map(memory, { offset: unit, access: [{ place: second, access: 'read' }] })
    expect([read.getAccess(device), read.getAccess(second)]).toEqual(['none', 'read'])
    using own = range.map(memory, { offset: unit * 2 })
    expect([own.getAccess(device), own.getAccess(second)]).toEqual(['readWrite', 'none'])
    own.setAccess([device, second], 'read')
    expect([own.getAccess(device), own.getAccess(second)]).toEqual(['read', 'read'])
  })

  test('goes on when its memory is disposed of, and says where it is', () => {
    const memory = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit)
    using mapped = range.map(memory)
    memory.dispose()
    expect(mapped.memory).toBe(memory)
    expect(mapped[memoryProtocol]).toEqual({
      version: 0,
      address: range.address,
      byteLength: unit,
      deviceOrdinal: 0,
      context: device.primaryContext.handle,
    })
    expect(device.used).toBe(unit)
    expect(() => memory.handle).toThrow(DisposedError)
  })

  test('two disposals at once are one', async () => {
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

describe('PhysicalMemory', () => {
  test('of the host belongs to no device', () => {
    for (const place of ['host', { hostNode: 0 }] as const) {
      using memory = PhysicalMemory.create(place, allocationGranularity(place))
      using range = AddressRange.reserve(memory.byteLength)
      using mapped = range.map(memory, { access: [{ place, access: 'readWrite' }] })
      expect(mapped[memoryProtocol]).toMatchObject({ deviceOrdinal: -1, context: 0n })
      expect(device.used).toBe(0)
      using again = PhysicalMemory.retain(mapped.address, memory.byteLength, place)
      expect(again.properties.location).toEqual({ type: 'host-node', node: 0 })
    }
  })

  test('that was imported for another device is still where it is', () => {
    using memory = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
    using handle = memory.export()
    using imported = PhysicalMemory.import(handle, second)
    expect(imported.properties.location).toEqual({ type: 'device', device: 0 })
    // It goes on to others only from where it was made.
    expect(() => imported.export()).toThrow('CUDA_ERROR_INVALID_VALUE')
    using range = AddressRange.reserve(unit)
    using mapped = range.map(imported)
    expect([mapped.getAccess(device), mapped.getAccess(second)]).toEqual(['none', 'readWrite'])
  })
})

describe('GrowableRange', () => {
  test('grows by steps, and gives back whole pieces', () => {
    using range = GrowableRange.reserve(device, { maximumBytes: unit * 8 - 5, stepBytes: unit + 1 })
    expect(range.maximumBytes).toBe(unit * 8)
    const { address } = range
    const steps = [
      [1, 2],
      [unit * 2, 2],
      [unit * 2 + 1, 4],
      [unit * 7, 7],
      [unit * 8, 8],
      [unit * 7, 7],
      [unit * 4 + 1, 7],
      [unit * 4, 4],
      [0, 0],
    ] as const
    for (const [byteLength, granules] of steps) {
      range.resize(byteLength)
      expect([range.byteLength, range.capacity, range.address]).toEqual([byteLength, granules * unit, address])
      expect(device.used).toBe(granules * unit)
    }
    expect(() => range.resize(unit * 8 + 1)).toThrow(`between 0 and ${unit * 8}`)
  })

  test('lets others use it from the start', () => {
    const access = [{ place: second, access: 'read' }] as const
    using range = GrowableRange.reserve(device, { maximumBytes: unit, access })
    range.resize(1)
    expect(range[memoryProtocol]).toMatchObject({ deviceOrdinal: 0, byteLength: 1 })
    expect(() =>
      GrowableRange.reserve(device, { maximumBytes: unit, access: [{ place: second, access: 'all' as 'read' }] }),
    ).toThrow(TypeError)
  })
})

describe('MulticastObject', () => {
  test('checks everything before the driver does', () => {
    requireMulticast(device)
    expect(multicastGranularity({ deviceCount: 2, byteLength: 1 }, 'minimum')).toBe(unit)
    using object = MulticastObject.create({ deviceCount: 2, byteLength: unit * 2 })
    using memory = PhysicalMemory.create(device, unit * 2)
    expect(() => object.bindMemory(memory)).toThrow('all 2 devices must be added before memory is bound; 0 are')
    object.addDevice(device)
    expect(() => object.bindMemory(memory)).toThrow('1 are')
    object.addDevice(second)
    expect(object.devices).toEqual([0, 1])
    expect(() => object.bindMemory(memory, { offset: unit })).toThrow(
      `offset ${unit} and ${unit * 2} bytes end beyond the multicast object, which has ${unit * 2} bytes`,
    )
    object.bindMemory(memory)
    expect(() => object.bindMemory(memory, { byteLength: unit })).toThrow('overlap what device 0 has bound at 0')
    object.unbind(device)
    object.bindMemory(memory, { byteLength: unit })
  })

  test('keeps memory that is bound, until it goes itself', () => {
    const object = MulticastObject.create({ deviceCount: 1, byteLength: unit }).addDevice(device)
    const memory = PhysicalMemory.create(device, unit)
    object.bindMemory(memory)
    memory.dispose()
    expect(device.used).toBe(unit)
    object.dispose()
    expect(device.used).toBe(0)
  })
})
