import { inspect } from 'node:util'
import type { PitchedBuffer as PitchedMemory } from '@shoal/driver/memory'
import { DisposedError, type ElementType, memoryProtocol, StatusError } from '@shoal/types'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { bytes, Particle, randomArray, randomFloats, randomInteger, randomParticles } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, ManagedBuffer, PinnedBuffer, Stream } = await import('@shoal/driver/shared')
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { Graph } = await import('@shoal/driver/graph')
const { delay, TestDevice, throwing } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const other = new TestDevice(1)

/** Returns all bytes of the memory, including gaps. */
function rawBytes(memory: PitchedMemory<ElementType>): Uint8Array {
  return DeviceBuffer.view(memory.device, memory, 'u8').toArraySync()
}

function isSame(one: unknown, another: ArrayBufferView): boolean {
  return Buffer.compare(bytes(one as ArrayBufferView), bytes(another)) === 0
}

describe('PitchedBuffer', () => {
  test('has padded rows, and reports the pitch', () => {
    using image = PitchedBuffer.zeros(device, 'f32', { width: 100, height: 7, depth: 3 })
    expect([image.width, image.height, image.depth, image.length]).toEqual([100, 7, 3, 2100])
    expect(image.pitch).toBeGreaterThanOrEqual(400)
    expect(image.pitch % 16).toBe(0)
    expect(image.slicePitch).toBe(image.pitch * 7)
    expect(image.byteLength).toBe(8400)
    expect([image.device, image.context]).toEqual([device, device.primaryContext])
    expect(image[memoryProtocol]).toMatchObject({
      byteLength: 2 * image.slicePitch + 6 * image.pitch + 400,
      deviceOrdinal: 0,
    })
    expect(inspect(image)).toMatch(
      /^PitchedBuffer { dtype: 'f32', width: 100, height: 7, depth: 3, pitch: \d+, device: 0 }$/,
    )
    expectTypeOf(image).toEqualTypeOf<PitchedMemory<'f32'>>()
  })

  test('exposes regions to other libraries with strides in elements of a type they know', () => {
    using image = PitchedBuffer.zeros(device, 'f32', { width: 100, height: 7, depth: 3 })
    const region = image.region({ x: 10, y: 2, z: 1, width: 5, height: 4, depth: 2 })
    const [row, slice] = [image.pitch / 4, image.slicePitch / 4]
    expect(region[memoryProtocol]).toEqual({
      version: 1,
      address: image.address + BigInt(image.slicePitch + 2 * image.pitch + 40),
      byteLength: image.slicePitch + 3 * image.pitch + 20,
      deviceOrdinal: 0,
      context: device.primaryContext.handle,
      dtype: 'f32',
      length: 40,
      shape: [2, 4, 5],
      strides: [slice, row, 1],
    })
    using structs = PitchedBuffer.zeros(device, Particle, { width: 9, height: 3 })
    expect(structs.region({ x: 1, width: 2 })[memoryProtocol]).toMatchObject({
      version: 1,
      dtype: 'u8',
      length: 6 * Particle.bytes,
      shape: [3, 2 * Particle.bytes],
      strides: [structs.pitch, 1],
    })
    // One row has no gaps.
    using target = DeviceBuffer.zeros(device, 'f32', 5)
    image.region({ x: 10, y: 2, z: 1, width: 5, height: 1, depth: 1 }).fill(3)
    target.copyFromSync(image.region({ x: 10, y: 2, z: 1, width: 5, height: 1, depth: 1 }))
    expect(target.toArraySync()).toEqual(new Float32Array(5).fill(3))
    image.dispose()
    expect(() => region[memoryProtocol]).toThrow(DisposedError)
  })

  for (const dtype of ['u8', 'i16', 'f32', 'complex64', 'complex128'] as const) {
    test(`copies ${dtype} from and to arrays, rows, pinned memory and buffers`, async () => {
      using stream = Stream.create(device, { nonBlocking: true })
      const extent = { width: randomInteger(1, 300), height: randomInteger(1, 20), depth: randomInteger(1, 5) }
      const count = extent.width * extent.height * extent.depth
      const values = randomArray(dtype, count)
      using image = PitchedBuffer.from(device, values, { ...extent, dtype } as never)
      expect(isSame(await image.toArray({ stream }), values)).toBe(true)
      expect(isSame(image.toArraySync(), values)).toBe(true)
      // Copy from one array per row, into a single one.
      const rows = await image.toRows({ stream })
      expect(rows).toHaveLength(extent.height * extent.depth)
      using second = PitchedBuffer.allocate(device, dtype, extent)
      second.copyFrom(rows as never, { stream })
      expect(isSame(await second.toArray({ stream }), values)).toBe(true)
      // Use page-locked memory on both sides.
      using pinned = PinnedBuffer.allocate(device, dtype, count)
      await second.copyTo(pinned as never, { stream })
      expect(isSame(pinned.array, values)).toBe(true)
      using third = PitchedBuffer.zeros(device, dtype, extent)
      third.copyFrom(pinned as never, { stream })
      expect(isSame(await third.toArray({ stream }), values)).toBe(true)
      // Contiguous device memory on both sides, managed memory, and pitched memory of two devices.
      using dense = DeviceBuffer.allocate(device, dtype, count)
      third.copyInto(dense, { stream })
      expect(isSame(dense.toArraySync({ stream }), values)).toBe(true)
      using managed = ManagedBuffer.allocate(device, dtype, count)
      third.copyInto(managed, { stream })
      using fourth = PitchedBuffer.zeros(other, dtype, extent)
      using theirs = Stream.create(other, { nonBlocking: true })
      theirs.waitEvent(stream.record())
      fourth.copyFrom(third as never, { stream: theirs })
      expect(isSame(fourth.toArraySync({ stream: theirs }), values)).toBe(true)
      using fifth = PitchedBuffer.zeros(other, dtype, extent)
      fifth.copyFrom(dense as never, { stream: theirs })
      expect(isSame(fifth.toArraySync({ stream: theirs }), values)).toBe(true)
      using sixth = PitchedBuffer.zeros(device, dtype, extent)
      sixth.copyFromSync(managed as never)
      expect(isSame(await sixth.toArray({ stream }), values)).toBe(true)
    })
  }

  test('copies large arrays in parts that end within rows', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    const extent = { width: 1_000_003, height: 5, depth: 2 }
    const values = randomFloats(extent.width * extent.height * extent.depth)
    using image = PitchedBuffer.allocate(device, 'f32', extent)
    image.copyFrom(values, { stream })
    expect(isSame(await image.toArray({ stream }), values)).toBe(true)
    const narrow = { width: 1001, height: 1003, depth: 3 }
    const many = randomFloats(narrow.width * narrow.height * narrow.depth)
    using columns = PitchedBuffer.allocate(device, 'f32', narrow)
    columns.copyFrom(many, { stream })
    expect(isSame(columns.toArraySync({ stream }), many)).toBe(true)
  })

  test('downloads more than the staging memory holds in parts', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    const extent = { width: 3_000_001, height: 24 }
    using image = PitchedBuffer.zeros(device, 'u8', extent)
    const values = Uint8Array.from({ length: extent.width * extent.height }, (_, index) => index % 251)
    image.copyFrom(values, { stream })
    expect(isSame(await image.toArray({ stream }), values)).toBe(true)
  })

  test('fills every element and leaves the padding unchanged', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    for (const [dtype, value] of [
      ['u8', 7],
      ['u16', 0x1234],
      ['f32', 1.5],
      ['f64', -2.25],
      ['complex128', [1, 2]],
    ] as const) {
      const extent = { width: randomInteger(1, 40), height: randomInteger(1, 9), depth: randomInteger(1, 6) }
      using image = PitchedBuffer.allocate(device, dtype, extent)
      DeviceBuffer.view(device, image, 'u8').fill(0xee, { stream })
      image.fill(value as never, { stream })
      await stream.synchronize()
      using expected = DeviceBuffer.allocate(device, dtype, image.length).fillSync(value as never)
      expect(image.toArraySync()).toEqual(expected.toArraySync())
      const raw = rawBytes(image)
      const rowBytes = image.byteLength / (image.height * image.depth)
      for (let row = 0; row + 1 < image.height * image.depth; row += 1) {
        const gap = raw.subarray(row * image.pitch + rowBytes, (row + 1) * image.pitch)
        expect(gap.every((byte) => byte === 0xee)).toBe(true)
      }
    }
  })

  test('converts structs to objects in both directions, and fills structs', async () => {
    const particles = randomParticles(60)
    using grid = PitchedBuffer.from(device, particles, { width: 5, height: 4, depth: 3, dtype: Particle })
    expect(await grid.toArray()).toEqual(particles)
    expect(await grid.row(2, 1).toArray()).toEqual(particles.slice(30, 35))
    const one = { id: 9, weight: 0.5, tag: 3 }
    grid.region({ x: 1, y: 1, z: 1, width: 2, height: 2 }).fillSync(one)
    const expected = particles.map((particle, index) => {
      const [x, y, z] = [index % 5, Math.floor(index / 5) % 4, Math.floor(index / 20)]
      return x >= 1 && x < 3 && y >= 1 && y < 3 && z >= 1 ? one : particle
    })
    expect(await grid.toArray()).toEqual(expected)
  })

  test('region() returns a part that can be read, written, filled and divided again', async () => {
    const extent = { width: 20, height: 10, depth: 4 }
    const values = Int32Array.from({ length: 800 }, (_, index) => index)
    using image = PitchedBuffer.from(device, values, extent)
    const part = image.region({ x: 3, y: 2, z: 1, width: 5, height: 4, depth: 2 })
    const at = (x: number, y: number, z: number): number => (z * 10 + y) * 20 + x
    const inside: number[] = []
    for (const z of [1, 2]) for (const y of [2, 3, 4, 5]) for (const x of [3, 4, 5, 6, 7]) inside.push(at(x, y, z))
    expect([...(await part.toArray())]).toEqual(inside)
    expect([...(await part.region({ x: 4, y: 3, z: 1 }).toArray())]).toEqual([at(7, 5, 2)])
    expect([...image.row(9, 3).toArraySync()]).toEqual([...values.slice(780)])
    part.fillSync(-1)
    const changed = values.map((value) => (inside.includes(value) ? -1 : value))
    expect(image.toArraySync()).toEqual(changed)
    part.copyFromSync(Int32Array.from(inside))
    expect(image.toArraySync()).toEqual(values)
    // A view ends with the whole buffer, and its own disposal ends nothing.
    part.dispose()
    expect(() => part.fill(1)).toThrow(DisposedError)
    const row = image.row(0)
    image.dispose()
    expect(() => row.toArraySync()).toThrow(DisposedError)
  })

  test('is read in stream order, and can be disposed during a copy', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    const image = PitchedBuffer.zeros(device, 'f32', { width: 10, height: 10 })
    delay(stream, 20)
    image.fill(3, { stream })
    const read = image.toArray({ stream })
    await image[Symbol.asyncDispose]()
    expect(await read).toEqual(new Float32Array(100).fill(3))
    expect(image.disposed).toBe(true)
    expect(() => image.address).toThrow(DisposedError)
    expect(inspect(image)).toMatch(/disposed: true/)
  })

  test('works in captured fills and copies, and stays alive for the graph', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using image = PitchedBuffer.zeros(device, 'f64', { width: 33, height: 6, depth: 2 })
    using pinned = PinnedBuffer.allocate(device, 'f64', image.length)
    using graph = Graph.capture(stream, () => {
      image.fill(1.25, { stream })
      void image.copyTo(pinned, { stream })
    })
    expect(() =>
      Graph.capture(stream, () => {
        image.copyFrom(new Float64Array(image.length), { stream })
      }),
    ).toThrow(/PitchedBuffer.copyFrom: an ordinary array/)
    using exec = graph.instantiate()
    for (let turn = 0; turn < 2; turn += 1) {
      pinned.array.fill(0)
      exec.launch(stream)
      await stream.synchronize()
      expect(pinned.array).toEqual(new Float64Array(image.length).fill(1.25))
    }
  })

  test('frees its memory', async () => {
    const before = device.used
    for (let turn = 0; turn < 3; turn += 1) {
      using _one = PitchedBuffer.zeros(device, 'u8', { width: 1000, height: 1000 })
      await using _other = PitchedBuffer.zeros(device, 'u8', { width: 1000, height: 1000 })
    }
    expect(() => PitchedBuffer.from(device, new Float32Array(7), { width: 4, height: 2 })).toThrow(RangeError)
    expect(device.used).toBe(before)
  })

  test('refuses wrong arguments by name', async () => {
    using image = PitchedBuffer.zeros(device, 'f32', { width: 4, height: 3, depth: 2 })
    using theirs = Stream.create(other)
    const size = { width: 4, height: 3 }
    for (const [act, message] of [
      [
        () => PitchedBuffer.allocate(device, 'f32', 5 as never),
        /^PitchedBuffer.allocate: extent must be a plain object/,
      ],
      [() => PitchedBuffer.allocate(device, 'f32', { width: 5 } as never), /height must be an integer from 1/],
      [
        () => PitchedBuffer.allocate(device, 'f32', { ...size, width: 0 }),
        /width must be an integer from 1 to 536870911, not 0/,
      ],
      [() => PitchedBuffer.allocate(device, 'f32', { ...size, height: 1.5 }), /height must be an integer/],
      [() => PitchedBuffer.allocate(device, 'f32', { ...size, depth: Number.NaN }), /depth must be an integer/],
      [() => PitchedBuffer.allocate(device, 'f32', { ...size, size: 3 } as never), /extent must have only the keys/],
      [() => PitchedBuffer.allocate(device, 'f32', { width: 4, height: 2 ** 40, depth: 2 }), /height \* depth must be/],
      [() => PitchedBuffer.allocate(device, 'f33' as never, size), /dtype must be one of/],
      [() => PitchedBuffer.allocate(7 as never, 'f32', size), /owner must be a Device or a Context/],
      [() => PitchedBuffer.from(device, new Float32Array(3), size), /array must be of 12 elements, not 3/],
      [() => PitchedBuffer.from(device, [1, 2] as never, { ...size, dtype: 'f32' }), /array must be a Float32Array/],
      [() => image.fill('1' as never), /^PitchedBuffer.fill: value must be a number/],
      [() => image.fill(1, { stream: theirs }), /stream must be one of device 0/],
      [() => image.copyFrom(new Float32Array(23)), /^PitchedBuffer.copyFrom: source must be of 24 elements/],
      [() => image.copyFrom(new Float64Array(24) as never), /source must be a Float32Array/],
      [() => image.copyFrom([new Float32Array(4)]), /source must be 6 rows, not 1/],
      [
        () => image.copyFrom(Array.from({ length: 6 }, () => new Float32Array(5))),
        /source\[0\] must be a row of 4 elements, not 5/,
      ],
      [
        () => image.copyFrom(image.region({ width: 2 })),
        /source must be of 4 × 3 × 2 elements \(region\(\) takes parts\), not '2 × 3 × 2'/,
      ],
      [() => image.copyFrom(PitchedBuffer.zeros(device, 'u32', size) as never), /source must be of f32, not 'u32'/],
      [() => image.copyFrom(7 as never), /source must be a typed array or memory/],
      [() => image.copyFromSync(new Float32Array(24), { where: 1 } as never), /options must have only the keys stream/],
      [() => image.copyToSync(new Float32Array(3)), /target must be of 24 elements/],
      [
        () => image.copyInto(DeviceBuffer.zeros(device, 'f32', 3)),
        /target must be of 96 bytes, as many as all rows have, not 12/,
      ],
      [() => image.row(3), /^PitchedBuffer.row: y must be an integer from 0 to 2, not 3/],
      [() => image.row(0, 2), /z must be an integer from 0 to 1/],
      [() => image.region({ x: 4 }), /^PitchedBuffer.region: x must be an integer from 0 to 3, not 4/],
      [() => image.region({ y: 1, height: 3 }), /height must be an integer from 1 to 2, not 3/],
      [() => image.region(4 as never), /region must be a plain object/],
    ] as const) {
      expect(act).toThrow(message)
    }
    await expect(image.copyTo([] as never)).rejects.toThrow(/^PitchedBuffer.copyTo: target must be a Float32Array/)
    await expect(image.toArray({ stream: 3 as never })).rejects.toThrow(/stream must be a stream/)
    expect(() => image.fill(1, throwing('stream'))).toThrow('thrown by a getter')
    expect(() => PitchedBuffer.allocate(device, 'u8', { width: 2 ** 20, height: 2 ** 20 })).toThrow(StatusError)
  })
})
