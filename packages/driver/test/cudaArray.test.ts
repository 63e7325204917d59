import { inspect } from 'node:util'
import { DisposedError, memoryProtocol, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, PinnedBuffer, Stream } = await import('@shoal/driver/shared')
const { CudaArray } = await import('@shoal/driver/texture')
const { delay, TestDevice, throwing } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const other = new TestDevice(1)

function floats(length: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length }, (_, at) => at + 0.5)
}

describe('CudaArray.create', () => {
  test.each([
    [{ width: 5 }, { dimensions: 1, width: 5, height: 1, depth: 1, layers: 1, layered: false }],
    [
      { width: 5, height: 3 },
      { dimensions: 2, height: 3, depth: 1 },
    ],
    [
      { width: 5, height: 3, depth: 2 },
      { dimensions: 3, depth: 2, layers: 1 },
    ],
    [
      { width: 5, layers: 7 },
      { dimensions: 1, layers: 7, layered: true, depth: 1 },
    ],
    [
      { width: 5, height: 3, layers: 7 },
      { dimensions: 2, layers: 7, layered: true },
    ],
    [
      { width: 4, cubemap: true },
      { dimensions: 2, height: 4, cubemap: true, layers: 1, layered: false },
    ],
    [
      { width: 4, cubemap: true, layers: 3 },
      { cubemap: true, layers: 3, layered: true },
    ],
    [
      { width: 4, height: 4, surface: true, gather: true },
      { surface: true, gather: true },
    ],
    [
      { width: 4, colorAttachment: true },
      { colorAttachment: true, sparse: false },
    ],
  ] as const)('reports the shape it created from %o', (shape, facts) => {
    using array = CudaArray.create(device, { ...shape, format: 'i16', channels: 2 })
    expect(array).toMatchObject({ format: 'i16', channels: 2, device, ...facts })
  })

  test.each([
    ['u8', 1],
    ['unorm8', 4],
    ['unorm16', 2],
    ['snorm8', 2],
    ['snorm16', 1],
  ] as const)('creates the format %s', (format, channels) => {
    using array = CudaArray.create(device, { width: 2, format, channels })
    expect([array.format, array.channels]).toEqual([format, channels])
  })

  test('holds device memory until it is disposed', () => {
    const before = device.used
    const array = CudaArray.create(device, { width: 1024, height: 1024, format: 'f32' })
    expect(device.used - before).toBeGreaterThanOrEqual(4 << 20)
    array.dispose()
    array.dispose()
    expect(device.used).toBe(before)
    expect(() => array.handle).toThrow(DisposedError)
    expect(() => array.copyFrom(floats(4))).toThrow(DisposedError)
    expect(inspect(array)).toBe("CudaArray { device: 0, texels: '1024 × 1024 of 1 × f32', disposed: true }")
  })

  test.each([
    [{ width: 0 }, /width must be an integer from 1/],
    [{ width: 1.5 }, /width must be an integer/],
    [{ width: Number.NaN }, /width must be/],
    [{ width: 2, depth: 2 }, /height must be given where depth is/],
    [{ width: 2, height: 2, depth: 2, layers: 2 }, /depth must be left out for layers and cubemaps/],
    [{ width: 2, height: 3, cubemap: true }, /height must be the width, 2, for a cubemap/],
    [{ width: 2, channels: 3 }, /channels must be 1, 2 or 4, not 3/],
    [{ width: 2, format: 'f64' }, /format must be .*u8/],
    [{ width: 2, surface: 1 }, /surface must be a boolean/],
    [{ width: 2, gather: true }, /gather must be false for what is not 2-D/],
    [{ width: 3, height: 2, format: 'nv12' }, /even sizes/],
    [{ width: 2, height: 2, format: 'nv12', channels: 4 }, /channels must be left out/],
    [{ width: 2, high: 2 }, /options must have only the keys/],
  ])('refuses %o', (options, words) => {
    const before = device.used
    expect(() => CudaArray.create(device, { format: 'f32', ...options } as never)).toThrow(words)
    expect(device.used).toBe(before)
  })

  test('refuses a wrong owner, and passes on driver errors', () => {
    expect(() => CudaArray.create(7 as never, { width: 1, format: 'f32' })).toThrow(TypeError)
    expect(() => CudaArray.create(device, { ...throwing('width'), format: 'f32' })).toThrow('thrown by a getter')
    expect(() => CudaArray.create(device, { width: 1 << 20, format: 'f32' })).toThrow(StatusError)
  })
})

