import { inspect } from 'node:util'
import { DisposedError } from '@shoal/types'
import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { DeviceBuffer } = await import('@shoal/driver/shared')
const { CudaArray, MipmappedArray, SurfaceObject } = await import('@shoal/driver/texture')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)

test('a SurfaceObject requires an array created for surfaces', () => {
  using plain = CudaArray.create(device, { width: 8, format: 'u8' })
  using memory = DeviceBuffer.zeros(device, 'u32', 4)
  expect(() => SurfaceObject.create(plain)).toThrow(/array must be one made with surface: true/)
  expect(() => SurfaceObject.create(memory as never)).toThrow(/array must be a CudaArray/)
  expect(() => SurfaceObject.create(null as never)).toThrow(TypeError)
})

test('a SurfaceObject covers an array or one level', () => {
  using levels = MipmappedArray.create(device, { width: 8, format: 'u8', surface: true })
  using surface = SurfaceObject.create(levels.level(1))
  expect(surface.describeResource()).toEqual({ type: 'array', handle: levels.level(1).handle })
  expect([surface.parameterType, surface.resource]).toEqual(['surface', levels.level(1)])
  expect(inspect(surface)).toBe("SurfaceObject { device: 0, resource: 'CudaArray' }")
  levels.dispose()
  expect(() => surface.handle).toThrow(DisposedError)
  surface.dispose()
  expect(() => surface.describeResource()).toThrow(DisposedError)
})
