import { cudaDeviceProp } from '@shoal/cuda-sys/runtime'
import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { Device, deviceAttributeNames } = await import('@shoal/runtime')

test('every field of the struct is a property', () => {
  const properties = Device.get(0).properties
  const fields = Object.keys(cudaDeviceProp.read(cudaDeviceProp.allocate())).filter((name) => name !== 'reserved')
  expect(Object.keys(properties).sort()).toEqual(fields.sort())
})

test('sizes are numbers, yes and no are booleans, lists are lists', () => {
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
