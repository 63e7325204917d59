import { memoryDescriptor } from './entries.js'
import type { Subject } from './subject.js'

/** Returns the subject of the arrays, textures, surfaces and tensor maps of `driver` or of `runtime`. */
export async function textureSubject(name: 'driver' | 'runtime', makers: Subject['values']): Promise<Subject> {
  const driver = await import('@shoal/driver')
  const base = name === 'driver' ? await import('@shoal/driver/texture') : await import('@shoal/runtime/texture')
  const textures = await import('@shoal/driver/texture')
  const { ExternalMemory } = await import('@shoal/driver/external')
  const device = driver.Device.get(0)
  const shape = { width: 4, height: 4, format: 'f32', surface: true } as const
  const array = (): import('@shoal/driver/texture').CudaArray => textures.CudaArray.create(device, shape)
  const mipmapped = (): import('@shoal/driver/texture').MipmappedArray => textures.MipmappedArray.create(device, shape)
  const memory = (): import('@shoal/driver').DeviceBuffer<'f32'> => driver.DeviceBuffer.zeros(device, 'f32', 16)
  const tensor = { dimensions: [4, 4], box: [4, 4] }
  const pictures = { dimensions: [4, 2, 2], channelsPerPixel: 4, pixelsPerColumn: 2 }
  const map = (): import('@shoal/driver/texture').TensorMap => textures.TensorMap.tiled(memory(), tensor)
  const made = name === 'driver' ? {} : { device }
  const pool = () => driver.PhysicalMemory.create(device, driver.allocationGranularity(device), { tilePool: true })
  const sparse = () => textures.CudaArray.create(device, { width: 256, height: 256, format: 'f32', sparse: true })
  const external = () =>
    ExternalMemory.import(device, { type: 'opaque-fd', handle: memoryDescriptor(4096), byteLength: 4096 })
  return {
    module: base,
    instances: {
      CudaArray: array,
      MipmappedArray: mipmapped,
      TextureObject: () => textures.TextureObject.create(array()),
      SurfaceObject: () => textures.SurfaceObject.create(array()),
      TensorMap: map,
    },
    values: {
      ...makers,
      DeviceOrContext: () => device,
      '#owner': () => device,
      '#device': () => device,
      '#stream': () => device.createStream(),
      'CudaArray.create#options': () => ({ ...shape, ...made }),
      'MipmappedArray.create#options': () => ({ ...shape, ...made }),
      '#format': () => 'f32',
      '#channels': () => 1,
      '#width': () => 4,
      '#height': () => 4,
      '#depth': () => undefined,
      '#layers': () => undefined,
      '#levels': () => 1,
      '#cubemap': () => false,
      '#surface': () => true,
      '#gather': () => false,
      '#colorAttachment': () => false,
      '#sparse': () => false,
      '#deferredMapping': () => false,
      '#source': () => new Float32Array(16),
      '#target': () => new Float32Array(16),
      'CudaArray.copyToMemory#target': memory,
      '#region': () => ({ x: 0 }),
      '#at': () => ({ x: 0 }),
      '#pitch': () => 16,
      '#rows': () => 4,
      'mapArrays#mappings': () => [{ array: sparse(), memory: pool() }],
      'MipmappedArray.fromExternal#memory': external,
      'MipmappedArray.fromExternal#options': () => shape,
      '#byteOffset': () => 0,
      'CudaArray.plane#index': () => 0,
      'MipmappedArray.level#index': () => 0,
      '#resource': array,
      '#array': array,
      '#memory': memory,
      'TensorMap.tiled#options': () => tensor,
      'TensorMap.im2col#options': () => ({ ...pictures, lowerCorner: [0], upperCorner: [0] }),
      'TensorMap.im2colWide#options': () => ({ ...pictures, lowerCornerWidth: 0, upperCornerWidth: 0 }),
    },
    foreignObjects: {
      'an array of another device': () => textures.CudaArray.create(driver.Device.get(1), shape),
    },
  }
}
