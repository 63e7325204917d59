import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { Device } = await import('@shoal/driver')

test('isSoftware tells what is loaded, whatever the environment says later', () => {
  const device = Device.get(0)
  process.env['SHOAL_DEVICE'] = 'gpu'
  expect(device.isSoftware).toBe(true)
  delete process.env['SHOAL_DEVICE']
  expect(device.isSoftware).toBe(true)
})
