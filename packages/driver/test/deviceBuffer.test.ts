import { inspect } from 'node:util'
import { type DType, dtypeInfo, memoryProtocol, StatusError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
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
const { DeviceBuffer, ManagedBuffer, PinnedBuffer, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const dtypes = 'i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f8e4m3 f8e5m2 f32 f64 complex64 complex128 bool'
  .split(' ')
  .map((name) => name as DType)
const aDtype = `dtype must be one of ${dtypes.join(', ')}, or a type of defineStruct, defineArray or defineTuple`

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

describe('DeviceBuffer.allocate and zeros', () => {
  test('allocate memory for a Device or its Context, until dispose()', () => {
    const length = randomInteger(1, 5000) * 2 + 1
    for (const owner of [second, second.primaryContext]) {
      for (const make of [DeviceBuffer.allocate, DeviceBuffer.zeros] as const) {
        const buffer = make(owner, 'f64', length)
        expect([buffer.dtype, buffer.length, buffer.byteLength]).toEqual(['f64', length, length * 8])
        expect([buffer.device, buffer.context]).toEqual([second, second.primaryContext])
        expect([second.used > 0, device.used]).toEqual([true, 0])
        buffer.dispose()
        expect(second.used).toBe(0)
      }
    }
  })

  test('zeros() clears all bits, whatever the memory held before', () => {
    for (const length of [1, 3, 1000, 70_001]) {
      DeviceBuffer.from(device, randomArray('u8', length * 4)).dispose()
      using zeros = DeviceBuffer.zeros(device, 'f32', length)
      expect(zeros.toArraySync()).toEqual(new Float32Array(length))
    }
  })

  test('take no memory for zero elements, and such buffers work everywhere', async () => {
    for (const make of [DeviceBuffer.allocate, DeviceBuffer.zeros] as const) {
      using empty = make(device, 'f32', 0)
      expect([empty.length, empty.byteLength, empty.address, device.used]).toEqual([0, 0, 0n, 0])
      empty.fill(1).copyFrom(new Float32Array(0)).copyFromSync(empty)
      expect([await empty.toArray(), empty.toArraySync()]).toEqual([new Float32Array(0), new Float32Array(0)])
      expect([empty.slice().length, empty.reinterpret('f64').length]).toEqual([0, 0])
    }
    using none = DeviceBuffer.from(device, [], { dtype: Particle })
    expect(none.toArraySync()).toEqual([])
  })

  const range = 'an integer from 0 to 2251799813685247'
  test.each([
    [0, 'f32', 1, TypeError, 'owner must be a Device or a Context, not 0'],
    [undefined, 'f32', 1, TypeError, 'owner must be a Device or a Context, not undefined'],
    [device, 'f33', 1, TypeError, `${aDtype}, not 'f33'`],
    [device, {}, 1, TypeError, `${aDtype}, not a plain object`],
    [device, 'f32', '3', TypeError, `length must be ${range}, not '3'`],
    [device, 'f32', Number.NaN, TypeError, `length must be ${range}, not NaN`],
    [device, 'f32', 0.5, TypeError, `length must be ${range}, not 0.5`],
    [device, 'f32', 5n, TypeError, `length must be ${range}, not 5n`],
    [device, 'f32', undefined, TypeError, `length must be ${range}, not undefined`],
    [device, 'f32', -1, RangeError, `length must be ${range}, not -1`],
    [device, 'f32', 2 ** 53, RangeError, `length must be ${range}, not 9007199254740992`],
    [device, 'f32', Number.POSITIVE_INFINITY, RangeError, `length must be ${range}, not Infinity`],
  ] as const)('refuse %o, %o, %o', (owner, dtype, length, type, message) => {
    for (const name of ['allocate', 'zeros'] as const) {
      const make = (): unknown => DeviceBuffer[name](owner as never, dtype as never, length as never)
      expect(make).toThrow(new type(`DeviceBuffer.${name}: ${message}`))
    }
  })

  test('throw an error that names the function if memory runs out', () => {
    expect(() => DeviceBuffer.allocate(device, 'u8', 2 ** 50)).toThrow(StatusError)
    expect(() => DeviceBuffer.allocate(device, 'u8', 2 ** 50)).toThrow('cuMemAlloc')
  })
})

describe('DeviceBuffer.from', () => {
  test.each(dtypes)('copies random bits of %s in both directions', async (dtype) => {
    const array = randomArray(dtype, randomInteger(1, 300) * 2 + 1)
    using buffer = DeviceBuffer.from(device, array as never, { dtype })
    expect([buffer.dtype, buffer.byteLength]).toEqual([dtype, array.byteLength])
    expect(buffer.byteLength).toBe(buffer.length * dtypeInfo(dtype).bytes)
    const read = [buffer.toArraySync(), await buffer.toArray()] as unknown as ArrayBufferView[]
    for (const back of read) expect(bytes(back)).toEqual(bytes(array))
    expect(read[0]?.constructor).toBe(dtypeInfo(dtype).typedArray)
  })

  test('uses the type of the array by default', () => {
    for (const array of [new Int8Array(3), new BigUint64Array(3), new Float64Array(3), new Uint16Array(3)] as const) {
      using buffer = DeviceBuffer.from(device, array)
      expect(buffer.toArraySync()).toEqual(array)
    }
    using clamped = DeviceBuffer.from(device, Uint8ClampedArray.of(7, 8, 9) as never)
    expect([clamped.dtype as string, clamped.toArraySync()]).toEqual(['u8', Uint8Array.of(7, 8, 9)])
  })

  test('uses exactly the range of the array within its ArrayBuffer', () => {
    const whole = randomFloats(100)
    const [start, end] = [randomInteger(1, 40), randomInteger(41, 99)]
    using buffer = DeviceBuffer.from(device, whole.subarray(start, end))
    expect(buffer.toArraySync()).toEqual(whole.slice(start, end))
  })

  test('accepts structs as objects or as bytes', async () => {
    const values = randomParticles(randomInteger(1, 50))
    using buffer = DeviceBuffer.from(device, values, { dtype: Particle })
    expect([buffer.length, buffer.byteLength]).toEqual([values.length, values.length * 24])
    expect([buffer.toArraySync(), await buffer.toArray()]).toEqual([values, values])
    using again = DeviceBuffer.from(device, Particle.encodeArray(values), { dtype: Particle })
    expect(again.toArraySync()).toEqual(values)
  })

  const toHold = 'must be a Float32Array to hold f32, not an object of class'
  test.each([
    [[1, 2], {}, TypeError, 'array must be a typed array, not an object of class Array'],
    [null, {}, TypeError, 'array must be a typed array, not null'],
    [new DataView(new ArrayBuffer(8)), {}, TypeError, 'array must be a typed array, not an object of class DataView'],
    [
      new Proxy(new Float32Array(3), {}),
      {},
      TypeError,
      'array must be a typed array, not a proxy around an object of class',
    ],
    [[1, 2], { dtype: 'f32' }, TypeError, `array ${toHold} Array`],
    [new Uint32Array(2), { dtype: 'f32' }, TypeError, `array ${toHold} Uint32Array`],
    [new Float32Array(3), { dtype: 'complex64' }, RangeError, 'array must be of whole elements of complex64 (8 bytes'],
    [new Uint8Array(25), { dtype: Particle }, RangeError, 'array must be of whole elements of Particle (24 bytes'],
    [new Float32Array(1), { dtype: 'f33' }, TypeError, `${aDtype}, not 'f33'`],
    [new Float32Array(1), { type: 'f32' }, TypeError, "options must have only the keys dtype, not 'type'"],
    [new Float32Array(1), null, TypeError, 'options must be a plain object such as { dtype }, not null'],
    [
      new Float32Array(1),
      device,
      TypeError,
      'options must be a plain object such as { dtype }, not an object of class',
    ],
    [[{ id: -1, weight: 0, tag: 0 }], { dtype: Particle }, RangeError, 'array: Particle.id must be an integer from 0'],
    [[{ id: 1, weight: 0 }], { dtype: Particle }, TypeError, 'array: Particle.tag is missing'],
  ] as const)('refuses an array or options, case %#', (array, options, type, message) => {
    const make = (): unknown => DeviceBuffer.from(device, array as never, options as never)
    expect(make).toThrow(type)
    expect(make).toThrow(`DeviceBuffer.from: ${message}`)
    expect(device.used).toBe(0)
  })

  test('rethrows an error thrown by a getter of the options', () => {
    const thrown = new Error('from a getter')
    const options = {
      get dtype(): 'f32' {
        throw thrown
      },
    }
    expect(() => DeviceBuffer.from(device, new Float32Array(1), options)).toThrow(thrown)
  })
})

describe('DeviceBuffer.copyFrom and copyFromSync', () => {
  test('accept arrays, page-locked and managed memory and memory of either device', async () => {
    const values = randomFloats(randomInteger(1, 500) * 2 + 1)
    using target = DeviceBuffer.allocate(device, 'f32', values.length)
    using near = DeviceBuffer.from(device, values)
    using far = DeviceBuffer.from(second, values)
    using pinned = PinnedBuffer.from(device, values)
    using managed = ManagedBuffer.allocate(device, 'f32', values.length)
    managed.array.set(values)
    for (const source of [values, near, far, pinned, pinned.array, managed]) {
      for (const name of ['copyFrom', 'copyFromSync'] as const) {
        target.fillSync(7)
        expect(target[name](source)).toBe(target)
        expect(await target.toArray()).toEqual(values)
      }
    }
  })

  test('allow the array to change after the copy has completed', async () => {
    using stream = Stream.create(device)
    // The copy reads a short array during the call, and a long one in stream order.
    for (const length of [1001, 1 << 19]) {
      const values = randomFloats(length)
      const expected = values.slice()
      using target = DeviceBuffer.allocate(device, 'f32', values.length)
      target.copyFrom(values, { stream })
      await stream.synchronize()
      values.fill(0)
      expect(Buffer.compare(Buffer.from((await target.toArray({ stream })).buffer), Buffer.from(expected.buffer))).toBe(
        0,
      )
    }
  })

  test('accept structs as objects', () => {
    using target = DeviceBuffer.zeros(device, Particle, 3)
    for (const name of ['copyFrom', 'copyFromSync'] as const) {
      const values = randomParticles(3)
      expect(target[name](values).toArraySync()).toEqual(values)
    }
  })

  test('refuse arguments that do not match, and change nothing', () => {
    const values = randomFloats(5)
    using target = DeviceBuffer.from(device, values)
    using words = DeviceBuffer.allocate(device, 'i32', 5)
    using pinned = PinnedBuffer.allocate(device, 'i32', 5)
    using ours = Stream.create(device)
    using theirs = Stream.create(second)
    using structs = DeviceBuffer.allocate(device, Particle, 1)
    const five = new Float32Array(5)
    const toHold = 'source must be a Float32Array to hold f32, not an object of class'
    for (const name of ['copyFrom', 'copyFromSync'] as const) {
      for (const [source, options, type, message] of [
        [new Float32Array(4), {}, RangeError, 'source must be of 5 elements, as many as the buffer has (slice() tak'],
        [new Float64Array(5), {}, TypeError, `${toHold} Float64Array`],
        [[1, 2, 3, 4, 5], {}, TypeError, 'source must be a typed array or memory, not an object of class Array'],
        [undefined, {}, TypeError, 'source must be a typed array or memory, not undefined'],
        [words, {}, TypeError, "source must be of f32 (reinterpret() one of them), not 'i32'"],
        [pinned, {}, TypeError, "source must be of f32, not 'i32'"],
        [structs, {}, RangeError, 'source must be of 5 elements'],
        [five, ours, TypeError, 'options must be a plain object such as { stream }, not an object of class Stream'],
        [five, { steam: ours }, TypeError, "options must have only the keys stream, not 'steam'"],
        [five, { stream: 1 }, TypeError, 'stream must be a stream, not 1'],
        [five, { stream: theirs }, TypeError, 'stream must be one of device 0, not of device 1'],
      ] as const) {
        const copy = (): unknown => target[name](source as never, options as never)
        expect(copy).toThrow(type)
        expect(copy).toThrow(`DeviceBuffer.${name}: ${message}`)
      }
      expect(() => structs[name]([{ id: 1, weight: 1, tag: 256 }])).toThrow(
        `DeviceBuffer.${name}: source: Particle.tag must be an integer from 0 to 255, not 256`,
      )
    }
    expect(target.toArraySync()).toEqual(values)
  })
})

describe('DeviceBuffer.copyTo and copyToSync', () => {
  test('fill an array, a part of an array, or page-locked memory, and return it', async () => {
    const values = randomFloats(randomInteger(1, 500) * 2 + 1)
    using source = DeviceBuffer.from(device, values)
    const targets = (): [Float32Array<ArrayBuffer>, Float32Array<ArrayBuffer>] => {
      const whole = new Float32Array(values.length + 2)
      return [whole, whole.subarray(1, -1)]
    }
    const [whole, part] = targets()
    expect(source.copyToSync(part)).toBe(part)
    const [wholeLater, partLater] = targets()
    expect(await source.copyTo(partLater)).toBe(partLater)
    for (const array of [whole, wholeLater]) expect(array).toEqual(Float32Array.of(0, ...values, 0))
    using pinned = PinnedBuffer.allocate(device, 'f32', values.length)
    expect(await source.copyTo(pinned)).toBe(pinned)
    expect(pinned.array).toEqual(values)
    expect(source.copyToSync(pinned)).toBe(pinned)
  })

  test('refuse arguments that do not match: copyToSync throws, copyTo rejects', async () => {
    using source = DeviceBuffer.allocate(device, 'f32', 5)
    using pinned = PinnedBuffer.allocate(device, 'i32', 5)
    for (const [target, options, message] of [
      [new Float32Array(6), {}, 'target must be of 5 elements, as many as the buffer has (slice() takes parts), not 6'],
      [source, {}, 'target must be a Float32Array to hold f32, not an object of class DeviceBuffer'],
      [pinned, {}, "target must be of f32, not 'i32'"],
      [new Float32Array(5), { queue: 1 }, "options must have only the keys stream, not 'queue'"],
    ] as const) {
      expect(() => source.copyToSync(target as never, options as object)).toThrow(`DeviceBuffer.copyToSync: ${message}`)
      await expect(source.copyTo(target as never, options as object)).rejects.toThrow(`DeviceBuffer.copyTo: ${message}`)
    }
  })
})

describe('typed arrays with a forged length', () => {
  test('are read and written up to their real length', async () => {
    const values = randomFloats(9)
    for (const [how, array] of Object.entries(falseLengths(values))) {
      using made = DeviceBuffer.from(device, array)
      expect([how, made.length, made.toArraySync()]).toEqual([how, 9, values])
      using target = DeviceBuffer.zeros(device, 'f32', 9)
      expect(target.copyFrom(array).toArraySync()).toEqual(values)
      expect(target.fill(0).copyFromSync(array).toArraySync()).toEqual(values)
    }
    using source = DeviceBuffer.from(device, values)
    const around = new Float32Array(11)
    for (const array of Object.values(falseLengths(around.subarray(1, 10)))) {
      for (const read of [() => source.copyToSync(array), () => source.copyTo(array)]) {
        around.fill(0)
        await read()
        expect(around).toEqual(Float32Array.of(0, ...values, 0))
      }
    }
  })

  test('are refused if only the forged length would fit', () => {
    using buffer = DeviceBuffer.zeros(device, 'f32', 1 << 18)
    for (const array of Object.values(falseLengths(new Float32Array(9)))) {
      expect(() => buffer.copyFrom(array)).toThrow('source must be of 262144 elements')
      expect(() => buffer.copyFromSync(array)).toThrow('source must be of 262144 elements')
      expect(() => buffer.copyToSync(array)).toThrow('target must be of 262144 elements')
    }
    const proxy = new Proxy(new Float32Array(1 << 18), {})
    expect(() => buffer.copyFrom(proxy)).toThrow('source must be a typed array or memory, not')
    expect(() => buffer.copyToSync(proxy)).toThrow('target must be a Float32Array to hold f32, not')
  })
})

test('DeviceBuffer always answers the memory protocol with the same frozen object, without a dtype for structs', () => {
  using buffer = DeviceBuffer.allocate(second, 'f32', 3)
  const range = buffer[memoryProtocol]
  const { address } = buffer
  const common = { version: 0, address, byteLength: 12, deviceOrdinal: 1, context: second.primaryContext.handle }
  expect(range).toEqual({ ...common, dtype: 'f32', length: 3 })
  expect([Object.isFrozen(range), buffer[memoryProtocol]]).toEqual([true, range])
  using structs = DeviceBuffer.allocate(device, Particle, 2)
  expect(Object.keys(structs[memoryProtocol])).not.toContain('dtype')
})

test('DeviceBuffer is printed in one line, also after dispose()', () => {
  const buffer = DeviceBuffer.allocate(second, 'f32', 5)
  expect([inspect(buffer), String(buffer)]).toEqual(['DeviceBuffer<f32>(5) on device 1', '[object DeviceBuffer]'])
  const view = buffer.slice(1, 3)
  buffer.dispose()
  expect(inspect(buffer)).toBe('DeviceBuffer<f32>(5) on device 1, disposed')
  expect(inspect(view)).toBe('DeviceBuffer<f32>(2) on device 1, disposed')
  using structs = DeviceBuffer.allocate(device, Particle, 1)
  expect(inspect({ structs })).toBe('{ structs: DeviceBuffer<Particle>(1) on device 0 }')
})

test('a device of a second copy of the package is refused, with both paths', async () => {
  const other = await secondCopy()
  const foreign = Object.create(other.Context.prototype)
  expect(() => DeviceBuffer.allocate(foreign, 'f32', 1)).toThrow(twoCopies)
  expect(() => DeviceBuffer.allocateOn(Object.create(other.Stream.prototype), 'f32', 1)).toThrow(twoCopies)
})
