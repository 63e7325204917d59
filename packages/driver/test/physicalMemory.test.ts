import { inspect } from 'node:util'
import { DisposedError, memoryProtocol, StatusError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { AddressRange, allocationGranularity, DescriptorHandle, PhysicalMemory } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const unit = allocationGranularity(device)

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

describe('allocationGranularity', () => {
  test('returns bytes for each place, at most the recommended granularity', () => {
    for (const place of [device, device.primaryContext, 'host', { hostNode: 0 }] as const) {
      const least = allocationGranularity(place)
      expect(Number.isInteger(Math.log2(least))).toBe(true)
      expect(allocationGranularity(place, { granularity: 'recommended' }) % least).toBe(0)
    }
  })

  test.each([
    [device, { granularity: 'best' }, "granularity must be 'minimum' or 'recommended', not 'best'"],
    [device, { handleTypes: 'fd' }, "handleTypes must be 'posix-fd', 'win32', 'win32-kmt' or 'fabric', not 'fd'"],
    [device, { compressible: 1 }, 'compressible must be a boolean, not 1'],
    [
      device,
      { rdma: true },
      "options must have only the keys handleTypes, gpuDirectRdma, compressible, granularity, not 'rdma'; did you mean 'gpuDirectRdma'?",
    ],
    [0, {}, "place must be a Device, a Context, 'host' or { hostNode }, not 0"],
    [{ hostNode: '0' }, {}, "place.hostNode must be an integer from 0 to 2147483647, not '0'"],
  ])('refuses %o with %o', (place, options, message) => {
    expect(() => allocationGranularity(place as never, options as object)).toThrow(
      new TypeError(`allocationGranularity: ${message}`),
    )
  })
})

describe('PhysicalMemory.create', () => {
  test('allocates memory for a Device or its Context', () => {
    for (const place of [second, second.primaryContext]) {
      using memory = PhysicalMemory.create(place, unit * 2)
      expect(second.used).toBe(unit * 2)
      expect(memory.byteLength).toBe(unit * 2)
      expect(memory.properties).toEqual({
        location: { type: 'device', deviceOrdinal: 1 },
        handleTypes: [],
        gpuDirectRdma: false,
        compressible: false,
        tilePool: false,
      })
    }
  })

  test('allocates host memory, which belongs to no device', () => {
    for (const place of ['host', { hostNode: 0 }] as const) {
      using memory = PhysicalMemory.create(place, allocationGranularity(place))
      using range = AddressRange.reserve(memory.byteLength)
      using mapped = range.map(memory, { access: [{ place, access: 'readWrite' }] })
      expect(mapped[memoryProtocol]).toMatchObject({ deviceOrdinal: -1, context: 0n })
      expect(device.used).toBe(0)
      using again = PhysicalMemory.retain(place, mapped.address, memory.byteLength)
      expect(again.properties.location).toEqual({ type: 'host-node', node: 0 })
    }
  })

  test('refuses partial granules, unknown options and too much memory', () => {
    expect(() => PhysicalMemory.create(device, unit + 1)).toThrow(
      new RangeError(
        `PhysicalMemory.create: byteLength must be a multiple of the granularity of ${unit} bytes, not ${unit + 1}`,
      ),
    )
    expect(() => PhysicalMemory.create(device, unit, { shared: true } as object)).toThrow(
      new TypeError(
        "PhysicalMemory.create: options must have only the keys handleTypes, gpuDirectRdma, compressible, tilePool, not 'shared'",
      ),
    )
    expect(() => PhysicalMemory.create(device, unit * 2 ** 30)).toThrow(StatusError)
  })
})

describe('PhysicalMemory.retain', () => {
  test('returns another handle, which outlives the first handle and the mapping', () => {
    using range = AddressRange.reserve(unit)
    const memory = PhysicalMemory.create(device, unit)
    const mapped = range.map(memory)
    const retained = PhysicalMemory.retain(device, mapped.address, unit)
    memory.dispose()
    mapped.dispose()
    expect(device.used).toBe(unit)
    retained.dispose()
    expect(device.used).toBe(0)
  })

  test('refuses a place other than that of the memory, and keeps nothing', () => {
    using range = AddressRange.reserve(unit)
    using memory = PhysicalMemory.create(device, unit)
    const { address } = range
    const mapped = range.map(memory)
    expect(() => PhysicalMemory.retain(second, address, unit)).toThrow(
      new RangeError('PhysicalMemory.retain: place must be where the memory lies, on device 0, not device 1'),
    )
    expect(() => PhysicalMemory.retain('host', address, unit)).toThrow('on device 0, not the host')
    mapped.disposeSync()
    expect(() => PhysicalMemory.retain(device, address, unit)).toThrow(StatusError)
  })
})

describe('PhysicalMemory.import', () => {
  test('imports memory for the device that will use it, and does not move the memory', () => {
    using memory = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
    using handle = memory.export()
    for (const user of [second, second.primaryContext]) {
      using imported = PhysicalMemory.import(user, handle)
      expect(imported.properties.location).toEqual({ type: 'device', deviceOrdinal: 0 })
      // Drivers export memory only in the process that created it.
      expect(() => imported.export()).toThrow('CUDA_ERROR_INVALID_VALUE')
      using range = AddressRange.reserve(unit)
      using mapped = range.map(imported)
      expect([mapped.getAccess(device), mapped.getAccess(second)]).toEqual(['none', 'readWrite'])
    }
  })

  test('refuses other values, handles with another content, and handles of a second copy of the package', async () => {
    using memory = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
    using handle = memory.export()
    const take = (given: unknown): unknown => PhysicalMemory.import(device, given as typeof handle)
    for (const bad of [undefined, 5, {}, handle.toJSON()]) {
      expect(() => take(bad)).toThrow(/^PhysicalMemory.import: handle must be a DescriptorHandle, FabricHandle or Win/)
    }
    const facts = { content: 'pool', byteLength: 0 } as const
    const { FabricHandle } = await import('@shoal/driver/shared')
    expect(() => take(new FabricHandle(new Uint8Array(64), facts))).toThrow(
      new TypeError('PhysicalMemory.import: handle must be one of memory, not of a pool'),
    )
    const other = await secondCopy()
    expect(() => take(new other.FabricHandle(new Uint8Array(64), facts))).toThrow(twoCopies)
    // The owner is the first argument.
    expect(() => PhysicalMemory.import(handle as never, device as never)).toThrow(
      'PhysicalMemory.import: device must be a Device or a Context, not an object of class DescriptorHandle',
    )
    expect(() => take(new DescriptorHandle(0x7fff_fffe, handle.toJSON()))).toThrow(
      'PhysicalMemory.import: handle must have an open descriptor, and 2147483646 is not open',
    )
  })
})

test('PhysicalMemory.dispose() releases the handle; the memory stays while it is mapped', () => {
  const memory = PhysicalMemory.create(device, unit)
  using range = AddressRange.reserve(unit)
  const mapped = range.map(memory)
  memory.dispose()
  memory.dispose()
  expect(device.used).toBe(unit)
  for (const use of [() => memory.handle, () => memory.properties, () => memory.export()]) {
    expect(use).toThrow(DisposedError)
  }
  mapped.dispose()
  expect(device.used).toBe(0)
})

test('PhysicalMemory is printed in one line, also after dispose()', () => {
  const memory = PhysicalMemory.create(second, unit)
  expect(inspect(memory)).toBe(`PhysicalMemory { byteLength: ${unit}, deviceOrdinal: 1 }`)
  memory.dispose()
  expect(inspect(memory)).toBe(`PhysicalMemory { byteLength: ${unit}, deviceOrdinal: 1, disposed: true }`)
})
