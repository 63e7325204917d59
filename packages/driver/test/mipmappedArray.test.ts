import { DisposedError, StatusError } from '@shoal/types'
import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { MipmappedArray } = await import('@shoal/driver/texture')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)

test('each level of a MipmappedArray has half the size of the previous one, down to one texel', async () => {
  using array = MipmappedArray.create(device, { width: 12, height: 5, format: 'u8' })
  expect(array.levels).toBe(4)
  const sizes = [0, 1, 2, 3].map((level) => [array.level(level).width, array.level(level).height])
  expect(sizes).toEqual([
    [12, 5],
    [6, 2],
    [3, 1],
    [1, 1],
  ])
  expect(array.level(2)).toBe(array.level(2))
  array.level(2).copyFromSync(Uint8Array.of(1, 2, 3))
  expect(await array.level(2).toArray()).toEqual(Uint8Array.of(1, 2, 3))
})

test('slices of a MipmappedArray shrink per level, layers do not', () => {
  using volume = MipmappedArray.create(device, { width: 4, height: 4, depth: 16, format: 'f32', levels: 5 })
  expect([volume.level(4).depth, volume.level(4).width]).toEqual([1, 1])
  using layers = MipmappedArray.create(device, { width: 4, height: 4, layers: 6, format: 'f32', levels: 2 })
  expect([layers.levels, layers.level(1).layers]).toEqual([2, 6])
  using cubes = MipmappedArray.create(device, { width: 8, cubemap: true, format: 'f32' })
  expect([cubes.levels, cubes.level(3).cubemap]).toEqual([4, true])
})

test('levels end with their MipmappedArray, and cannot end alone', () => {
  const before = device.used
  const array = MipmappedArray.create(device, { width: 64, height: 64, format: 'f32' })
  const level = array.level(1)
  level.dispose()
  expect(array.level(0).disposed).toBe(false)
  expect(array.level(1).disposed).toBe(false)
  array.dispose()
  expect(device.used).toBe(before)
  expect(array.level.bind(array, 0)).toThrow(DisposedError)
  expect(() => level.handle).toThrow(DisposedError)
})

test('MipmappedArray refuses wrong arguments', () => {
  const create = (options: object) => () =>
    MipmappedArray.create(device, { width: 8, height: 8, format: 'f32', ...options } as never)
  expect(create({ levels: 5 })).toThrow(/levels must be an integer from 1 to 4, not 5/)
  expect(create({ levels: 0 })).toThrow(RangeError)
  expect(create({ levels: '1' })).toThrow(TypeError)
  expect(create({ level: 1 })).toThrow(/only the keys/)
  using array = MipmappedArray.create(device, { width: 8, format: 'f32' })
  expect(() => array.level(4)).toThrow(RangeError)
  expect(() => array.level(0.5)).toThrow(TypeError)
  expect(() => array.memoryRequirements()).toThrow(StatusError)
  expect(() => array.sparseProperties()).toThrow(StatusError)
})

test('the small levels of a sparse MipmappedArray share one tail', () => {
  using array = MipmappedArray.create(device, { width: 512, height: 512, format: 'f32', sparse: true })
  expect(array.sparseProperties()).toEqual({
    tile: { width: 128, height: 128, depth: 1 },
    mipTailFirstLevel: 3,
    mipTailSize: 65536,
    singleMipTail: false,
  })
  using deferred = MipmappedArray.create(device, { width: 64, height: 64, format: 'f32', deferredMapping: true })
  expect(deferred.memoryRequirements()).toEqual({ size: 65536, alignment: 65536 })
})
