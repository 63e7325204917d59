import { CUDA_MEMCPY3D_BATCH_OP, cuMemcpy3DBatchAsync } from '@shoal/cuda-sys/driver'
import { DisposedError, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { randomInteger } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, PinnedBuffer, Stream } = await import('@shoal/driver/shared')
const { PitchedBuffer, prepareCopies3D } = await import('@shoal/driver/memory')
const { CudaArray } = await import('@shoal/driver/texture')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const numbers = (length: number): Float32Array<ArrayBuffer> => Float32Array.from({ length }, (_, index) => index + 0.5)

describe('prepareCopies3D', () => {
  test('copies tiles of an image at every launch', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    const [width, height, side] = [randomInteger(40, 90), randomInteger(20, 50), randomInteger(1, 9)]
    using image = PitchedBuffer.zeros(device, 'f32', { width, height })
    using input = PinnedBuffer.allocate(device, 'f32', side * side * 4)
    const tiles = DeviceBuffer.view(device, input, 'f32')
    const copies = prepareCopies3D(
      device,
      [0, 1, 2, 3].map((tile) => ({
        target: image.region({ x: (tile % 2) * 20, y: tile < 2 ? 0 : 10, width: side, height: side }),
        source: tiles.slice(tile * side * side, (tile + 1) * side * side),
      })),
    )
    expect(copies.count).toBe(4)
    for (let turn = 0; turn < 3; turn += 1) {
      input.array.set(numbers(input.length).map((value) => value + turn * 1000))
      copies.launch({ stream })
      const found = await image.toArray({ stream })
      expect(found).toEqual(
        found.map((_, index) => {
          const [x, y] = [index % width, Math.floor(index / width)]
          const [tile, row] = [(x >= 20 ? 1 : 0) + (y >= 10 ? 2 : 0), y >= 10 ? y - 10 : y]
          const column = x >= 20 ? x - 20 : x
          if (column >= side || row >= side) return 0
          return input.array[tile * side * side + row * side + column] as number
        }),
      )
    }
  })

  test('copies between pitched memory, multi-channel arrays, and memory with an explicit pitch', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    const [width, height, depth] = [7, 5, 3]
    const shape = { width, height, depth, format: 'u16', channels: 4 } as const
    using array = CudaArray.create(device, shape)
    using other = CudaArray.create(device, shape)
    const texels = Uint16Array.from({ length: width * height * depth * 4 }, () => randomInteger(0, 65_535))
    using rows = PitchedBuffer.from(device, texels, { width: width * 4, height, depth })
    using part = DeviceBuffer.zeros(device, 'u16', 64 * 4)
    prepareCopies3D(device, [{ target: array, source: rows }]).launch({ stream })
    prepareCopies3D(device, [
      { target: other, source: array },
      { target: part, source: array, region: { x: 1, y: 2, z: 1, width: 4, height: 2, depth: 1 }, pitch: 64 },
    ]).launch({ stream })
    expect(await other.toArray({ stream })).toEqual(texels)
    const found = await part.toArray({ stream })
    for (const row of [0, 1]) {
      const start = ((height + 2 + row) * width + 1) * 4
      expect(found.slice(row * 32, row * 32 + 16)).toEqual(texels.slice(start, start + 16))
      expect(found.slice(row * 32 + 16, row * 32 + 32)).toEqual(new Uint16Array(16))
    }
  })

  test('refuses wrong arguments and disposed memory by name', () => {
    using stream = Stream.create(device)
    using image = PitchedBuffer.zeros(device, 'f32', { width: 4, height: 2 })
    using wider = PitchedBuffer.zeros(device, 'f32', { width: 5, height: 2 })
    using words = PitchedBuffer.zeros(device, 'u32', { width: 4, height: 2 })
    using memory = DeviceBuffer.zeros(device, 'f32', 8)
    using array = CudaArray.create(device, { width: 4, height: 2, format: 'f32', channels: 2 })
    using elsewhere = CudaArray.create(new TestDevice(1), { width: 4, height: 2, format: 'f32' })
    for (const [copies, message] of [
      [[], /^prepareCopies3D: copies must be at least one copy/],
      [1, /^prepareCopies3D: copies must be/],
      [
        [{ target: memory, source: memory }],
        /copies\[0\]: source must be a PitchedBuffer or a CudaArray where target is none/,
      ],
      [[{ target: image, source: wider }], /copies\[0\]: source must be of 4 × 2 × 1 elements/],
      [[{ target: image, source: words }], /copies\[0\]: source must be of f32/],
      [[{ target: image, source: memory.slice(1) }], /copies\[0\]: source must be of 32 bytes/],
      [
        [{ target: image, source: memory, pitch: 64 }],
        /copies\[0\]: options must have only the keys target, source, not 'pitch'/,
      ],
      [
        [{ target: image, source: memory.reinterpret('u32') }],
        /copies\[0\]: source must be of f32 \(reinterpret\(\) it\)/,
      ],
      [[{ target: image, source: new Float32Array(8) }], /source/],
      [[{ target: array, source: memory }], /copies\[0\]: source/],
      [
        [{ target: array, source: DeviceBuffer.zeros(device, 'f32', 18), pitch: 36 }],
        /pitch must be a multiple of the 8 bytes/,
      ],
      [[{ target: elsewhere, source: memory }], /copies must be arrays of device 0/],
      [[{ target: image, source: memory, colour: 3 }], /colour/],
    ] as const) {
      expect(() => prepareCopies3D(device, copies as never)).toThrow(message)
    }
    const copies = prepareCopies3D(device, [{ target: image, source: memory }])
    expect(() => copies.launch({})).toThrow('PreparedCopies.launch: stream must be a stream')
    expect(() => copies.launch({ stream: Stream.borrow(device, 1n) })).toThrow(StatusError)
    const ofArray = prepareCopies3D(device, [{ target: array, source: DeviceBuffer.zeros(device, 'f32', 16) }])
    image.dispose()
    array.dispose()
    expect(() => copies.launch({ stream })).toThrow(DisposedError)
    expect(() => ofArray.launch({ stream })).toThrow(DisposedError)
  })

  test("is refused by the software device's driver in the cases listed in the CUDA manual", () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using memory = DeviceBuffer.zeros(device, 'u8', 256)
    using array = CudaArray.create(device, { width: 4, height: 2, format: 'f32' })
    using words = CudaArray.create(device, { width: 4, height: 2, format: 'u8' })
    const ofMemory = { type: 1, op: { ptr: { ptr: memory.address } } }
    const ofArray = ({ handle }: { handle: bigint }) => ({ type: 2, op: { array: { array: handle } } })
    const extent = { width: 4n, height: 2n, depth: 1n }
    const good = { src: ofMemory, dst: ofArray(array), extent, srcAccessOrder: 1 }
    const ask = (changed: object, flags = 0, count = 1, on: bigint = stream.handle): number => {
      const operation = CUDA_MEMCPY3D_BATCH_OP.allocate({ ...good, ...changed } as never)
      return device.primaryContext.run(() => cuMemcpy3DBatchAsync(count, operation, flags, on as never))
    }
    const narrow = { type: 1, op: { ptr: { ptr: memory.address, rowLength: 3n } } }
    const low = { type: 1, op: { ptr: { ptr: memory.address, layerHeight: 1n } } }
    expect(ask({})).toBe(0)
    expect(ask({ src: { type: 1, op: { ptr: { ptr: memory.address, rowLength: 5n, layerHeight: 3n } } } })).toBe(0)
    for (const changed of [
      { extent: { ...extent, depth: 0n } },
      { srcAccessOrder: 0 },
      { src: narrow },
      { src: low },
      { src: { ...ofMemory, type: 3 } },
      { src: ofArray(words) },
      { extent: { ...extent, width: 5n } },
      { flags: 2 },
    ])
      expect(ask(changed), JSON.stringify(Object.keys(changed))).toBe(1)
    expect([ask({}, 1), ask({}, 0, 0), ask({}, 0, 1, 1n)]).toEqual([1, 1, 1])
    expect(ask({ dst: ofArray({ handle: 77n }) })).toBe(400)
    stream.synchronizeSync()
  })
})