describe('copies of a CudaArray', () => {
  test('copy rows of a host array with gaps, and leave the gaps unchanged', async () => {
    using array = CudaArray.create(device, { width: 3, height: 2, format: 'u16' })
    const rows = Uint16Array.of(1, 2, 3, 90, 4, 5, 6)
    array.copyFrom(rows, { pitch: 8 })
    expect(await array.toArray()).toEqual(Uint16Array.of(1, 2, 3, 4, 5, 6))
    const target = new Uint16Array(8).fill(77)
    expect(await array.copyTo(target, { pitch: 8 })).toBe(target)
    expect(target).toEqual(Uint16Array.of(1, 2, 3, 77, 4, 5, 6, 77))
    array.copyToSync(target.fill(0), { pitch: 8, region: { x: 1 } })
    expect(target).toEqual(Uint16Array.of(2, 3, 0, 0, 5, 6, 0, 0))
  })

  test('copy boxes of slices with rows between them', async () => {
    using array = CudaArray.create(device, { width: 2, height: 2, depth: 2, format: 'f32' })
    array.copyFromSync(floats(8))
    const region = { y: 1, height: 1 }
    expect(await array.toArray({ region })).toEqual(Float32Array.of(2.5, 3.5, 6.5, 7.5))
    const apart = new Float32Array(8)
    array.copyToSync(apart, { region, rows: 2 })
    expect(apart).toEqual(Float32Array.of(2.5, 3.5, 0, 0, 6.5, 7.5, 0, 0))
    const queued = await array.copyTo(new Float32Array(8).fill(9), { region, rows: 2 })
    expect(queued).toEqual(Float32Array.of(2.5, 3.5, 9, 9, 6.5, 7.5, 9, 9))
    array.copyFrom(Float32Array.of(20, 30, 0, 0, 60, 70), { region, rows: 2 })
    expect(await array.toArray({ region })).toEqual(Float32Array.of(20, 30, 60, 70))
  })

  test('copy to a position in another array', async () => {
    using one = CudaArray.create(device, { width: 3, height: 3, format: 'f32' })
    using two = CudaArray.create(device, { width: 2, height: 2, format: 'f32' })
    one.copyFromSync(new Float32Array(9))
    two.copyFromSync(floats(4))
    one.copyFromSync(two, { region: { x: 1, y: 2, width: 1, height: 1 }, at: { x: 1, y: 1 } })
    expect(await one.toArray()).toEqual(Float32Array.of(0, 0, 0, 0, 0, 0, 0, 3.5, 0))
    const region = { width: 2, height: 2 }
    expect(() => one.copyFrom(two, { region, at: { x: 1 } })).toThrow(/at\.x must be at most 0, not 1/)
    expect(() => one.copyFrom(two, { region, rows: 3 })).toThrow(/pitch must be left out, like rows, where both are/)
  })

  test('read page-locked memory when the stream reaches them, and keep it alive until then', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using array = CudaArray.create(device, { width: 4, format: 'f32' })
    const pinned = PinnedBuffer.allocate(device, 'f32', 4)
    delay(stream, 30)
    array.copyFrom(pinned, { stream })
    pinned.array.set([1, 2, 3, 4])
    pinned.dispose()
    const ordinary = floats(4)
    using later = CudaArray.create(device, { width: 4, format: 'f32' })
    later.copyFrom(ordinary, { stream })
    await stream.synchronize()
    expect(await array.toArray()).toEqual(Float32Array.of(1, 2, 3, 4))
    expect(await later.toArray()).toEqual(ordinary)
  })

  test('copy to and from device memory', async () => {
    using array = CudaArray.create(device, { width: 4, height: 2, format: 'u8', channels: 4 })
    const bytes = Uint8Array.from({ length: 32 }, (_, at) => at)
    using memory = DeviceBuffer.from(device, bytes)
    array.copyFrom(memory)
    using back = DeviceBuffer.zeros(device, 'u8', 8)
    expect(array.copyToMemory(back, { region: { x: 1, y: 1, width: 2, height: 1 } })).toBe(array)
    expect(await back.toArray()).toEqual(bytes.slice(20, 28))
  })

  test.each([
    [floats(5), {}, RangeError, /source must be of 48 bytes, as the texels are/],
    [new Float64Array(6), {}, TypeError, /source must be a Float32Array/],
    [new DataView(new ArrayBuffer(48)), {}, TypeError, /source must be a Float32Array/],
    [7, {}, TypeError, /source must be a typed array, memory or a CudaArray/],
    [floats(12), { pitch: 15 }, RangeError, /pitch must be an integer from 16/],
    [floats(12), { rows: 2 }, RangeError, /rows must be an integer from 3/],
    [floats(12), { pitch: 20 }, RangeError, /source must be of at least 56 bytes/],
    [floats(12), { region: { x: 4 } }, RangeError, /region\.x must be an integer from 0 to 3/],
    [floats(12), { region: { x: 1, width: 4 } }, RangeError, /region\.width must be an integer from 1 to 3/],
    [floats(12), { region: { height: 0 } }, RangeError, /region\.height must be an integer from 1 to 3/],
    [floats(12), { region: { z: 1 } }, RangeError, /region\.z must be an integer from 0 to 0/],
    [floats(12), { region: { width: 0.5 } }, TypeError, /region\.width/],
    [floats(12), { region: { w: 1 } }, TypeError, /region must have only the keys/],
    [floats(12), { at: {} }, RangeError, /at must be left out where source is no array/],
    [floats(12), { stream: 7 }, TypeError, /stream/],
    [floats(12), { offset: 7 }, TypeError, /options must have only the keys/],
  ])('refuse %o with %o', (source, options, kind, words) => {
    using array = CudaArray.create(device, { width: 4, height: 3, format: 'f32' })
    for (const call of ['copyFrom', 'copyFromSync'] as const) {
      const copy = (): unknown => array[call](source as never, options as never)
      expect(copy).toThrow(kind)
      expect(copy).toThrow(words)
      expect(copy).toThrow(`CudaArray.${call}: `)
    }
  })

  test('are not queued if a getter of the other side disposes the array', () => {
    const array = CudaArray.create(device, { width: 4, format: 'f32' })
    using memory = DeviceBuffer.zeros(device, 'f32', 4)
    const other = {
      get [memoryProtocol]() {
        array.dispose()
        return memory[memoryProtocol]
      },
    }
    expect(() => array.copyFrom(other)).toThrow(DisposedError)
  })

  test('refuse memory and arrays of the wrong size', () => {
    using array = CudaArray.create(device, { width: 4, format: 'f32' })
    using elsewhere = DeviceBuffer.zeros(other, 'f32', 4)
    using words = DeviceBuffer.zeros(device, 'u32', 4)
    using few = DeviceBuffer.zeros(device, 'f32', 3)
    using two = CudaArray.create(device, { width: 4, format: 'f32', channels: 2 })
    using there = CudaArray.create(other, { width: 4, format: 'f32' })
    expect(() => array.copyFrom(elsewhere)).toThrow(/source must be memory of device 0/)
    expect(() => array.copyFrom(words)).toThrow(/source must be of f32/)
    expect(() => array.copyToMemory(few)).toThrow(/target must be of 16 bytes/)
    expect(() => array.copyFrom(two)).toThrow(/source must be an array of 1 × f32, not 'one of 2 × f32'/)
    expect(() => array.copyFrom(there)).toThrow(/source must be an array of device 0/)
    const gone = CudaArray.create(device, { width: 4, format: 'f32' })
    gone.dispose()
    expect(() => array.copyFrom(gone)).toThrow(DisposedError)
    few.dispose()
    expect(() => array.copyToMemory(few)).toThrow(DisposedError)
    const detached = floats(4)
    structuredClone(detached.buffer, { transfer: [detached.buffer] })
    expect(() => array.copyFrom(detached)).toThrow(/source must be an array with a buffer/)
  })
})

