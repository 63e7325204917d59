import { type DType, defineStruct } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { bytes, Particle, randomInteger, randomParticles } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)

beforeEach(() => expect(device.used).toBe(0))

describe('DeviceBuffer.fill and fillSync', () => {
  test.each([
    ['u8', 200, 200],
    ['i16', -300, -300],
    ['u32', 0xdead_beef, 0xdead_beef],
    ['f32', -1.5, -1.5],
    ['f64', Math.PI, Math.PI],
    ['i64', -(2n ** 60n), -(2n ** 60n)],
    ['u64', 77, 77n],
    ['f16', 1.5, 0x3e00],
    ['bool', true, 1],
  ] as const)('%s: sets every element to %o', (dtype, value, held) => {
    const length = randomInteger(1, 100) * 2 + 1
    using buffer = DeviceBuffer.zeros<DType>(device, dtype, length)
    expect(buffer.slice(1).fill(value as never).length).toBe(length - 1)
    const read = [...(buffer.toArraySync() as unknown as ArrayLike<number | bigint> & Iterable<number | bigint>)]
    expect(read).toEqual([typeof held === 'bigint' ? 0n : 0, ...new Array(length - 1).fill(held)])
  })

  test.each([
    ['i8', -(2n ** 7n), 2n ** 7n - 1n],
    ['u8', 0n, 2n ** 8n - 1n],
    ['i16', -(2n ** 15n), 2n ** 15n - 1n],
    ['u16', 0n, 2n ** 16n - 1n],
    ['i32', -(2n ** 31n), 2n ** 31n - 1n],
    ['u32', 0n, 2n ** 32n - 1n],
    ['i64', -(2n ** 63n), 2n ** 63n - 1n],
    ['u64', 0n, 2n ** 64n - 1n],
  ] as const)('%s accepts the integers from %d to %d', (dtype, least, most) => {
    using buffer = DeviceBuffer.zeros<DType>(device, dtype, 1)
    const value = (n: bigint): never => (dtype.endsWith('64') ? n : Number(n)) as never
    for (const good of [least, most]) {
      expect(buffer.fillSync(value(good)).toArraySync()[0]).toBe(value(good))
    }
    for (const bad of [least - 1n, most + 1n]) {
      expect(() => buffer.fillSync(value(bad))).toThrow(RangeError)
      expect(() => buffer.fillSync(value(bad))).toThrow(`(${dtype}), not ${bad}`.slice(dtype.endsWith('64') ? 6 : 0))
    }
    expect(buffer.toArraySync()[0]).toBe(value(most))
  })

  test('accept complex numbers and structs', () => {
    using complex = DeviceBuffer.allocate(device, 'complex64', 3)
    expect(complex.fillSync([1, -2]).toArraySync()).toEqual(Float32Array.of(1, -2, 1, -2, 1, -2))
    const [value] = randomParticles(1)
    using structs = DeviceBuffer.zeros(device, Particle, 5)
    if (value !== undefined) expect(structs.fillSync(value).toArraySync()).toEqual(new Array(5).fill(value))
  })

  test.each([
    ['f32', 1n, TypeError, 'value must be a number (f32), not 1n'],
    ['u8', 256, RangeError, 'value must be an integer from 0 to 255 (u8), not 256'],
    ['u8', Number.NaN, TypeError, 'value must be an integer from 0 to 255 (u8), not NaN'],
    ['i32', 0.5, TypeError, 'value must be an integer from -2147483648 to 2147483647 (i32), not 0.5'],
    ['u64', -1n, RangeError, 'value must be a bigint or a safe integer that fits u64, not -1n'],
    ['i64', 2 ** 53, RangeError, 'value must be a bigint or a safe integer that fits i64, not 9007199254740992'],
    ['bool', 1, TypeError, 'value must be a boolean (bool), not 1'],
    ['complex64', [1], TypeError, 'value must be [real, imaginary] (complex64), not an object of class Array'],
  ] as const)('%s refuses %o', (dtype, value, type, message) => {
    using buffer = DeviceBuffer.zeros(device, dtype, 2)
    for (const name of ['fill', 'fillSync'] as const) {
      const fill = (): unknown => buffer[name](value as never)
      expect(fill).toThrow(type)
      expect(fill).toThrow(`DeviceBuffer.${name}: ${message}`)
    }
    expect(bytes(buffer.reinterpret('u8').toArraySync())).toEqual(new Uint8Array(buffer.byteLength))
  })
})

