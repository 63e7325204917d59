import { afterAll, beforeAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, ManagedBuffer, prepareCopies } = await import('@shoal/driver')
const { copyNode, Graph } = await import('@shoal/driver/graph')
const { PitchedBuffer, prepareCopies3D } = await import('@shoal/driver/memory')
const { CudaArray } = await import('@shoal/driver/texture')
const runtime = await import('@shoal/runtime')
const { cuMemcpyDtoDAsync } = await import('@shoal/cuda-sys/driver')

const device = Device.get(0)
const stream = device.createStream()
let memory: import('@shoal/driver').DeviceBuffer<'f32'>
const overlap = (api: string, name = 'source') => `${api}: ${name} must not overlap `

beforeAll(() => {
  memory = DeviceBuffer.from(
    device,
    Float32Array.from({ length: 16 }, (_, index) => index),
  )
})

afterAll(() => {
  memory.dispose()
  stream.dispose()
})

describe.each([
  ['upwards', 1, 0],
  ['downwards', 0, 1],
])('a copy %s between ends that overlap', (_, to, from) => {
  const ends = (): [import('@shoal/driver').DeviceBuffer<'f32'>, import('@shoal/driver').DeviceBuffer<'f32'>] => [
    memory.slice(to, to + 8),
    memory.slice(from, from + 8),
  ]

  test('is refused with a RangeError in every way, before anything is queued', () => {
    const [target, source] = ends()
    const other = DeviceBuffer.view(Device.get(1), source, 'f32')
    const ofRuntime = runtime.DeviceBuffer.view(memory, 'f32', { byteOffset: to * 4, length: 8 })
    for (const [copy, api] of [
      [() => target.copyFrom(source), 'DeviceBuffer.copyFrom'],
      [() => target.copyFrom(source, { stream }), 'DeviceBuffer.copyFrom'],
      [() => target.copyFromSync(source), 'DeviceBuffer.copyFromSync'],
      [() => target.copyFrom(other), 'DeviceBuffer.copyFrom'],
      [() => ofRuntime.copyFrom(source), 'DeviceBuffer.copyFrom'],
      [() => copyNode(target, source), 'copyNode'],
      [() => prepareCopies(device, [{ target, source }]), 'prepareCopies'],
      [
        () => Graph.capture(stream, (capturing) => target.copyFrom(source, { stream: capturing })),
        'DeviceBuffer.copyFrom',
      ],
    ] as const) {
      expect(copy).toThrow(RangeError)
      expect(copy).toThrow(overlap(api, api === 'prepareCopies' ? 'copies[0].source' : 'source'))
    }
    expect([...memory.toArraySync()]).toEqual(Array.from({ length: 16 }, (_, index) => index))
  })

  test('reads its own writes on the software device', async () => {
    using own = DeviceBuffer.from(
      device,
      Float32Array.from({ length: 16 }, (_, index) => index),
    )
    const [target, source] = [own.slice(to, to + 8), own.slice(from, from + 8)]
    const status = device.primaryContext.run(() =>
      cuMemcpyDtoDAsync(target.address as never, source.address as never, 32, stream.handle),
    )
    expect(status).toBe(0)
    await stream.synchronize()
    expect([...own.toArraySync()].slice(to, to + 8)).not.toEqual(Array.from({ length: 8 }, (_, index) => from + index))
  })
})

test('copies onto the same memory and between adjacent ranges are accepted', () => {
  memory.copyFrom(memory.slice())
  memory.slice(0, 8).copyFrom(memory.slice(8))
  memory.slice(0, 0).copyFrom(memory.slice(1, 1))
  prepareCopies(device, [{ target: memory.slice(0, 4), source: memory.slice(4, 8) }])
  copyNode(memory.slice(8), memory.slice(0, 8))
  using managed = ManagedBuffer.allocate(device, 'f32', 8)
  DeviceBuffer.view(device, managed, 'f32').copyFrom(memory.slice(0, 8))
  memory.copyFromSync(Float32Array.from({ length: 16 }, (_, index) => index))
})

test('copies in a batch that use the target of another copy are refused', () => {
  const part = (start: number, end: number) => memory.slice(start, end)
  const batch = (...copies: readonly (readonly [readonly [number, number], readonly [number, number]])[]) =>
    prepareCopies(
      device,
      copies.map(([to, from]) => ({ target: part(...to), source: part(...from) })),
    )
  batch(
    [
      [0, 4],
      [8, 12],
    ],
    [
      [4, 8],
      [8, 12],
    ],
    [
      [12, 14],
      [9, 11],
    ],
  )
  expect(() =>
    batch(
      [
        [0, 4],
        [8, 12],
      ],
      [
        [3, 5],
        [14, 16],
      ],
    ),
  ).toThrow(
    'prepareCopies: copies[1].target must not overlap the target of copies[0], because copies of a batch run in any order',
  )
  expect(() =>
    batch(
      [
        [0, 2],
        [3, 5],
      ],
      [
        [4, 8],
        [8, 12],
      ],
    ),
  ).toThrow(overlap('prepareCopies', 'copies[0].source'))
  expect(() =>
    batch(
      [
        [8, 12],
        [12, 16],
      ],
      [
        [0, 2],
        [11, 13],
      ],
    ),
  ).toThrow(overlap('prepareCopies', 'copies[1].source'))
})

