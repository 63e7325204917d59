import { Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import type { StorageArray } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BenchData, patternBytes } from '../src/bench/collectives/data.js'
import { countFor, operations } from '../src/bench/collectives/operations.js'
import { PatternKernels } from '../src/bench/patternKernels.js'
import { parseBytes, sizesOf } from '../src/bench/size.js'

let device: Device
let stream: Stream
let kernels: PatternKernels
beforeAll(() => {
  useSoftwareDevice({ devices: 2 })
  device = Device.get(0)
  stream = device.createStream()
  kernels = new PatternKernels(device, stream, patternBytes)
})
afterAll(() => {
  kernels.dispose()
  stream.dispose()
})

test.each(['f32', 'bf16', 'i8', 'u64', 'f8e4m3'] as const)(
  '%s: one wrong element in many is one wrong',
  async (type) => {
    // Longer than the data repeats, and than one piece that is read back.
    const length = 65_521 * 40 + 7
    const data = new BenchData(type, 'sum', 4, length)
    const buffer = DeviceBuffer.allocate(device, type, length)
    data.fill(buffer, 2, 3, kernels)
    await stream.synchronize()
    expect(await data.wrong(buffer, { rank: 2, part: 3 }, kernels, stream)).toBe(0)
    // Of another rank, and of another part.
    expect(await data.wrong(buffer, { rank: 1, part: 3 }, kernels, stream)).toBeGreaterThan(length / 2)
    expect(await data.wrong(buffer, { rank: 2, part: 2 }, kernels, stream)).toBeGreaterThan(length / 2)
    const place = buffer.slice(length - 5, length - 4)
    const value = (await place.toArray()) as StorageArray
    const bytes = new Uint8Array(value.buffer)
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 0x41
    place.copyFromSync(value as never)
    expect(await data.wrong(buffer, { rank: 2, part: 3 }, kernels, stream)).toBe(1)
    buffer.dispose()
  },
)

test('memory shorter than the pattern, and none', async () => {
  const pattern = Uint32Array.of(1, 2, 3, 4)
  const buffer = DeviceBuffer.zeros(device, 'u32', 7)
  kernels.fill(buffer, pattern)
  expect(await buffer.toArray({ stream })).toEqual(Uint32Array.of(1, 2, 3, 4, 1, 2, 3))
  const short = buffer.slice(0, 3)
  short.fillSync(9, { stream })
  kernels.fill(short.slice(0, 2), pattern)
  expect(await buffer.toArray({ stream })).toEqual(Uint32Array.of(1, 2, 9, 4, 1, 2, 3))
  expect([await kernels.countDifferent(short, pattern), await kernels.countDifferent(buffer, pattern)]).toEqual([1, 1])
  expect(await kernels.countDifferent(buffer.slice(0, 0), pattern)).toBe(0)
  kernels.fill(buffer.slice(0, 0), pattern)
  buffer.dispose()
})

test('data that is off by one place is wrong, and so is memory that nothing was written to', async () => {
  const data = new BenchData('f32', 'sum', 2, 1_000_000)
  const buffer = DeviceBuffer.zeros(device, 'f32', 1_000_001)
  data.fill(buffer.slice(0, 1_000_000), 0, 0, kernels)
  await stream.synchronize()
  expect(await data.wrong(buffer.slice(1), { rank: 0, part: 0 }, kernels, stream)).toBeGreaterThan(900_000)
  buffer.fillSync(Number.NaN)
  expect(await data.wrong(buffer, { rank: 0, part: 0 }, kernels, stream)).toBe(1_000_001)
  buffer.dispose()
})

test('parts are whole 16-byte words where they are that long', () => {
  const operation = (name: string) => {
    const found = operations.find((one) => one.name === name)
    if (found === undefined) throw new Error(name)
    return found
  }
  expect(countFor(operation('all-reduce'), 3, 1000, 4)).toBe(250)
  expect(countFor(operation('all-gather'), 3, 1024, 4)).toBe(84)
  expect(countFor(operation('all-gather'), 3, 24, 4)).toBe(2)
  expect(countFor(operation('all-gather'), 3, 8, 4)).toBe(0)
})

test('sizes', () => {
  expect(parseBytes('8', '-b')).toBe(8)
  expect(parseBytes('64K', '-b')).toBe(65536)
  expect(parseBytes('2MiB', '-b')).toBe(2 ** 21)
  expect(parseBytes('1gb', '-b')).toBe(2 ** 30)
  for (const text of ['', '0', '-1', '1.5M', '1T', '99999999G'])
    expect(() => parseBytes(text, '-b')).toThrow('-b must be')
  expect(sizesOf({ least: 8, most: 100, factor: 3, step: undefined })).toEqual([8, 24, 72])
  expect(sizesOf({ least: 8, most: 20, factor: 2, step: 6 })).toEqual([8, 14, 20])
})