test('DeviceBuffer.fill writes structs of any size, in words or bytes', () => {
  for (const size of [3, 5, 6, 12, 16, 20]) {
    const Bytes = defineStruct(`Bytes${size}`, { bytes: ['u8', size] })
    const bytes = Array.from({ length: size }, (_, index) => index + 1)
    using buffer = DeviceBuffer.zeros(device, 'u8', 5 * size)
    buffer.reinterpret(Bytes).slice(1, -1).fillSync({ bytes })
    const none = new Array<number>(size).fill(0)
    expect([...buffer.toArraySync()]).toEqual([none, bytes, bytes, bytes, none].flat())
  }
})

test('DeviceBuffer.fill converts a repeated number by the type of each buffer, and keeps the sign of zero', () => {
  using floats = DeviceBuffer.allocate(device, 'f32', 2)
  using halves = DeviceBuffer.allocate(device, 'f16', 2)
  using integers = DeviceBuffer.allocate(device, 'i32', 2)
  using doubles = DeviceBuffer.allocate(device, 'f64', 1)
  using large = DeviceBuffer.allocate(device, 'i64', 1)
  const bitsOf = (buffer: { toArraySync(): ArrayBufferView }): string =>
    Buffer.from(buffer.toArraySync().buffer as ArrayBuffer).toString('hex')
  for (const _ of [1, 2]) {
    expect(bitsOf(floats.fillSync(3))).toBe('0000404000004040')
    expect(bitsOf(floats.fillSync(3))).toBe('0000404000004040')
    expect(bitsOf(halves.fillSync(3))).toBe('00420042')
    expect(bitsOf(integers.fillSync(3))).toBe('0300000003000000')
    expect(() => integers.fillSync(3.5)).toThrow(TypeError)
    expect(bitsOf(integers.fillSync(3))).toBe('0300000003000000')
    expect(bitsOf(large.fillSync(5))).toBe('0500000000000000')
    expect(bitsOf(large.fillSync(7n))).toBe('0700000000000000')
    expect(bitsOf(large.fillSync(5))).toBe('0500000000000000')
    expect(bitsOf(doubles.fillSync(5))).toBe('0000000000001440')
    expect(bitsOf(large.fillSync(5))).toBe('0500000000000000')
    expect(bitsOf(floats.fillSync(0))).toBe('0000000000000000')
    expect(bitsOf(floats.fillSync(-0))).toBe('0000008000000080')
    expect(bitsOf(floats.fillSync(0))).toBe('0000000000000000')
  }
})

test('DeviceBuffer.fill refuses unknown options, with or instead of a stream', () => {
  using buffer = DeviceBuffer.allocate(device, 'f32', 2)
  using stream = device.createStream()
  class Options {
    stream = stream
  }
  const getter = {
    get stream(): never {
      throw new Error('from the getter')
    },
  }
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const key = "DeviceBuffer.fill: options must have only the keys stream, not 'streams'"
  const wrong: readonly [unknown, string][] = [
    [{ streams: stream }, key],
    [{ stream, streams: stream }, key],
    [{ stream: undefined, streams: stream }, key],
    [new Options(), 'DeviceBuffer.fill: options must be a plain object'],
    [stream, 'DeviceBuffer.fill: options must be a plain object'],
    [null, 'DeviceBuffer.fill: options must be a plain object'],
    [5, 'DeviceBuffer.fill: options must be a plain object'],
    [proxy, 'DeviceBuffer.fill: options must be a plain object'],
    [getter, 'from the getter'],
  ]
  for (const [options, message] of wrong) expect(() => buffer.fill(1, options as never)).toThrow(message)
  for (const options of [{}, { stream }, { stream: undefined }, Object.assign(Object.create(null), { stream })]) {
    expect(buffer.fill(1, options)).toBe(buffer)
  }
})

test('DeviceBuffer.fill writes a complete struct, even if its getters call fill meanwhile', () => {
  using structs = DeviceBuffer.zeros(device, Particle, 2)
  using other = DeviceBuffer.zeros(device, 'complex128', 1)
  const value = {
    id: 7,
    get weight() {
      structs.fill({ id: 1, weight: 1, tag: 1 })
      other.fill([3, 4])
      return 2
    },
    tag: 5,
  }
  expect(structs.fillSync(value).toArraySync()).toEqual(new Array(2).fill({ id: 7, weight: 2, tag: 5 }))
  expect(other.toArraySync()).toEqual(Float64Array.of(3, 4))
})

test('DeviceBuffer.fill names a wrong field of a struct', () => {
  using buffer = DeviceBuffer.zeros(device, Particle, 2)
  expect(() => buffer.fill({ id: -1, weight: 0, tag: 0 })).toThrow(
    new RangeError('DeviceBuffer.fill: value: Particle.id must be an integer from 0 to 4294967295, not -1'),
  )
})
