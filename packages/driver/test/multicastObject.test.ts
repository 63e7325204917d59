import { inspect } from 'node:util'
import { DisposedError, StatusError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { AddressRange, allocationGranularity, MulticastObject, multicastGranularity, PhysicalMemory, requireMulticast } =
  await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const unit = allocationGranularity(device)

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

describe('multicastGranularity', () => {
  test('returns a number of bytes', () => {
    requireMulticast(device)
    expect(multicastGranularity({ deviceCount: 2, byteLength: 1 }, 'minimum')).toBe(unit)
  })

  test.each([
    [5, 'minimum', 'properties must be a plain object such as { deviceCount, byteLength, handleTypes }, not 5'],
    [
      { deviceCount: 1, byteLength: 1, bytes: 1 },
      'minimum',
      "properties must have only the keys deviceCount, byteLength, handleTypes, flags, not 'bytes'",
    ],
    [{ deviceCount: 1 }, 'minimum', 'byteLength must be an integer from 1 to 2^53 - 1, not undefined'],
    [{ deviceCount: 1, byteLength: 1 }, 'best', "granularity must be 'minimum' or 'recommended', not 'best'"],
  ])('refuses %o, %s', (properties, granularity, message) => {
    expect(() => multicastGranularity(properties as never, granularity as 'minimum')).toThrow(
      new TypeError(`multicastGranularity: ${message}`),
    )
  })
})

describe('MulticastObject.addDevice', () => {
  test('accepts devices and contexts, each once', () => {
    using object = MulticastObject.create({ deviceCount: 2, byteLength: unit })
    object.addDevice(device).addDevice(second.primaryContext)
    expect(object.deviceOrdinals).toEqual([0, 1])
    expect(() => object.addDevice(device)).toThrow(
      new RangeError('MulticastObject.addDevice: device must be another one, not device 0, which was added already'),
    )
    using alone = MulticastObject.create({ deviceCount: 1, byteLength: unit }).addDevice(device)
    expect(() => alone.addDevice(second)).toThrow("device must be one of the object's 1 devices, and all were added")
    expect(() => alone.addDevice(0 as never)).toThrow('device must be a Device or a Context, not 0')
  })
})

describe('binding memory to a MulticastObject', () => {
  test('requires all devices, enough space and no overlap', () => {
    using object = MulticastObject.create({ deviceCount: 2, byteLength: unit * 2 })
    using memory = PhysicalMemory.create(device, unit * 2)
    expect(() => object.bindMemorySync(memory)).toThrow('all 2 devices must be added before; 0 are')
    object.addDevice(device)
    expect(() => object.bindMemorySync(memory)).toThrow('1 are')
    object.addDevice(second)
    expect(() => object.bindMemorySync(memory, { offset: unit })).toThrow(
      `offset must be such that ${unit * 2} bytes end within the multicast object of ${unit * 2} bytes, not ${unit}`,
    )
    expect(object.bindMemorySync(memory)).toBe(object)
    expect(() => object.bindMemorySync(memory, { byteLength: unit })).toThrow(
      `do not overlap the ${unit * 2} bytes that device 0 has bound at 0`,
    )
    object.unbind(device)
    object.bindMemorySync(memory, { byteLength: unit })
    expect(() => object.unbind(device.primaryContext, { offset: unit })).toThrow(
      new RangeError(`MulticastObject.unbind: offset must be one that device 0 has memory bound at, not ${unit}`),
    )
    object.unbind(device.primaryContext, { byteLength: unit })
  })

  test('accepts a raw handle, which requires byteLength', async () => {
    using object = MulticastObject.create({ deviceCount: 1, byteLength: unit * 2 }).addDevice(device)
    using memory = PhysicalMemory.create(device, unit)
    const { handle } = memory
    expect(() => object.bindMemorySync(handle)).toThrow(
      new TypeError('MulticastObject.bindMemorySync: byteLength must be an integer from 1 to 2^53 - 1, not undefined'),
    )
    object.bindMemorySync(handle, { byteLength: unit })
    await object.bindMemory(handle, { byteLength: unit, offset: unit })
    expect(() => object.bindMemorySync(handle, { byteLength: unit })).toThrow('that device 0 has bound at 0')
    using ofSecond = PhysicalMemory.create(second, unit)
    expect(() => object.bindMemorySync(ofSecond.handle, { byteLength: unit })).toThrow(
      'memory must lie on a device that was added, not on device 1',
    )
    using ofHost = PhysicalMemory.create('host', unit)
    expect(() => object.bindMemorySync(ofHost.handle, { byteLength: unit })).toThrow('not on the host')
    expect(() => object.bindMemorySync(12345n, { byteLength: unit })).toThrow(StatusError)
    expect(() => object.bindMemorySync(-1n, { byteLength: unit })).toThrow(RangeError)
  })

  test('does not block the thread while other processes still have devices to add', async () => {
    using object = MulticastObject.create({ deviceCount: 2, byteLength: unit, handleTypes: 'posix-fd' })
    object.addDevice(device)
    using handle = object.export()
    // Acts as another process.
    using elsewhere = MulticastObject.import(handle)
    const memory = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
    const bound = object.bindMemory(memory)
    memory.dispose()
    // The place is taken from now on.
    await expect(object.bindMemory(memory)).rejects.toThrow(DisposedError)
    elsewhere.addDevice(second)
    expect(await bound).toBe(object)
    expect(device.used).toBe(unit)
    object.unbind(device)
    expect(device.used).toBe(0)
  }, 10_000)

  test('is not recorded if the driver refused it', async () => {
    using object = MulticastObject.create({ deviceCount: 1, byteLength: unit, handleTypes: 'posix-fd' })
    object.addDevice(device)
    using closed = PhysicalMemory.create(device, unit)
    const reason = 'the object was made with handles of kind posix-fd, the memory with no handles'
    await expect(object.bindMemory(closed)).rejects.toThrow(reason)
    expect(() => object.bindMemorySync(closed)).toThrow(reason)
    const gone = PhysicalMemory.create(device, unit)
    const refused = object.bindMemory(gone)
    gone.dispose()
    await expect(refused).rejects.toThrow(StatusError)
    using open = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
    await object.bindMemory(open)
  })

  test('completes if the object is disposed meanwhile, and leaks nothing', async () => {
    const object = MulticastObject.create({ deviceCount: 1, byteLength: unit }).addDevice(device)
    using memory = PhysicalMemory.create(device, unit)
    const bound = object.bindMemory(memory)
    object.dispose()
    await bound
    await expect(object.bindMemory(memory)).rejects.toThrow(DisposedError)
  })

  test('accepts memory by address', async () => {
    using object = MulticastObject.create({ deviceCount: 1, byteLength: unit * 2 }).addDevice(device)
    using memory = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit)
    using mapped = range.map(memory)
    object.bindAddressSync(mapped)
    await object.bindAddress(mapped, { offset: unit })
    expect(() => object.bindAddressSync(mapped)).toThrow('that device 0 has bound at 0')
    await expect(object.bindAddress(5 as never)).rejects.toThrow(TypeError)
    object.unbind(device)
    await object.bindAddress(mapped.address, { byteLength: unit })
    expect(() => object.bindAddressSync(mapped.address, { byteLength: unit })).toThrow('that device 0 has bound at 0')
    await expect(object.bindAddress(mapped.address)).rejects.toThrow('bindAddress: byteLength must be an integer')
    await expect(object.bindAddress(0n, { byteLength: unit })).rejects.toThrow('memory must be an address other than 0')
    await expect(object.bindAddress(mapped, { flags: -1 })).rejects.toThrow('bindAddress: flags must be')
    object.unbind(device)
    await expect(object.bindAddress(mapped, { flags: 1n })).rejects.toThrow(StatusError)
    await object.bindAddress(mapped, { flags: 0 })
  })

  test('refuses other values, unknown options and memory of a second copy of the package', async () => {
    using object = MulticastObject.create({ deviceCount: 1, byteLength: unit }).addDevice(device)
    using memory = PhysicalMemory.create(device, unit)
    expect(() => object.bindMemorySync(5 as never)).toThrow(
      new TypeError('MulticastObject.bindMemorySync: memory must be PhysicalMemory or its raw handle, not 5'),
    )
    await expect(object.bindMemory(memory, { at: 0 } as object)).rejects.toThrow(
      "MulticastObject.bindMemory: options must have only the keys offset, memoryOffset, byteLength, flags, not 'at'",
    )
    expect(() => object.unbind(device, { at: 0 } as object)).toThrow(
      "MulticastObject.unbind: options must have only the keys offset, byteLength, not 'at'",
    )
    const other = await secondCopy()
    const foreign = Object.create(other.PhysicalMemory.prototype) as typeof memory
    expect(() => object.bindMemorySync(foreign)).toThrow(twoCopies)
  })
})

test('a MulticastObject keeps bound memory until the object is disposed', () => {
  const object = MulticastObject.create({ deviceCount: 1, byteLength: unit }).addDevice(device)
  const memory = PhysicalMemory.create(device, unit)
  object.bindMemorySync(memory)
  memory.dispose()
  expect(device.used).toBe(unit)
  object.dispose()
  object.dispose()
  expect(device.used).toBe(0)
  for (const use of [() => object.handle, () => object.addDevice(device), () => object.export()]) {
    expect(use).toThrow(DisposedError)
  }
})

test('MulticastObject is printed in one line, also after dispose()', () => {
  const object = MulticastObject.create({ deviceCount: 2, byteLength: unit }).addDevice(device).addDevice(second)
  const line = `MulticastObject { byteLength: ${unit}, deviceCount: 2`
  expect(inspect(object)).toBe(`${line}, deviceOrdinals: '0, 1' }`)
  object.dispose()
  expect(inspect(object)).toBe(`${line}, disposed: true }`)
})
