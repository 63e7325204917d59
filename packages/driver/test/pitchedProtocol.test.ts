import { type MemoryRange, memoryProtocol, toMemoryRange, toStridedRange } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { Particle, randomFloats, randomInteger, randomParticles } from './support/elements.js'
import { tensorAddon } from './support/tensors.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, Stream } = await import('@shoal/driver/shared')
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { fromDLPack, toDLPack } = await import('@shoal/driver/dlpack')
const { delay, TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const addon = tensorAddon()
beforeEach(() => expect(device.used).toBe(0))

const odd = (end: number): number => randomInteger(0, end) * 2 + 1
const extents = [
  ['two dimensions', { width: odd(40), height: odd(9) }],
  ['three dimensions', { width: odd(40), height: odd(9), depth: randomInteger(2, 5) }],
  ['one row', { width: odd(40), height: 1 }],
  ['one column', { width: 1, height: odd(9), depth: 3 }],
] as const

/** Memory of another owner, with the given answers. */
const answering = (answer: Partial<MemoryRange>, of: MemoryRange) => ({
  [memoryProtocol]: { ...of, ...answer } as MemoryRange,
})

describe.each(extents)('a whole PitchedBuffer of %s', (_, extent) => {
  const { width, height, depth = 1 } = extent as { width: number; height: number; depth?: number }
  const values = (): Float32Array<ArrayBuffer> => randomFloats(width * height * depth)

  test('exposes its elements with strides, and is refused where contiguous elements are required', () => {
    using image = PitchedBuffer.from(device, values(), extent)
    const [shape, strides] = [
      [depth, height, width],
      [image.slicePitch / 4, image.pitch / 4, 1],
    ].map((each) => (depth === 1 ? each.slice(1) : each))
    expect(toStridedRange(image)).toEqual({
      version: 1,
      address: image.address,
      byteLength: (depth - 1) * image.slicePitch + (height - 1) * image.pitch + width * 4,
      deviceOrdinal: 0,
      context: device.primaryContext.handle,
      dtype: 'f32',
      length: width * height * depth,
      shape,
      strides,
    })
    if (height * depth === 1) return
    using flat = DeviceBuffer.allocate(device, 'f32', width * height * depth)
    expect(() => toMemoryRange(image)).toThrow(/must be contiguous, not with strides \[.*,1\] for a shape of/)
    expect(() => flat.copyFrom(image)).toThrow(/^DeviceBuffer.copyFrom: source must be contiguous/)
    // A view of its bytes includes the gaps.
    expect(DeviceBuffer.view(device, image, 'u8').length).toBe(image[memoryProtocol].byteLength)
  })

  test('exports and imports through DLPack, into and out of other pitched memory', async () => {
    const expected = values()
    using image = PitchedBuffer.from(device, expected, extent)
    using capsule = toDLPack(image, { versioned: true })
    using tensor = fromDLPack(capsule)
    expect(tensor).toMatchObject({ dtype: 'f32', shape: depth === 1 ? [height, width] : [depth, height, width] })
    expect(tensor.strides).toEqual(image[memoryProtocol].strides)
    using copy = PitchedBuffer.zeros(device, 'f32', extent)
    expect(await copy.copyFrom(tensor).toArray()).toEqual(expected)
    const others = values()
    copy.copyFromSync(others).copyInto(tensor)
    expect(image.toArraySync()).toEqual(others)
  })

  test('accepts tensors of other libraries with any row strides', () => {
    const [row, slices] = [width + randomInteger(0, 5), height + randomInteger(0, 3)]
    const all = randomFloats(row * slices * depth)
    using memory = DeviceBuffer.from(device, all)
    const shape = [depth, height, width]
    const strides = [row * slices, row, 1]
    using tensor = fromDLPack(addon.make({ data: memory.address, shape, strides }))
    using image = PitchedBuffer.zeros(device, 'f32', extent)
    const expected = Array.from({ length: depth * height }, (_, index) => {
      const start = Math.floor(index / height) * row * slices + (index % height) * row
      return [...all.subarray(start, start + width)]
    })
    expect([...image.copyFromSync(tensor).toArraySync()]).toEqual(expected.flat())
    image.fill(7).copyInto(tensor)
    const left = memory.toArraySync()
    const isInside = (index: number): boolean => index % row < width && Math.floor(index / row) % slices < height
    expect([...left]).toEqual([...all].map((value, index) => (isInside(index) ? 7 : value)))
  })
})

test('structs are exposed as rows of bytes', () => {
  const list = randomParticles(12)
  using image = PitchedBuffer.from(device, list, { width: 4, height: 3, dtype: Particle })
  expect(image[memoryProtocol]).toMatchObject({
    dtype: 'u8',
    shape: [3, 4 * Particle.bytes],
    strides: [image.pitch, 1],
  })
  using tensor = fromDLPack(toDLPack(image))
  using copy = PitchedBuffer.zeros(device, Particle, { width: 4, height: 3 })
  expect(copy.copyFromSync(tensor).toArraySync()).toEqual(list)
})

test('a copy waits for pending work on strided memory', () => {
  using stream = Stream.create(device, { nonBlocking: true })
  using other = Stream.create(device, { nonBlocking: true })
  using image = PitchedBuffer.zeros(device, 'f32', { width: 3, height: 2 })
  delay(stream, 50)
  image.fill(4, { stream })
  const pending = answering({ stream: stream.handle }, image[memoryProtocol])
  using copy = PitchedBuffer.zeros(device, 'f32', { width: 3, height: 2 })
  expect(copy.copyFromSync(pending, { stream: other }).toArraySync()).toEqual(new Float32Array(6).fill(4))
})

test('strided memory that does not fit is refused, and no byte is copied', () => {
  using image = PitchedBuffer.zeros(device, 'f32', { width: 3, height: 2 })
  using memory = DeviceBuffer.from(device, randomFloats(64))
  const strided = (answer: Partial<MemoryRange>) =>
    answering({ version: 1, shape: [2, 3], strides: [8, 1], length: 6, ...answer }, memory[memoryProtocol])
  for (const [answer, type, message] of [
    [{ dtype: 'i32' }, TypeError, "source must be of f32, not 'i32'"],
    [{ shape: [3, 2] }, RangeError, "source must be of the shape [1,2,3] (region() takes parts), not '[3,2]'"],
    [{ shape: [2, 2, 3], strides: [16, 8, 1], length: 12 }, RangeError, "(region() takes parts), not '[2,2,3]'"],
    [{ shape: [2, 1, 2, 3], strides: [30, 16, 8, 1], length: 12 }, RangeError, "not '[2,1,2,3]'"],
    [{ shape: [6], strides: [2] }, RangeError, "not '[6]'"],
    [
      { strides: [8, 2] },
      RangeError,
      'source must be rows of elements without gaps, and slices a whole number of rows apart',
    ],
    [{ strides: [1, 1] }, RangeError, "not 'strides [1,1]'"],
    [{ strides: [0, 1] }, RangeError, "not 'strides [0,1]'"],
    [{ strides: [8] }, RangeError, 'source.strides must have 2 numbers'],
    [{ strides: [80, 1] }, RangeError, 'source.strides must stay within 256 bytes'],
  ] as const) {
    const copy = (): unknown => image.copyFrom(strided(answer as never))
    expect(copy).toThrow(type)
    expect(copy).toThrow(message)
    expect(() => image.copyInto(strided(answer as never))).toThrow(message.replace('source', 'target'))
  }
  expect(() => image.copyInto(strided({ readOnly: true }))).toThrow(
    "PitchedBuffer.copyInto: target must be memory that may be written, not 'read-only memory'",
  )
  using volume = PitchedBuffer.zeros(device, 'f32', { width: 3, height: 2, depth: 2 })
  const uneven = strided({ shape: [2, 2, 3], strides: [18, 4, 1], length: 12 })
  expect(() => volume.copyFrom(uneven)).toThrow("slices a whole number of rows apart, not 'strides [18,4,1]'")
  expect(image.toArraySync()).toEqual(new Float32Array(6))
})
