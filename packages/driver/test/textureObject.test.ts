import { inspect } from 'node:util'
import { DisposedError, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer } = await import('@shoal/driver/shared')
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { CudaArray, MipmappedArray, TextureObject } = await import('@shoal/driver/texture')
const { TestDevice, throwing } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const array = CudaArray.create(device, { width: 8, height: 4, format: 'u8', channels: 4 })
const real = CudaArray.create(device, { width: 8, height: 4, format: 'f32' })
const mipmapped = MipmappedArray.create(device, { width: 8, height: 4, format: 'f32' })
const words = DeviceBuffer.zeros(device, 'u32', 1024)

describe('TextureObject.create', () => {
  test('has defaults, which the driver reports', () => {
    using texture = TextureObject.create(array)
    expect(texture.parameterType).toBe('texture')
    expect(texture.resource).toBe(array)
    expect(inspect(texture)).toBe("TextureObject { device: 0, resource: 'CudaArray' }")
    expect(texture.describe()).toEqual({
      addressMode: ['clamp', 'clamp', 'clamp'],
      filterMode: 'point',
      readMode: 'element',
      normalizedCoordinates: false,
      srgb: false,
      borderColor: [0, 0, 0, 0],
      mipmapFilterMode: 'point',
      mipmapLevelBias: 0,
      mipmapLevelClamp: [0, 1000],
      maxAnisotropy: 0,
      seamlessCubemap: false,
      trilinearOptimization: true,
    })
    expect(texture.describeView()).toBeUndefined()
  })

  test('takes integer border colours if the texels are integers', () => {
    using texture = TextureObject.create(array, { addressMode: 'border', borderColor: [-1, 2 ** 31 - 1, 7] })
    // Drivers do not return the border color.
    expect(texture.describe().borderColor).toEqual([0, 0, 0, 0])
    const borderColor = [0.5]
    expect(() => TextureObject.create(array, { borderColor })).toThrow(/borderColor\[0\] must be an integer/)
    using colours = TextureObject.create(array, { readMode: 'normalizedFloat', borderColor })
    expect(colours.describe().borderColor).toEqual([0, 0, 0, 0])
  })

  test('reads memory, linearly and in rows', () => {
    using linear = TextureObject.create(words)
    expect(linear.describeResource()).toMatchObject({ type: 'linear', format: 'u32', channels: 1, byteLength: 4096 })
    using rows = TextureObject.create({ memory: words, channels: 2, width: 10, height: 8, pitch: 128 })
    expect(rows.describeResource()).toEqual({
      type: 'pitched',
      handle: words.address,
      format: 'u32',
      channels: 2,
      width: 10,
      height: 8,
      pitch: 128,
    })
    expect(rows.resource).toBe(words)
  })

  test('reads pitched memory through a view', () => {
    using pitched = PitchedBuffer.from(device, new Float32Array(15).fill(2), { width: 5, height: 3 })
    using memory = DeviceBuffer.view(device, pitched, 'f32')
    const { width, height, pitch } = pitched
    using rows = TextureObject.create({ memory, width, height, pitch }, { filterMode: 'linear' })
    expect(rows.describeResource()).toMatchObject({ type: 'pitched', handle: pitched.address, width: 5, pitch })
    using array = CudaArray.create(device, { width: 5, height: 3, format: 'f32' })
    array.copyFromSync(pitched, { pitch })
    expect(array.copyToSync(new Float32Array(15))).toEqual(new Float32Array(15).fill(2))
  })

  test('reads a part of an array with another format', () => {
    using texture = TextureObject.create(mipmapped, { view: { format: 'u32x1', firstMipmapLevel: 1 } })
    expect(texture.describeView()).toEqual({
      format: 'u32x1',
      width: 8,
      height: 4,
      depth: 0,
      firstMipmapLevel: 1,
      lastMipmapLevel: 3,
      firstLayer: 0,
      lastLayer: 0,
    })
    expect(texture.describe().normalizedCoordinates).toBe(true)
    // Defaults to the array's own format if views have a name for it.
    using named = TextureObject.create(mipmapped, { view: {} })
    expect(named.describeView()?.format).toBe('f32x1')
    using norms = CudaArray.create(device, { width: 4, format: 'unorm8' })
    using same = TextureObject.create(norms, { view: {} })
    expect(same.describeView()?.format).toBe('same')
    using asked = TextureObject.create(array, { view: { format: 'same' } })
    expect(asked.describeView()?.format).toBe('same')
  })

  test.each([
    [array, { addressMode: 'wrap' }, /addressMode must be 'clamp' or 'border' where coordinates are not normalized/],
    [array, { addressMode: 'tile' }, /addressMode must be .*wrap/],
    [array, { addressMode: ['clamp', 7] }, /addressMode\[1\]/],
    [array, { addressMode: [] }, /addressMode must be of 1 to 3 modes/],
    [array, { filterMode: 'linear' }, /filterMode must be 'point' where texels of u8 are read as they are/],
    [array, { filterMode: 'cubic' }, /filterMode must be/],
    [array, { readMode: 'float' }, /readMode must be/],
    [words, { readMode: 'normalizedFloat' }, /readMode must be 'element' for integers of 32 bits/],
    [real, { maxAnisotropy: 17 }, /maxAnisotropy must be an integer from 0 to 16/],
    [real, { mipmapLevelBias: Number.NaN }, /mipmapLevelBias must be a number/],
    [real, { mipmapLevelClamp: [3, 2] }, /mipmapLevelClamp\[1\] must be a number from 3/],
    [real, { mipmapLevelClamp: [1, 2, 3] }, /mipmapLevelClamp must be of two numbers/],
    [real, { borderColor: [1, 2, 3, 4, 5] }, /borderColor must be of 1 to 4 numbers/],
    [real, { srgb: 'yes' }, /srgb must be a boolean/],
    [real, { colour: 1 }, /options must have only the keys/],
    [real, { view: { lastLayer: 1 } }, /view\.lastLayer must be an integer from 0 to 0/],
    [real, { view: { format: 'f32' } }, /view\.format must be/],
    [words, { view: {} }, /view must be left out/],
    [mipmapped, { normalizedCoordinates: false }, /normalizedCoordinates must be true for a mipmapped array/],
    [mipmapped, { view: { firstMipmapLevel: 4 } }, /view\.firstMipmapLevel must be an integer from 0 to 3/],
    [{ memory: words, width: 8 }, {}, /resource.height must be an integer/],
    [{ memory: words, width: 8, height: 2, pitch: 31 }, {}, /resource.pitch must be an integer from 32/],
    [{ memory: words, width: 8, height: 2, pitch: 33 }, {}, /resource.pitch must be a multiple of 32/],
    [{ memory: words, width: 8, height: 999, pitch: 64 }, {}, /resource.memory must be of at least/],
    [{ memory: words, channels: 3 }, {}, /resource.channels must be 1, 2 or 4/],
    [{ memory: words.slice(1) }, {}, /resource.memory must be memory at a multiple of 512 bytes/],
    [{ memory: words.slice(0, 3), channels: 2 }, {}, /resource.memory must be of whole texels of 8 bytes/],
    [{ memory: words.reinterpret('f64') }, {}, /resource.memory.dtype must be/],
    [{ memory: words, filterMode: 'point' }, {}, /resource must have only the keys/],
    [7, {}, /resource must be a CudaArray/],
    [null, {}, /resource must be a CudaArray/],
  ])('refuses %o with %o', (resource, options, words) => {
    expect(() => TextureObject.create(resource as never, options as never)).toThrow(words)
  })

  test('passes on driver errors, and rethrows errors of getters', () => {
    expect(() => TextureObject.create(array, throwing('srgb'))).toThrow('thrown by a getter')
    const view = { format: 'bc1' } as const
    using blocks = CudaArray.create(device, { width: 4, height: 4, format: 'u32', channels: 2 })
    expect(() => TextureObject.create(blocks, { view })).toThrow(StatusError)
    using cube = CudaArray.create(device, { width: 4, cubemap: true, format: 'f32' })
    const seamless = { seamlessCubemap: true, normalizedCoordinates: true }
    expect(() => TextureObject.create(cube, seamless)).toThrow('CUDA_ERROR_NOT_SUPPORTED')
  })

  test('refuses a resource that a getter of the options disposes', () => {
    const made = CudaArray.create(device, { width: 4, format: 'f32' })
    const options = {
      get filterMode(): 'point' {
        made.dispose()
        return 'point'
      },
    }
    expect(() => TextureObject.create(made, options)).toThrow(DisposedError)
  })
})

describe('disposal of a TextureObject', () => {
  test('or of its resource makes every later use throw', () => {
    const made = CudaArray.create(device, { width: 4, format: 'f32' })
    const texture = TextureObject.create(made)
    made.dispose()
    expect(() => texture.handle).toThrow(DisposedError)
    expect(() => texture.describe()).toThrow(DisposedError)
    texture.dispose()
    texture.dispose()
    expect(texture.disposed).toBe(true)
    using memory = DeviceBuffer.zeros(device, 'f32', 128)
    const linear = TextureObject.create(memory)
    memory.dispose()
    expect(() => linear.describeResource()).toThrow(DisposedError)
    linear.dispose()
  })

  test('happens with a reset of the device', async () => {
    const second = new TestDevice(1)
    const texture = TextureObject.create(CudaArray.create(second, { width: 4, format: 'f32' }))
    await second.reset()
    expect(() => texture.handle).toThrow(DisposedError)
    texture.dispose()
  })
})
