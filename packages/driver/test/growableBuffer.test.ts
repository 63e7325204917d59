import { inspect } from 'node:util'
import { DisposedError, memoryProtocol, StatusError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { Particle, randomFloats, randomInteger, randomParticles } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { allocationGranularity, DeviceBuffer, GrowableBuffer } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const unit = allocationGranularity(device)

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

describe('GrowableBuffer.reserve', () => {
  test('reserves addresses but no memory, for a device or its context', () => {
    for (const owner of [second, second.primaryContext]) {
      using buffer = GrowableBuffer.reserve(owner, 'f64', { maximumLength: unit })
      expect([buffer.dtype, buffer.device, buffer.context]).toEqual(['f64', second, second.primaryContext])
      expect([buffer.length, buffer.byteLength, buffer.capacity, buffer.maximumLength]).toEqual([0, 0, 0, unit])
      expect([second.used, buffer.address > 0n]).toEqual([0, true])
      expect(buffer.buffer.toArraySync()).toEqual(new Float64Array(0))
    }
  })

  test('allocates the first elements in whole steps', () => {
    using buffer = GrowableBuffer.reserve(device, 'f32', { maximumLength: unit, length: 3, stepBytes: unit + 1 })
    expect([buffer.length, buffer.byteLength, buffer.capacity]).toEqual([3, 12, unit / 2])
    expect(device.used).toBe(unit * 2)
  })

  test('frees everything if the first elements cannot be allocated', () => {
    const maximumLength = 2 ** 40
    expect(() => GrowableBuffer.reserve(device, 'u8', { maximumLength, length: maximumLength })).toThrow(StatusError)
  })

  test('gives other devices access', () => {
    using buffer = GrowableBuffer.reserve(device, 'f32', { maximumLength: 9, length: 9, sharedWith: [second] })
    using copy = DeviceBuffer.allocate(second, 'f32', 9)
    const values = randomFloats(9)
    buffer.buffer.copyFromSync(values)
    expect(copy.copyFromSync(DeviceBuffer.view(second, buffer, 'f32', { length: 9 })).toArraySync()).toEqual(values)
  })

  const keys = 'maximumLength, length, stepBytes, sharedWith, handleTypes, gpuDirectRdma, compressible'
  const most = `maximumLength must be an integer from 1 to ${2 ** 45}`
  const length = 'length must be an integer from 0 to 10'
  const step = 'stepBytes must be an integer from 1 to 2^53 - 1'
  const places = 'sharedWith must be a list of devices'
  const base = { maximumLength: 10 }
  test.each([
    [5, base, TypeError, 'owner must be a Device or a Context, not 5'],
    [
      device,
      undefined,
      TypeError,
      'options must be a plain object such as { maximumLength, length, stepBytes }, not u',
    ],
    [
      device,
      new Map(),
      TypeError,
      'options must be a plain object such as { maximumLength, length, stepBytes }, not an',
    ],
    [device, {}, TypeError, `${most}, not undefined`],
    [device, { maximumLength: 0 }, RangeError, `${most}, not 0`],
    [device, { maximumLength: 2 ** 46 }, RangeError, `${most}, not ${2 ** 46}`],
    [device, { maximumLength: 1n }, TypeError, `${most}, not 1n`],
    [device, { ...base, length: -1 }, RangeError, `${length}, not -1`],
    [device, { ...base, length: 11 }, RangeError, `${length}, not 11`],
    [device, { ...base, length: Number.NaN }, TypeError, `${length}, not NaN`],
    [device, { ...base, length: 0.5 }, TypeError, `${length}, not 0.5`],
    [device, { ...base, stepBytes: 0 }, RangeError, `${step}, not 0`],
    [device, { ...base, stepBytes: '1' }, TypeError, `${step}, not '1'`],
    [device, { ...base, sharedWith: device }, TypeError, `${places}, not an object of class TestDevice`],
    [
      device,
      { ...base, sharedWith: [5] },
      TypeError,
      "sharedWith[0] must be a Device, a Context, 'host' or { hostNode }, not 5",
    ],
    [device, { ...base, compressible: 1 }, TypeError, 'compressible must be a boolean, not 1'],
    [device, { ...base, handleTypes: 'fd' }, TypeError, "handleTypes must be 'posix-fd', 'win32', 'win32-kmt' or 'fab"],
    [device, { ...base, maximum: 1 }, TypeError, `options must have only the keys ${keys}, not 'maximum'`],
  ] as const)('refuses %o, %o', (owner, options, type, message) => {
    const make = (): unknown => GrowableBuffer.reserve(owner as never, 'f32', options as never)
    expect(make).toThrow(type)
    expect(make).toThrow(`GrowableBuffer.reserve: ${message}`)
  })

  test('refuses a wrong element type', () => {
    expect(() => GrowableBuffer.reserve(device, 'f33' as never, base)).toThrow(
      /^GrowableBuffer.reserve: dtype must be on/,
    )
  })

  test('rethrows an error thrown by a getter of the options', () => {
    const thrown = new Error('from a getter')
    const options = {
      ...base,
      get length(): number {
        throw thrown
      },
    }
    expect(() => GrowableBuffer.reserve(device, 'f32', options)).toThrow(thrown)
  })
})

describe('GrowableBuffer.resize', () => {
  test('grows and shrinks in place, and keeps address and values', () => {
    using buffer = GrowableBuffer.reserve(device, 'f32', { maximumLength: unit * 4, stepBytes: unit })
    const { address } = buffer
    const values = randomFloats(randomInteger(1, unit / 8) * 2 + 1)
    expect(buffer.resize(values.length)).toBe(buffer)
    buffer.buffer.copyFromSync(values)
    buffer.resize(unit + 1)
    expect([buffer.address, buffer.length, buffer.capacity >= unit + 1]).toEqual([address, unit + 1, true])
    expect(buffer.buffer.slice(0, values.length).toArraySync()).toEqual(values)
    buffer.buffer.slice(-1).fillSync(7)
    const { used } = device
    buffer.resize(3)
    expect([device.used < used, buffer.address, buffer.buffer.toArraySync()]).toEqual([
      true,
      address,
      values.slice(0, 3),
    ])
    buffer.resize(0)
    expect([buffer.length, buffer.capacity, device.used]).toEqual([0, 0, 0])
  })

  test('counts structs whose size does not divide the step', () => {
    using buffer = GrowableBuffer.reserve(device, Particle, { maximumLength: 200_000, length: 5 })
    expect([buffer.byteLength, buffer.length, Number.isInteger(buffer.maximumLength)]).toEqual([120, 5, true])
    const values = randomParticles(5)
    buffer.buffer.copyFromSync(values)
    expect(buffer.resize(100_000).buffer.slice(0, 5).toArraySync()).toEqual(values)
  })

  test('makes a view taken while the buffer was longer throw on use', () => {
    using buffer = GrowableBuffer.reserve(device, 'u8', { maximumLength: unit, length: 100 })
    const { buffer: long } = buffer
    const start = long.slice(0, 10)
    buffer.resize(50)
    expect(() => long.fill(0)).toThrow('the view ends at byte 100 of its memory, which has only 50 bytes now')
    expect([start.fill(0).length, buffer.buffer.length]).toEqual([10, 50])
    expect(buffer.resize(50).buffer).toBe(buffer.buffer)
    buffer.resize(100)
    expect(long.fillSync(3).toArraySync()).toEqual(new Uint8Array(100).fill(3))
  })

  test.each([
    ['f32', 10],
    ['u8', unit + 1],
    [Particle, 3],
  ] as const)('refuses more than maximumLength: %s, %i', (dtype, maximumLength) => {
    using buffer = GrowableBuffer.reserve(device, dtype, { maximumLength })
    expect(buffer.resize(maximumLength).length).toBe(maximumLength)
    expect(buffer.maximumLength).toBe(maximumLength)
    const words = `GrowableBuffer.resize: length must be an integer from 0 to ${maximumLength}`
    // Memory is allocated in larger pieces.
    expect(buffer.capacity).toBeGreaterThan(maximumLength)
    expect(() => buffer.resize(maximumLength + 1)).toThrow(new RangeError(`${words}, not ${maximumLength + 1}`))
    expect(() => buffer.resize(buffer.capacity)).toThrow(RangeError)
  })

  test('refuses a length out of range or not an integer, and changes nothing', () => {
    using buffer = GrowableBuffer.reserve(device, 'f32', { maximumLength: unit / 4, length: 5 })
    const range = `GrowableBuffer.resize: length must be an integer from 0 to ${unit / 4}`
    for (const [length, type] of [
      [-1, RangeError],
      [unit / 4 + 1, RangeError],
      [Number.NaN, TypeError],
      [1.5, TypeError],
    ] as const) {
      expect(() => buffer.resize(length)).toThrow(new type(`${range}, not ${length}`))
    }
    expect(() => buffer.resize(3n as never)).toThrow(new TypeError(`${range}, not 3n`))
    expect(() => buffer.resize('3' as never)).toThrow(new TypeError(`${range}, not '3'`))
    expect(buffer.length).toBe(5)
  })

  test('changes nothing if memory runs out', () => {
    using buffer = GrowableBuffer.reserve(device, 'u8', { maximumLength: 2 ** 40, length: 5 })
    const values = Uint8Array.of(1, 2, 3, 4, 5)
    buffer.buffer.copyFromSync(values)
    expect(() => buffer.resize(2 ** 40)).toThrow(StatusError)
    expect([buffer.length, buffer.buffer.toArraySync()]).toEqual([5, values])
  })
})

describe('disposal of a GrowableBuffer', () => {
  test('using and await using free all memory', async () => {
    {
      using a = GrowableBuffer.reserve(device, 'u8', { maximumLength: unit, length: 7 })
      await using b = GrowableBuffer.reserve(second, 'u8', { maximumLength: unit, length: 7 })
      expect([a.disposed, b.disposed, device.used > 0, second.used > 0]).toEqual([false, false, true, true])
    }
    expect([device.used, second.used]).toEqual([0, 0])
  })

  test('every later use throws DisposedError, of its views too; a second dispose() does nothing', async () => {
    const buffer = GrowableBuffer.reserve(device, 'f32', { maximumLength: 9, length: 2 })
    const view = buffer.buffer
    buffer.dispose()
    buffer.dispose()
    await buffer[Symbol.asyncDispose]()
    for (const use of [
      () => buffer.address,
      () => buffer.buffer,
      () => buffer.resize(1),
      () => buffer[memoryProtocol],
    ]) {
      expect(use).toThrow(new DisposedError('GrowableBuffer'))
    }
    expect(() => view.toArraySync()).toThrow(DisposedError)
    expect([buffer.disposed, buffer.capacity, buffer.dtype]).toEqual([true, 0, 'f32'])
  })
})

test('GrowableBuffer answers the memory protocol with its current elements', () => {
  using buffer = GrowableBuffer.reserve(second, 'f32', { maximumLength: 9, length: 2 })
  const { address } = buffer
  const common = { version: 0, address, deviceOrdinal: 1, context: second.primaryContext.handle, dtype: 'f32' }
  expect(buffer[memoryProtocol]).toEqual({ ...common, byteLength: 8, length: 2 })
  buffer.resize(5)
  expect(buffer[memoryProtocol]).toEqual({ ...common, byteLength: 20, length: 5 })
})

test('GrowableBuffer is printed in one line, also after dispose()', () => {
  const buffer = GrowableBuffer.reserve(second, Particle, { maximumLength: 9, length: 2 })
  expect([inspect(buffer), String(buffer)]).toEqual([
    "GrowableBuffer { dtype: 'Particle', length: 2, device: 1 }",
    '[object GrowableBuffer]',
  ])
  buffer.dispose()
  expect(inspect(buffer)).toBe("GrowableBuffer { dtype: 'Particle', length: 2, device: 1, disposed: true }")
})
