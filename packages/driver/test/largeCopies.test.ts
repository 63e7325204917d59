import { expect, test } from 'vitest'
import { copiedPerTurn } from '../../../tooling/config/src/copiedPerTurn.js'

process.env['SHOAL_DEVICE'] = 'sim'
const { DeviceBuffer, Stream } = await import('@shoal/driver/shared')
const { delay, TestDevice } = await import('./support/testDevice.js')

const megabyte = 1024 * 1024
const device = new TestDevice(0)

test('DeviceBuffer.copyTo and toArray copy large memory in parts, and let the event loop turn in between', async () => {
  using buffer = DeviceBuffer.allocate(device, 'u8', 8 * megabyte)
  buffer.fillSync(7)
  const target = new Uint8Array(8 * megabyte)
  for (const work of [() => buffer.copyTo(target), () => buffer.toArray()]) {
    expect(await copiedPerTurn(work)).toBeLessThanOrEqual(2 * megabyte)
  }
  expect(target.every((byte) => byte === 7)).toBe(true)
})

test('DeviceBuffer.copyTo rejects if its target is detached during the copy', async () => {
  using buffer = DeviceBuffer.zeros(device, 'u8', 8 * megabyte)
  const target = new Uint8Array(8 * megabyte)
  const copied = buffer.copyTo(target)
  structuredClone(target.buffer, { transfer: [target.buffer] })
  await expect(copied).rejects.toThrow('DeviceBuffer.copyTo: target must keep its length')
  await buffer.copyTo(new Uint8Array(8 * megabyte))
})

/** Returns bytes in which all parts of a copy differ. */
function pattern(byteLength: number, factor = 1): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(byteLength / 4))
  for (let index = 0; index < words.length; index += 1) words[index] = Math.imul(index, 2_654_435_761 * factor)
  return new Uint8Array(words.buffer, 0, byteLength)
}

// Many times faster than toEqual.
const isSame = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0

test('DeviceBuffer.copyFrom leaves large copies to the stream', async () => {
  const source = pattern(64 * megabyte)
  using buffer = DeviceBuffer.allocate(device, 'u8', source.length)
  using stream = Stream.create(device)
  const copied = await copiedPerTurn(async () => {
    buffer.copyFrom(source, { stream })
    new Uint8Array(1).set([1]) // so that the measurement counts something
    await stream.synchronize()
  })
  expect(copied).toBeLessThan(megabyte)
  expect(isSame(buffer.toArraySync(), source)).toBe(true)
})

test.each([megabyte, megabyte + 1, 4 * megabyte, 4 * megabyte + 1, 8 * megabyte - 1, 64 * megabyte + 5])(
  'copies of %i bytes arrive complete in both directions, in stream order',
  async (byteLength) => {
    const [first, second] = [pattern(byteLength), pattern(byteLength, 3)]
    using buffer = DeviceBuffer.zeros(device, 'u8', byteLength)
    using other = DeviceBuffer.zeros(device, 'u8', byteLength)
    using stream = Stream.create(device, { nonBlocking: true })
    delay(stream, 20)
    buffer.copyFrom(first, { stream })
    other.copyFrom(buffer, { stream })
    const between = buffer.toArray({ stream })
    buffer.copyFrom(second, { stream })
    const after = buffer.copyTo(new Uint8Array(byteLength), { stream })
    buffer.fill(9, { stream })
    expect(isSame(await between, first)).toBe(true)
    expect(isSame(await after, second)).toBe(true)
    await stream.synchronize()
    expect(isSame(other.toArraySync(), first)).toBe(true)
    expect(buffer.toArraySync().every((byte) => byte === 9)).toBe(true)
  },
)

test('an array detached while the stream reads it causes no harm', async () => {
  using buffer = DeviceBuffer.zeros(device, 'u8', 8 * megabyte)
  using stream = Stream.create(device)
  delay(stream, 20)
  const source = pattern(8 * megabyte)
  buffer.copyFrom(source, { stream })
  structuredClone(source.buffer, { transfer: [source.buffer] })
  await stream.synchronize()
  const last = pattern(8 * megabyte, 3)
  buffer.copyFrom(last, { stream })
  expect(isSame(await buffer.toArray({ stream }), last)).toBe(true)
})

test('DeviceBuffer.copyTo rejects if the target of a large copy is detached during the copy', async () => {
  using buffer = DeviceBuffer.zeros(device, 'u8', 65 * megabyte)
  const target = new Uint8Array(65 * megabyte)
  const copied = buffer.copyTo(target)
  structuredClone(target.buffer, { transfer: [target.buffer] })
  await expect(copied).rejects.toThrow('DeviceBuffer.copyTo: target must keep its length')
})