describe('features of certain arrays', () => {
  test.each([
    [
      'nv16',
      8,
      1,
      [
        [4, 2, 1, 'u8'],
        [2, 2, 2, 'u8'],
      ],
    ],
    [
      'p010',
      16,
      2,
      [
        [4, 2, 1, 'u16'],
        [2, 1, 2, 'u16'],
      ],
    ],
    [
      'p216',
      16,
      1,
      [
        [4, 2, 1, 'u16'],
        [2, 2, 2, 'u16'],
      ],
    ],
    [
      'yuv444-planar8',
      8,
      0,
      [
        [4, 2, 1, 'u8'],
        [4, 2, 1, 'u8'],
        [4, 2, 1, 'u8'],
      ],
    ],
    [
      'yuv444-semiplanar16',
      16,
      0,
      [
        [4, 2, 1, 'u16'],
        [4, 2, 2, 'u16'],
      ],
    ],
  ] as const)('planar arrays of %s have planes of %i bits', (format, _, halves, expected) => {
    using picture = CudaArray.create(device, { width: 4, height: 2, format })
    const planes = Array.from({ length: picture.planes }, (_, index) => picture.plane(index))
    expect(planes.map(({ width, height, channels, format }) => [width, height, channels, format])).toEqual(expected)
    const odd = () => CudaArray.create(device, { width: 3, height: 2, format }).dispose()
    const flat = () => CudaArray.create(device, { width: 4, height: 1, format }).dispose()
    if (halves === 0) expect(odd).not.toThrow()
    else expect(odd).toThrow(/even sizes/)
    if (halves < 2) expect(flat).not.toThrow()
    else expect(flat).toThrow(/even sizes/)
    expect(() => CudaArray.create(device, { width: 4, height: 2, layers: 2, format })).toThrow(RangeError)
    expect(() => CudaArray.create(device, { width: 4, height: 2, channels: 2, format })).toThrow(
      /channels must be left/,
    )
    expect(() => picture.copyFrom(new Uint8Array(8))).toThrow(/plane\(\)/)
  })

  test.each(['bc1', 'bc7-srgb', 'yuy2', 'unorm-101010-2'] as const)(
    '%s is not supported by the software device',
    (format) => {
      const create = () => CudaArray.create(device, { width: 4, height: 4, format })
      expect(create).toThrow('CUDA_ERROR_NOT_SUPPORTED')
    },
  )

  test('planar arrays have planes, which end with the array', async () => {
    const picture = CudaArray.create(device, { width: 4, height: 2, format: 'nv12' })
    expect([picture.format, picture.channels]).toEqual(['nv12', 3])
    const [bright, colours] = [picture.plane(0), picture.plane(1)]
    expect([bright, colours]).toMatchObject([
      { width: 4, height: 2, channels: 1, format: 'u8' },
      { width: 2, height: 1, channels: 2, format: 'u8' },
    ])
    colours.copyFromSync(Uint8Array.of(1, 2, 3, 4))
    expect(await colours.toArray()).toEqual(Uint8Array.of(1, 2, 3, 4))
    expect(() => picture.copyFrom(new Uint8Array(8))).toThrow(/plane\(\)/)
    expect(() => picture.plane(2)).toThrow(StatusError)
    expect(() => picture.plane(-1)).toThrow(RangeError)
    bright.dispose()
    expect(picture.disposed).toBe(false)
    picture.dispose()
    expect(colours.disposed).toBe(true)
    expect(() => colours.handle).toThrow(DisposedError)
  })

  test('memory and tile requirements are available for arrays without memory', () => {
    using plain = CudaArray.create(device, { width: 64, height: 64, format: 'f32' })
    expect(() => plain.memoryRequirements()).toThrow(StatusError)
    expect(() => plain.sparseProperties()).toThrow(StatusError)
    using deferred = CudaArray.create(device, { width: 256, height: 256, format: 'f32', deferredMapping: true })
    expect(deferred.deferredMapping).toBe(true)
    expect(deferred.memoryRequirements()).toEqual({ size: 256 * 256 * 4, alignment: 65536 })
    using sparse = CudaArray.create(device, { width: 512, height: 512, format: 'u8', channels: 2, sparse: true })
    expect(sparse.sparseProperties()).toMatchObject({ tile: { width: 256, height: 128, depth: 1 } })
    expect(sparse.copyFromSync(new Uint8Array(512 * 512 * 2))).toBe(sparse)
  })
})

test('an array disposed during a copy is freed after the copy', async () => {
  using stream = Stream.create(device, { nonBlocking: true })
  const array = CudaArray.create(device, { width: 4, format: 'f32' })
  using memory = DeviceBuffer.zeros(device, 'f32', 4)
  array.copyFromSync(floats(4))
  delay(stream, 20)
  array.copyToMemory(memory, { stream })
  await array[Symbol.asyncDispose]()
  expect(array.disposed).toBe(true)
  expect(await memory.toArray()).toEqual(floats(4))
})
