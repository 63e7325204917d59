import { constants } from 'node:buffer'
import { inspect } from 'node:util'
import { DisposedError, type DType, dtypeInfo, memoryProtocol } from '@shoal/types'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import {
  bytes,
  falseLengths,
  Particle,
  randomArray,
  randomFloats,
  randomInteger,
  randomParticles,
} from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, finishReleasesSync, PinnedBuffer, pointerInfo, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const stream = Stream.create(device)

afterAll(() => stream.dispose())
beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

/** Whether CUDA knows page-locked memory at an address. */
const isPinned = (address: bigint): boolean => pointerInfo(device, address).type === 'host'

describe('PinnedBuffer.allocate', () => {
  test('allocates page-locked host memory as an array, until dispose()', () => {
    const length = randomInteger(1, 5000) * 2 + 1
    for (const owner of [second, second.primaryContext]) {
      const buffer = PinnedBuffer.allocate(owner, 'f64', length)
      const { address, array } = buffer
      expect([buffer.dtype, buffer.length, buffer.byteLength]).toEqual(['f64', length, length * 8])
      expect([buffer.device, buffer.context]).toEqual([second, second.primaryContext])
      expect([array.constructor, array.length, array.buffer === buffer.buffer]).toEqual([Float64Array, length, true])
      expect([isPinned(address), second.used]).toEqual([true, 0])
      buffer.disposeSync()
      expect([isPinned(address), array.length, array.buffer.byteLength]).toEqual([false, 0, 0])
    }
  })

  test('shares its memory with the array in both directions', async () => {
    const values = randomFloats(1001)
    using buffer = PinnedBuffer.allocate(device, 'f32', values.length)
    using target = DeviceBuffer.allocate(device, 'f32', values.length)
    buffer.array.set(values)
    expect(buffer.array).toBe(buffer.array)
    expect(target.copyFrom(buffer.array, { stream }).toArraySync({ stream })).toEqual(values)
    await target.fill(3, { stream }).copyTo(buffer, { stream })
    expect(buffer.array).toEqual(new Float32Array(1001).fill(3))
  })

  test('allocates nothing for zero elements', () => {
    using empty = PinnedBuffer.allocate(device, 'f32', 0)
    expect([empty.length, empty.byteLength, empty.address, empty.array]).toEqual([0, 0, 0n, new Float32Array(0)])
    expect(empty.buffer.byteLength).toBe(0)
    using target = DeviceBuffer.allocate(device, 'f32', 0)
    expect(target.copyFrom(empty).toArraySync()).toEqual(new Float32Array(0))
  })

  test('exposes structs as bytes on the host', () => {
    const values = randomParticles(3)
    using buffer = PinnedBuffer.allocate(device, Particle, 3)
    expect([buffer.array.constructor, buffer.array.length]).toEqual([Uint8Array, 72])
    buffer.array.set(Particle.encodeArray(values))
    using target = DeviceBuffer.allocate(device, Particle, 3)
    expect(target.copyFromSync(buffer).toArraySync()).toEqual(values)
  })

  test('mapped memory has an address for kernels; unmapped memory has none', () => {
    using mapped = PinnedBuffer.allocate(device, 'u32', 9, { mapped: true, portable: false, writeCombined: true })
    expect(pointerInfo(device, mapped.deviceAddress)).toMatchObject({
      type: 'host',
      devicePointer: mapped.deviceAddress,
    })
    using plain = PinnedBuffer.allocate(device, 'u32', 9)
    expect(() => plain.deviceAddress).toThrow(
      new TypeError('PinnedBuffer.deviceAddress: the memory must be mapped; allocate it with { mapped: true }'),
    )
  })

  const range = 'an integer from 0 to 2251799813685247'
  const keys = 'portable, mapped, writeCombined'
  test.each([
    [5, 'f32', 1, {}, TypeError, 'owner must be a Device or a Context, not 5'],
    [device, 'f33', 1, {}, TypeError, 'dtype must be one of i8, u8'],
    [device, 'f32', '1', {}, TypeError, `length must be ${range}, not '1'`],
    [device, 'f32', 0.5, {}, TypeError, `length must be ${range}, not 0.5`],
    [device, 'f32', Number.NaN, {}, TypeError, `length must be ${range}, not NaN`],
    [device, 'f32', 1n, {}, TypeError, `length must be ${range}, not 1n`],
    [device, 'f32', -1, {}, RangeError, `length must be ${range}, not -1`],
    [device, 'f32', 2 ** 53, {}, RangeError, `length must be ${range}, not 9007199254740992`],
    [device, 'f32', 1, { mapped: 1 }, TypeError, 'mapped must be a boolean, not 1'],
    [device, 'f32', 1, { portable: 'yes' }, TypeError, "portable must be a boolean, not 'yes'"],
    [device, 'f32', 1, { writeCombined: null }, TypeError, 'writeCombined must be a boolean, not null'],
    [device, 'f32', 1, { map: true }, TypeError, `options must have only the keys ${keys}, not 'map'`],
    [device, 'f32', 1, stream, TypeError, `options must be a plain object such as { ${keys} }, not an object of class`],
    [device, 'f32', 1, null, TypeError, `options must be a plain object such as { ${keys} }, not null`],
  ] as const)('refuses %o, %o, %o, %o', (owner, dtype, length, options, type, message) => {
    const make = (): unknown => PinnedBuffer.allocate(owner as never, dtype as never, length as never, options as never)
    expect(make).toThrow(type)
    expect(make).toThrow(`PinnedBuffer.allocate: ${message}`)
  })

  test('refuses a length beyond the ArrayBuffer limit; CUDA refuses more than the available memory', () => {
    const length = 2 ** 51 - 1
    const make = (): unknown => PinnedBuffer.allocate(device, 'f32', length)
    // In Node.js 22 and later an ArrayBuffer can have up to MAX_LENGTH bytes.
    if (length * 4 <= constants.MAX_LENGTH) expect(make).toThrow(expect.objectContaining({ status: 2 }))
    else expect(make).toThrow(/^PinnedBuffer\.allocate: length must be of at most /)
  })

  test('rethrows an error thrown by a getter of the options', () => {
    const thrown = new Error('from a getter')
    for (const make of [
      (options: object) => PinnedBuffer.allocate(device, 'f32', 1, options),
      (options: object) => PinnedBuffer.from(device, new Float32Array(1), options),
    ]) {
      const options = {
        get mapped(): boolean {
          throw thrown
        },
      }
      expect(() => make(options)).toThrow(thrown)
    }
  })
})

