import { cudaDeviceProp } from '@shoal/cuda-sys/runtime'
import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { currentDevice, Device, deviceAttributeNames, setDevice, Stream, withDevice } = await import('@shoal/runtime')

test('every field of cudaDeviceProp is a property', () => {
  const properties = Device.get(0).properties
  const fields = Object.keys(cudaDeviceProp.read(cudaDeviceProp.allocate())).filter((name) => name !== 'reserved')
  expect(Object.keys(properties).sort()).toEqual(fields.sort())
})

test('device properties are numbers, booleans or lists by their meaning', () => {
  const { properties } = Device.get(1)
  expect(properties.totalGlobalMem).toBe(2 ** 30)
  expect(properties.concurrentKernels).toBe(true)
  expect(properties.integrated).toBe(false)
  expect(properties.maxGridSize).toEqual([2147483647, 65535, 65535])
  expect(properties.uuid).toMatch(/^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  expect(properties.luid).toEqual(new Uint8Array(8))
  expect(properties.memoryPoolSupportedHandleTypes).toEqual(['posix-fd'])
})

test('an int attribute and its property agree', () => {
  const device = Device.get(1)
  const { properties } = device
  expect(properties.pciBusID).toBe(device.attribute('PciBusId'))
  expect(properties.asyncEngineCount).toBe(device.attribute('AsyncEngineCount'))
  expect(properties.maxBlocksPerMultiProcessor).toBe(device.attribute('MaxBlocksPerMultiprocessor'))
  expect(deviceAttributeNames().length).toBeGreaterThan(130)
})

test('limits and peer attributes have the names of either library', () => {
  const device = Device.get(0)
  for (const [name, ofDriver, value] of [
    ['StackSize', 'STACK_SIZE', 4096],
    ['PrintfFifoSize', 'PRINTF_FIFO_SIZE', 2 ** 21],
    ['MallocHeapSize', 'MALLOC_HEAP_SIZE', 2 ** 24],
  ] as const) {
    const before = device.getLimit(name)
    device.setLimit(name, value)
    expect([device.getLimit(name), device.getLimit(ofDriver)]).toEqual([value, value])
    device.setLimit(ofDriver, value * 2)
    expect([device.getLimit(name), device.getLimit(ofDriver)]).toEqual([value * 2, value * 2])
    device.setLimit(name, before)
  }
  for (const bad of ['Max', 'stackSize', '', undefined] as never[]) {
    expect(() => device.getLimit(bad)).toThrow(/^Device\.getLimit: limit must be a limit such as 'STACK_SIZE', not /)
    expect(() => device.setLimit(bad, 1)).toThrow(/^Device\.setLimit: limit must be a limit such as 'STACK_SIZE', not /)
  }
  expect(() => device.setLimit('StackSize', -1)).toThrow(/^Device\.setLimit: value must be /)
  for (const name of ['AccessSupported', 'ACCESS_SUPPORTED'] as const) {
    expect(device.peerAttribute(name, 1)).toBe(1)
    expect(device.peerAttribute(name, Device.get(1))).toBe(1)
  }
  expect(() => device.peerAttribute('Max' as never, 1)).toThrow(/^Device\.peerAttribute: attribute must be /)
})

test('a device made current by fn in withDevice is not current afterwards', () => {
  setDevice(0)
  const seen = withDevice(1, (device) => {
    setDevice(0)
    return withDevice(1, () => [device.ordinal, currentDevice().ordinal])
  })
  expect([seen, currentDevice().ordinal]).toEqual([[1, 1], 0])
  setDevice(1)
  expect(withDevice(0, () => currentDevice().ordinal)).toBe(0)
  expect(() => withDevice(0, async () => {})).toThrow(/^withDevice: fn must be a synchronous function/)
  expect([currentDevice().ordinal, Stream.defaultOf().device.ordinal]).toEqual([1, 1])
  expect([Stream.defaultOf(0).device.ordinal, Stream.defaultOf(0).handle]).toEqual([0, 0n])
  setDevice(0)
})
