import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { Device, initialize, statusText } = await import('@shoal/driver')
const { cuDeviceGetCount } = await import('@shoal/cuda-sys/driver')

test('initialize() starts the driver', () => {
  const count = new Int32Array(1)
  expect(cuDeviceGetCount(count)).toBe(3)
  initialize()
  expect([cuDeviceGetCount(count), count[0]]).toEqual([0, Device.count])
})

test('statusText() describes a status code', () => {
  expect(statusText(0)).toEqual({ name: 'CUDA_SUCCESS', description: expect.any(String) })
  expect(statusText(2).name).toBe('CUDA_ERROR_OUT_OF_MEMORY')
  expect(() => statusText(2 ** 31 - 1)).not.toThrow()
  for (const bad of [-1, 2 ** 31]) {
    expect(() => statusText(bad)).toThrow(RangeError)
    expect(() => statusText(bad)).toThrow(/^statusText: status must be /)
  }
})

test('isSoftware reports the loaded driver, even if the environment changes later', () => {
  const device = Device.get(0)
  process.env['SHOAL_DEVICE'] = 'gpu'
  expect(device.isSoftware).toBe(true)
  delete process.env['SHOAL_DEVICE']
  expect(device.isSoftware).toBe(true)
})