describe('PinnedBuffer.from', () => {
  test('copies random bits of every dtype', () => {
    for (const dtype of ['i8', 'u16', 'f16', 'f8e4m3', 'i64', 'f64', 'complex128', 'bool'] as const satisfies DType[]) {
      const array = randomArray(dtype, randomInteger(1, 200) * 2 + 1)
      using buffer = PinnedBuffer.from(second, array as never, { dtype })
      expect([buffer.dtype, bytes(buffer.array)]).toEqual([dtype, bytes(array)])
      expect(buffer.byteLength).toBe(buffer.length * dtypeInfo(dtype).bytes)
      bytes(array).fill(0)
      expect(bytes(buffer.array)).not.toEqual(bytes(array))
    }
  })

  test('uses the type and the range of the array, and accepts the options of allocate()', () => {
    const values = randomFloats(50)
    using buffer = PinnedBuffer.from(device, values.subarray(3, 40), { mapped: true })
    expect([buffer.dtype, buffer.array]).toEqual(['f32', values.slice(3, 40)])
    expect(buffer.deviceAddress).toBeTypeOf('bigint')
  })

  test('accepts structs as objects or bytes, and an empty list', () => {
    const values = randomParticles(4)
    for (const given of [values, Particle.encodeArray(values)]) {
      using buffer = PinnedBuffer.from(device, given, { dtype: Particle })
      expect([buffer.length, Particle.decode(buffer.array)]).toEqual([4, values])
    }
    using empty = PinnedBuffer.from(device, new Uint16Array(0))
    expect([empty.dtype, empty.length]).toEqual(['u16', 0])
  })

  test('reads no more than the real length of an array with a forged length', () => {
    const values = randomFloats(9)
    for (const liar of Object.values(falseLengths(values))) {
      using buffer = PinnedBuffer.from(device, liar)
      expect([buffer.length, buffer.array]).toEqual([9, values])
    }
  })

  test('refuses other values than an array of the dtype', () => {
    for (const [array, options, message] of [
      [[1], {}, 'array must be a typed array, not an object of class Array'],
      [
        new Proxy(new Float32Array(3), {}),
        {},
        'array must be a typed array, not a proxy around an object of class Float32Array',
      ],
      [new Float32Array(3), { dtype: 'complex64' }, 'array must be of whole elements of complex64 (8 bytes each)'],
      [new Int32Array(3), { dtype: 'f32' }, 'array must be a Float32Array to hold f32, not an object of class Int32'],
      [new Int32Array(3), { dtype: 'f33' }, 'dtype must be one of i8, u8'],
      [
        new Int32Array(3),
        { type: 'i32' },
        'options must have only the keys portable, mapped, writeCombined, dtype, no',
      ],
      [[{ id: -1, weight: 0, tag: 0 }], { dtype: Particle }, 'array: Particle.id must be an integer from 0 to'],
    ] as const) {
      expect(() => PinnedBuffer.from(device, array as never, options as never)).toThrow(`PinnedBuffer.from: ${message}`)
    }
    expect(() => PinnedBuffer.from(0 as never, new Uint8Array(1))).toThrow('owner must be a Device or a Context, not 0')
  })
})

