import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DisposedError, StatusError } = await import('@shoal/types')
const { PhysicalMemory, Stream } = await import('@shoal/driver/shared')
const { CudaArray, MipmappedArray, mapArrays, SurfaceObject, TextureObject } = await import('@shoal/driver/texture')
const { delay, TestDevice, throwing } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const granule = 2 ** 21
const tileBytes = 65536
const pool = PhysicalMemory.create(device, granule, { tilePool: true })
const floats = (length: number, first = 0): Float32Array<ArrayBuffer> =>
  Float32Array.from({ length }, (_, at) => first + at)

describe('sparse arrays', () => {
  const options = { width: 200, height: 300, format: 'f32', sparse: true } as const

  test('have texels where memory is mapped, up to the border, and zeroes elsewhere', async () => {
    using array = CudaArray.create(device, options)
    mapArrays([{ array, memory: pool, region: { x: 128, y: 256, width: 72, height: 44 } }])
    const values = floats(200 * 300, 1)
    array.copyFromSync(values)
    const expected = values.map((value, at) => (at % 200 >= 128 && Math.floor(at / 200) >= 256 ? value : 0))
    expect(await array.toArray()).toEqual(expected)
    mapArrays([{ array }])
    expect(await array.toArray()).toEqual(new Float32Array(200 * 300))
  })

  test('of layers and of three dimensions report their tile counts', async () => {
    using layers = CudaArray.create(device, { width: 256, height: 128, layers: 3, format: 'f32', sparse: true })
    mapArrays([{ array: layers, memory: pool, layer: 2 }])
    layers.copyFromSync(floats(256 * 128, 5), { region: { z: 2 } })
    layers.copyFromSync(floats(256 * 128, 5), { region: { z: 1, depth: 1 } })
    expect((await layers.toArray({ region: { z: 2, depth: 1 } }))[3]).toBe(8)
    expect((await layers.toArray({ region: { z: 1, depth: 1 } }))[3]).toBe(0)
    using volume = CudaArray.create(device, { width: 64, height: 64, depth: 64, format: 'f32', sparse: true })
    const { tile } = volume.sparseProperties()
    const region = { z: tile.depth, depth: tile.depth }
    mapArrays([{ array: volume, memory: pool, region }])
    const box = floats(64 * 64 * tile.depth, 1)
    volume.copyFromSync(box, { region })
    expect(await volume.toArray({ region })).toEqual(box)
    expect((await volume.toArray({ region: { depth: 1 } }))[0]).toBe(0)
  })

  test('use no memory that a getter of a later mapping disposed of', () => {
    using array = CudaArray.create(device, options)
    const gone = PhysicalMemory.create(device, granule, { tilePool: true })
    const later = {
      array,
      get memory() {
        gone.dispose()
        return pool
      },
      region: { x: 128, width: 72, height: 128 },
    }
    const mappings = [{ array, memory: gone, region: { width: 128, height: 128 } }, later]
    expect(() => mapArrays(mappings)).toThrow(
      expect.objectContaining({ name: 'DisposedError', object: 'PhysicalMemory' }),
    )
  })

  test('that map the same memory see the same texels', async () => {
    using one = CudaArray.create(device, options)
    using two = CudaArray.create(device, options)
    const region = { width: 128, height: 128 }
    mapArrays([
      { array: one, memory: pool, memoryOffset: tileBytes, region },
      { array: two, memory: pool, memoryOffset: tileBytes, region },
    ])
    one.copyFromSync(floats(128 * 128), { region })
    expect(await two.toArray({ region })).toEqual(floats(128 * 128))
    two.copyFromSync(one, { region: { x: 1, width: 3, height: 1 }, at: { x: 100 } })
    expect((await one.toArray({ region: { x: 1, width: 3, height: 1 } }))[0]).toBe(100)
  })

  test('are mapped in stream order, even after the memory handle was disposed', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using array = CudaArray.create(device, { ...options, width: 128, height: 128 })
    const before = device.used
    const own = PhysicalMemory.create(device, granule, { tilePool: true })
    delay(stream, 30)
    mapArrays([{ array, memory: own }], { stream })
    array.copyFrom(floats(128 * 128), { stream })
    own.dispose()
    expect(await array.toArray({ stream })).toEqual(floats(128 * 128))
    expect(device.used).toBe(before + granule)
    mapArrays([{ array }], { stream })
    await stream.synchronize()
    expect(device.used).toBe(before)
  })

  test('of several levels share one tail', async () => {
    using array = MipmappedArray.create(device, { width: 256, height: 256, format: 'f32', sparse: true })
    expect([array.sparse, array.deferredMapping]).toEqual([true, false])
    mapArrays([
      { array, memory: pool, level: 1 },
      { array, memory: pool, memoryOffset: tileBytes, tail: true },
    ])
    for (let index = 1; index < array.levels; index += 1) {
      const level = array.level(index)
      const values = floats(level.width * level.height, index)
      level.copyFromSync(values)
      expect(await level.toArray()).toEqual(values)
    }
    expect((await array.level(0).toArray())[0]).toBe(0)
  })

  test('of several levels and layers have a tail for each layer', async () => {
    const shape = { width: 128, height: 128, layers: 3, format: 'f32', sparse: true } as const
    using array = MipmappedArray.create(device, shape)
    const { mipTailFirstLevel, mipTailSize, singleMipTail } = array.sparseProperties()
    expect({ mipTailFirstLevel, mipTailSize, singleMipTail }).toEqual({
      mipTailFirstLevel: 1,
      mipTailSize: tileBytes,
      singleMipTail: false,
    })
    mapArrays([{ array, memory: pool, layer: 1, tail: true }])
    const level = array.level(2)
    const values = floats(32 * 32 * 3, 1)
    level.copyFromSync(values)
    expect(await level.toArray()).toEqual(values.map((value, at) => (Math.floor(at / 1024) === 1 ? value : 0)))
    mapArrays([{ array, memory: pool, memoryOffset: tileBytes, layer: 2, tail: true }])
    level.copyFromSync(values)
    expect(await level.toArray()).toEqual(values.map((value, at) => (at >= 1024 ? value : 0)))
  })

  test('smaller than a tile have one tile and no tail', async () => {
    using array = CudaArray.create(device, { width: 20, height: 10, format: 'f32', sparse: true })
    expect(array.sparseProperties()).toMatchObject({ mipTailFirstLevel: 0, mipTailSize: 0 })
    mapArrays([{ array, memory: pool }])
    array.copyFromSync(floats(200, 1))
    expect(await array.toArray()).toEqual(floats(200, 1))
  })

  test('can be bound to textures and surfaces before anything is mapped', () => {
    using array = CudaArray.create(device, { ...options, surface: true })
    using texture = TextureObject.create(array)
    using surface = SurfaceObject.create(array)
    expect([texture.resource, surface.resource]).toEqual([array, array])
  })

  const sparse = CudaArray.create(device, options)
  const mipmapped = MipmappedArray.create(device, { ...options, width: 512, height: 512 })
  const plain = CudaArray.create(device, { width: 4, format: 'f32' })
  const ordinary = PhysicalMemory.create(device, granule)
  const layered = CudaArray.create(device, { ...options, layers: 2 })
  test.each([
    [{ array: plain, memory: pool }, RangeError, /mappings\[0\].array must be one made with sparse: true or deferred/],
    [{ array: 7, memory: pool }, TypeError, /mappings\[0\].array must be a CudaArray or a MipmappedArray/],
    [{ array: sparse, memory: 7 }, TypeError, /mappings\[0\].memory must be/],
    [{ array: sparse, memory: pool, memoryOffset: 4096 }, RangeError, /memoryOffset must be a multiple of 65536/],
    [
      { array: sparse, memory: pool, memoryOffset: granule - tileBytes },
      RangeError,
      /memoryOffset must be such that 393216/,
    ],
    [{ array: sparse, memory: pool, memoryOffset: Number.NaN }, TypeError, /memoryOffset must be an integer/],
    [{ array: sparse, memory: pool, region: { x: 64 } }, RangeError, /region.x must be a multiple of 128/],
    [
      { array: sparse, memory: pool, region: { width: 64 } },
      RangeError,
      /region.width must be a multiple of 128, or up to/,
    ],
    [{ array: sparse, memory: pool, region: { y: 300 } }, RangeError, /region.y must be an integer from 0 to 299/],
    [{ array: sparse, memory: pool, region: { w: 1 } }, TypeError, /region must have only the keys/],
    [{ array: sparse, memory: pool, level: 1 }, RangeError, /level must be an integer from 0 to 0/],
    [{ array: sparse, memory: pool, layer: 1 }, RangeError, /layer must be an integer from 0 to 0/],
    [{ array: sparse, memory: pool, tail: true }, RangeError, /tail must be false: no level is smaller/],
    [{ array: layered, memory: pool, layer: 2 }, RangeError, /layer must be an integer from 0 to 1/],
    [
      { array: mipmapped, memory: pool, level: 4 },
      RangeError,
      /level must be less than 3: the others are mapped by tail/,
    ],
    [{ array: mipmapped, memory: pool, level: 1, tail: true }, RangeError, /level must be left out for the tail/],
    [{ array: mipmapped, memory: pool, tail: 1 }, TypeError, /tail must be a boolean/],
    [{ array: sparse, memory: pool, offset: 1 }, TypeError, /mappings\[0\] must have only the keys/],
    [{ array: sparse, memory: ordinary }, StatusError, /CUDA_ERROR_INVALID_VALUE/],
  ])('refuse %o', (mapping, kind, words) => {
    const map = (): void => mapArrays([mapping as never])
    expect(map).toThrow(kind as never)
    expect(map).toThrow(words)
  })

  test('refuse an empty or wrong list, disposed arrays, and rethrow errors of getters', () => {
    expect(() => mapArrays([])).toThrow(/mapArrays: mappings must be at least one mapping/)
    expect(() => mapArrays(sparse as never)).toThrow(TypeError)
    expect(() => mapArrays([{ array: sparse }], { stream: 7 } as never)).toThrow(/stream/)
    expect(() => mapArrays([throwing('array')])).toThrow('thrown by a getter')
    const gone = CudaArray.create(device, options)
    const disposing = {
      array: sparse,
      get memory() {
        gone.dispose()
        return pool
      },
    }
    expect(() => mapArrays([{ array: gone, memory: pool }, disposing])).toThrow(DisposedError)
    const there = CudaArray.create(new TestDevice(1), options)
    expect(() => mapArrays([{ array: sparse }, { array: there }])).toThrow(
      /mappings\[1\].array must be of the same context/,
    )
    expect(() => mapArrays([{ array: there, memory: pool }])).toThrow(StatusError)
    pool.properties
    const level = MipmappedArray.create(device, { ...options, width: 512, height: 512 }).level(0)
    expect(() => mapArrays([{ array: level, memory: pool }])).toThrow(StatusError)
  })
})

describe('arrays with deferred mapping', () => {
  test('have all of their texels once memory is mapped', async () => {
    using array = CudaArray.create(device, { width: 5, height: 7, depth: 3, format: 'u16', deferredMapping: true })
    mapArrays([{ array, memory: pool }])
    const values = Uint16Array.from({ length: 105 }, (_, at) => at)
    array.copyFromSync(values)
    expect(await array.toArray()).toEqual(values)
    using levels = MipmappedArray.create(device, { width: 9, height: 4, format: 'u8', deferredMapping: true })
    mapArrays([{ array: levels, memory: pool, memoryOffset: tileBytes }])
    levels.level(1).copyFromSync(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8))
    expect(await levels.level(1).toArray()).toEqual(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8))
    expect(() => mapArrays([{ array, memory: pool, level: 0 }])).toThrow(
      /level must be left out for an array of deferred/,
    )
  })
})
