import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, setDevice, Stream } = await import('@shoal/runtime')
const { CudaArray, MipmappedArray, SurfaceObject, TensorMap, TextureObject } = await import('@shoal/runtime/texture')
const driver = await import('@shoal/driver/texture')

test('arrays and textures default to the current device', () => {
  setDevice(1)
  using here = CudaArray.create({ width: 4, format: 'f32' })
  using there = MipmappedArray.create({ width: 4, format: 'f32', device: 0 })
  setDevice(0)
  expect([here.device.ordinal, there.device.ordinal]).toEqual([1, 0])
  expect(here).toBeInstanceOf(CudaArray)
  expect(there).toBeInstanceOf(MipmappedArray)
  expect(here).toBeInstanceOf(driver.CudaArray)
  expect(() => CudaArray.create({ width: 4, format: 'f32', device: 9 })).toThrow(RangeError)
  expect(() => CudaArray.create(undefined as never)).toThrow(TypeError)
  expect(() => CudaArray.create({ width: 4, format: 'f32', depht: 1 } as never)).toThrow(/CudaArray\.create: options/)
})

test('arrays and textures work with streams and buffers of the runtime package', async () => {
  using stream = Stream.create({ nonBlocking: true })
  using array = CudaArray.create({ width: 4, format: 'f32', surface: true })
  using memory = DeviceBuffer.from(Float32Array.of(1, 2, 3, 4))
  array.copyFrom(memory, { stream })
  expect(await array.toArray({ stream })).toEqual(Float32Array.of(1, 2, 3, 4))
  using texture = TextureObject.create(memory)
  using surface = SurfaceObject.create(array)
  expect([texture.describeResource().type, surface.describeResource().type]).toEqual(['linear', 'array'])
  expect(TensorMap.tiled(memory, { dimensions: [4, 1], box: [4, 1] }).bytes).toHaveLength(128)
})