describe('copies of rows', () => {
  const image = PitchedBuffer.allocate(device, 'u8', { width: 64, height: 16 })
  const [left, right] = [image.region({ width: 32 }), image.region({ x: 32, width: 32 })]

  afterAll(() => image.dispose())

  test('between interleaved regions are accepted', async () => {
    const data = Uint8Array.from({ length: 32 * 16 }, (_, index) => index)
    left.copyFrom(data, { stream })
    right.copyFrom(left, { stream })
    prepareCopies3D(device, [{ target: left, source: right }])
    copyNode(right, left)
    expect(await right.toArray({ stream })).toEqual(data)
    image.copyFrom(image, { stream })
    image.region({ height: 8 }).copyFrom(image.region({ y: 8, height: 8 }), { stream })
  })

  test.each([
    ['to the right', { x: 1, width: 32 }, { width: 32 }],
    ['to the left', { width: 32 }, { x: 31, width: 32 }],
    ['down', { y: 1, height: 8 }, { height: 8 }],
    ['up', { height: 8 }, { y: 7, height: 8 }],
    ['askew', { x: 8, y: 1, width: 16, height: 8 }, { width: 16, height: 8 }],
  ])('with shared bytes are refused %s', (_, to, from) => {
    const [target, source] = [image.region(to), image.region(from)]
    for (const [copy, api] of [
      [() => target.copyFrom(source), 'PitchedBuffer.copyFrom'],
      [() => target.copyFromSync(source), 'PitchedBuffer.copyFromSync'],
      [() => prepareCopies3D(device, [{ target, source }]), 'prepareCopies3D: copies[0]'],
      [() => copyNode(target, source), 'copyNode'],
    ] as const) {
      expect(copy).toThrow(RangeError)
      expect(copy).toThrow(overlap(api))
    }
  })

  test('and contiguous memory that overlaps them are refused', () => {
    const all = DeviceBuffer.view(device, image, 'u8')
    const rows = image.region({ width: 16, height: 4 })
    expect(() => rows.copyFrom(all.slice(0, 64))).toThrow(overlap('PitchedBuffer.copyFrom'))
    expect(() => rows.copyInto(all.slice(image.pitch, image.pitch + 64))).toThrow(overlap('PitchedBuffer.copyInto'))
    rows.copyFrom(all.slice(16, 80), { stream })
    rows.copyInto(all.slice(image.pitch + 16, image.pitch + 80), { stream })
  })

  test('have the same result as a comparison of each byte', () => {
    using box = PitchedBuffer.allocate(device, 'u8', { width: 12, height: 6, depth: 4 })
    const all = DeviceBuffer.view(device, box, 'u8')
    let random = 7
    const next = (below: number): number => {
      random = (random * 1_103_515_245 + 12_345) % 2 ** 31
      return Math.floor((random / 2 ** 31) * below)
    }
    const bytesOf = (start: number, size: readonly number[], pitch: number, slicePitch: number): number[] => {
      const [width = 1, height = 1, depth = 1] = size
      return Array.from({ length: width * height * depth }, (_, index) => {
        const row = Math.floor(index / width)
        return start + Math.floor(row / height) * slicePitch + (row % height) * pitch + (index % width)
      })
    }
    let refused = 0
    for (let round = 0; round < 400; round += 1) {
      const size = [1 + next(12), 1 + next(6), 1 + next(4)]
      const [width = 1, height = 1, depth = 1] = size
      const ends = [0, 1].map((end) => {
        if (end === 1 && round % 3 === 0) {
          const start = next(Math.min(all.length - width * height * depth, 2 * box.pitch))
          const bytes = bytesOf(start, size, width, width * height)
          return { bytes, memory: all.slice(start, start + width * height * depth) }
        }
        const [x, y, z] = [next(13 - width), next(7 - height), next(5 - depth)]
        const start = z * box.slicePitch + y * box.pitch + x
        const memory = box.region({ x, y, z, width, height, depth })
        return { bytes: bytesOf(start, size, box.pitch, box.slicePitch), memory }
      })
      const [to, from] = ends as [(typeof ends)[number], (typeof ends)[number]]
      const written = new Set(to.bytes)
      const isRace = from.bytes.some((byte, index) => written.has(byte) && to.bytes[index] !== byte)
      const copy = (): unknown => copyNode(to.memory, from.memory)
      if (isRace) {
        refused += 1
        expect(copy).toThrow(overlap('copyNode'))
      } else copy()
    }
    expect(refused).toBeGreaterThan(50)
    expect(refused).toBeLessThan(350)
  })
})

test('overlapping texels of one array are refused, and others are copied', () => {
  using array = CudaArray.create(device, { width: 16, height: 16, format: 'u8' })
  const region = { width: 8, height: 8 }
  array.copyFrom(array, { region, at: { x: 8 }, stream })
  array.copyFrom(array, { region, at: {}, stream })
  expect(() => array.copyFrom(array, { region, at: { x: 7, y: 7 }, stream })).toThrow(overlap('CudaArray.copyFrom'))
  expect(() => copyNode(array, array, { region, at: { y: 1 } })).toThrow(overlap('copyNode'))
})
