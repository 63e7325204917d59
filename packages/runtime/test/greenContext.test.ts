import { beforeEach, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { currentDevice, DeviceBuffer, setDevice, Stream } = await import('@shoal/runtime')
const { DeviceResource, GreenContext } = await import('@shoal/runtime/context')

beforeEach(() => void setDevice(0))

test('DeviceResource.of defaults to the current device', async () => {
  const all = DeviceResource.of()
  expect([all.device, all.multiprocessors]).toEqual([currentDevice(), 4])
  setDevice(1)
  expect(DeviceResource.of().device.ordinal).toBe(1)
  expect(DeviceResource.of(0).device.ordinal).toBe(0)
  expect(all).toBeInstanceOf(DeviceResource)
  expect(() => DeviceResource.of(7)).toThrow(/^DeviceResource.of: device must be/)
})

test('a stream of a green context runs work of the runtime package', async () => {
  const { groups } = DeviceResource.of().split(2)
  using green = GreenContext.create(groups[0] as never)
  using stream = green.createStream({ priority: -1 })
  using memory = DeviceBuffer.zeros('f32', 100)
  memory.fill(3, { stream })
  expect(await memory.toArray({ stream })).toEqual(new Float32Array(100).fill(3))
  green.dispose()
  expect(() => memory.fill(1, { stream })).toThrow('GreenContext')
})

test('device settings and stream attributes are those of the runtime', () => {
  const device = currentDevice()
  device.setPrimaryContextFlags({ scheduling: 'blocking' })
  expect(device.primaryContext.flags.scheduling).toBe('blocking')
  device.setPrimaryContextFlags({})
  device.cacheConfig = 'equal'
  expect(device.cacheConfig).toBe('equal')
  device.cacheConfig = 'none'
  using stream = Stream.create()
  using other = Stream.create()
  stream.setAttributes({ synchronizationPolicy: 'yield', priority: -2 })
  expect(other.copyAttributes(stream).attributes).toMatchObject({ synchronizationPolicy: 'yield', priority: -2 })
  const event = stream.record()
  device.primaryContext.record(event)
  device.primaryContext.waitEvent(event)
  device.synchronizeSync()
  expect(event.query()).toBe(true)
})