describe('disposal of a PinnedBuffer', () => {
  test('using and await using free it', async () => {
    const addresses: bigint[] = []
    {
      using a = PinnedBuffer.allocate(device, 'u8', 7)
      await using b = PinnedBuffer.allocate(device, 'u8', 7)
      addresses.push(a.address, b.address)
      expect(addresses.map(isPinned)).toEqual([true, true])
    }
    expect(isPinned(addresses[1] as bigint)).toBe(false)
    finishReleasesSync()
    expect(isPinned(addresses[0] as bigint)).toBe(false)
  })

  test('waits until the copies that use it complete', async () => {
    using target = DeviceBuffer.allocate(device, 'u8', 1 << 20)
    const buffer = PinnedBuffer.from(device, randomArray('u8', 1 << 20) as Uint8Array<ArrayBuffer>)
    const expected = buffer.array.slice()
    target.copyFrom(buffer, { stream })
    buffer.dispose()
    expect(await target.toArray({ stream })).toEqual(expected)
  })

  test('every later use throws DisposedError; a second dispose() does nothing', () => {
    using target = DeviceBuffer.allocate(device, 'f32', 2)
    const buffer = PinnedBuffer.allocate(device, 'f32', 2, { mapped: true })
    buffer.dispose()
    buffer.dispose()
    for (const use of [
      () => buffer.array,
      () => buffer.buffer,
      () => buffer.address,
      () => buffer.deviceAddress,
      () => buffer[memoryProtocol],
      () => target.copyFrom(buffer),
      () => target.copyToSync(buffer),
    ]) {
      expect(use).toThrow(new DisposedError('PinnedBuffer'))
    }
    expect([buffer.disposed, buffer.length, buffer.byteLength, buffer.dtype]).toEqual([true, 2, 8, 'f32'])
  })
})

test('PinnedBuffer answers the memory protocol as host memory', () => {
  using buffer = PinnedBuffer.allocate(second, 'f32', 3)
  const { address } = buffer
  const context = second.primaryContext.handle
  const common = { version: 0, address, byteLength: 12, deviceOrdinal: -1, context }
  expect(buffer[memoryProtocol]).toEqual({ ...common, dtype: 'f32', length: 3 })
  using structs = PinnedBuffer.allocate(device, Particle, 1)
  expect(Object.keys(structs[memoryProtocol])).not.toContain('dtype')
})

test('PinnedBuffer is printed in one line, also after dispose()', () => {
  const buffer = PinnedBuffer.allocate(device, Particle, 5)
  expect([inspect(buffer), String(buffer)]).toEqual([
    "PinnedBuffer { dtype: 'Particle', length: 5 }",
    '[object PinnedBuffer]',
  ])
  buffer.dispose()
  expect(inspect(buffer)).toBe("PinnedBuffer { dtype: 'Particle', length: 5, disposed: true }")
})
