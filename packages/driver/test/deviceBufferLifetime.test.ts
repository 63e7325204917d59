import { inspect } from 'node:util'
import { DisposedError, memoryProtocol } from '@shoal/types'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { bytes, Particle, randomFloats, randomInteger, randomParticles } from './support/elements.js'

type Buffer32 = import('@shoal/driver/shared').DeviceBuffer<'f32'>

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, finishReleasesSync, MemoryPool, PinnedBuffer, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const stream = Stream.create(device)
const current = MemoryPool.currentOf(device)

afterAll(() => stream.dispose())

beforeEach(() => {
  stream.synchronizeSync()
  current.trimTo(0)
  expect([device.used, second.used, current.used.current]).toEqual([0, 0, 0])
})

describe('a view of a DeviceBuffer', () => {
  test('slice() takes indices as arrays do, and shares the memory', () => {
    const values = randomFloats(randomInteger(20, 60))
    using buffer = DeviceBuffer.from(device, values)
    for (const [start, end] of [[], [3], [3, 9], [-7], [-7, -2], [4, 4], [0, -1], [values.length]] as number[][]) {
      for (const name of ['slice', 'subarray'] as const) {
        const view = buffer[name](start, end)
        expect(view.toArraySync()).toEqual(values.slice(start, end))
      }
    }
    expect(buffer.slice(3, 9).slice(1, -1).toArraySync()).toEqual(values.slice(4, 8))
    expect(buffer.slice(3).address).toBe(buffer.address + 12n)
    buffer.slice(2, 4).fillSync(5)
    expect(buffer.toArraySync()).toEqual(values.fill(5, 2, 4))
  })

  test('slice() counts structs, and copies them to and from a part', () => {
    const values = randomParticles(7)
    using buffer = DeviceBuffer.from(device, values, { dtype: Particle })
    expect(buffer.slice(2, -2).toArraySync()).toEqual(values.slice(2, -2))
    const changed = randomParticles(2)
    buffer.slice(5).copyFromSync(changed)
    expect(buffer.toArraySync()).toEqual([...values.slice(0, 5), ...changed])
  })

  test('slice() copies between parts of one buffer', () => {
    const values = randomFloats(9)
    using buffer = DeviceBuffer.from(device, values)
    buffer.slice(0, 4).copyFromSync(buffer.slice(5))
    expect(buffer.toArraySync()).toEqual(Float32Array.of(...values.slice(5), ...values.slice(4)))
  })

  test.each([
    [[1, 9], RangeError, 'end must be an integer from -5 to 5, not 9'],
    [[3, 1], RangeError, 'end must be at or behind start (3), not 1'],
    [[-1, 1], RangeError, 'end must be at or behind start (-1), not 1'],
    [[-6], RangeError, 'start must be an integer from -5 to 5, not -6'],
    [[0.5], TypeError, 'start must be an integer from -5 to 5, not 0.5'],
    [[Number.NaN], TypeError, 'start must be an integer from -5 to 5, not NaN'],
    [['1'], TypeError, "start must be an integer from -5 to 5, not '1'"],
  ] as const)('slice(...%o) is refused', (given, type, message) => {
    using buffer = DeviceBuffer.allocate(device, 'f32', 5)
    const [start, end] = given as unknown as [number, number]
    expect(() => buffer.slice(start, end)).toThrow(new type(`DeviceBuffer.slice: ${message}`))
  })

  test('reinterpret() views the same bytes as another type', () => {
    const values = randomFloats(12)
    using buffer = DeviceBuffer.from(device, values)
    expect(buffer.reinterpret('u8').toArraySync()).toEqual(bytes(values))
    expect(buffer.reinterpret('u32').toArraySync()).toEqual(new Uint32Array(values.buffer))
    expect(buffer.reinterpret('complex64').slice(1, 3).toArraySync()).toEqual(values.slice(2, 6))
    expect(buffer.reinterpret(Particle).toArraySync()).toEqual(Particle.decode(bytes(values)))
    expect(buffer.reinterpret('u32').reinterpret('f32').address).toBe(buffer.address)
  })

  test('reinterpret() refuses partial or misaligned elements', () => {
    using buffer = DeviceBuffer.allocate(device, 'f32', 5)
    for (const [view, dtype, message] of [
      [buffer, 'f64', "dtype must be a type of which 20 bytes are whole elements, not 'f64'"],
      [buffer, Particle, "dtype must be a type of which 20 bytes are whole elements, not 'Particle'"],
      [buffer.slice(1, 3), 'f64', "dtype must be a type that may start at an address aligned less than 8, not 'f64'"],
    ] as const) {
      expect(() => view.reinterpret(dtype)).toThrow(new RangeError(`DeviceBuffer.reinterpret: ${message}`))
    }
    expect(() => buffer.reinterpret('f33' as never)).toThrow(/^DeviceBuffer.reinterpret: dtype must be one of i8/)
  })

  test('ends with its buffer, but never ends the buffer', () => {
    const buffer = DeviceBuffer.zeros(device, 'f32', 8)
    const views = [buffer.slice(1), buffer.slice(2).slice(1), buffer.reinterpret('u8')]
    const gone = buffer.slice(4)
    gone.dispose()
    gone.disposeOn(stream)
    expect([gone.disposed, buffer.disposed, device.used > 0]).toEqual([true, false, true])
    expect(() => gone.toArraySync()).toThrow(DisposedError)
    expect(buffer.toArraySync()).toEqual(new Float32Array(8))
    buffer.dispose()
    expect(device.used).toBe(0)
    for (const view of views) {
      expect(view.disposed).toBe(true)
      expect(() => view.fill(0)).toThrow(new DisposedError('DeviceBuffer'))
      expect(() => view[memoryProtocol]).toThrow(DisposedError)
    }
  })
})

describe('DeviceBuffer.view and fromAddress', () => {
  test("view() covers a part of another object's memory, and ends with it", () => {
    const values = randomFloats(10)
    const whole = DeviceBuffer.from(device, values)
    for (const owner of [device, device.primaryContext]) {
      expect(DeviceBuffer.view(owner, whole, 'f32').toArraySync()).toEqual(values)
    }
    const view = DeviceBuffer.view(device, whole, 'f32', { byteOffset: 8, length: 3 })
    expect(view.toArraySync()).toEqual(values.slice(2, 5))
    expect(DeviceBuffer.view(device, whole, Particle, { byteOffset: 8 }).length).toBe(1)
    view.dispose()
    expect(device.used).toBeGreaterThan(0)
    const other = DeviceBuffer.view(device, whole, 'f32')
    whole.dispose()
    expect(() => other.address).toThrow(DisposedError)
  })

  test('view() of memory that has shrunk is refused at its next use', () => {
    using whole = DeviceBuffer.zeros(device, 'u8', 64)
    const range = { ...whole[memoryProtocol] }
    const memory = {
      get [memoryProtocol]() {
        return range
      },
    }
    const view = DeviceBuffer.view(device, memory, 'u8', { byteOffset: 32 })
    expect(view.toArraySync()).toEqual(new Uint8Array(32))
    Object.assign(range, { byteLength: 60, length: 60 })
    expect(() => view.toArraySync()).toThrow('the view ends at byte 64 of its memory, which has only 60 bytes now')
  })

  test.each([
    [{ byteOffset: 2 }, RangeError, 'byteOffset must be a multiple of 4 for f32, not 2'],
    [{ byteOffset: 24 }, RangeError, 'byteOffset must be an integer from 0 to 20, not 24'],
    [{ byteOffset: 0.5 }, TypeError, 'byteOffset must be an integer from 0 to 20, not 0.5'],
    [{ byteOffset: 4, length: 5 }, RangeError, 'length must be an integer from 0 to 4, not 5'],
    [{ length: Number.NaN }, TypeError, 'length must be an integer from 0 to 5, not NaN'],
    [
      { offset: 4 },
      TypeError,
      "options must have only the keys byteOffset, length, not 'offset'; did you mean 'byteOffset'?",
    ],
    [new Map(), TypeError, 'options must be a plain object such as { byteOffset, length }, not an object of class Map'],
  ] as const)('view() refuses %o', (options, type, message) => {
    using whole = DeviceBuffer.allocate(device, 'f32', 5)
    const view = (): unknown => DeviceBuffer.view(device, whole, 'f32', options as object)
    expect(view).toThrow(new type(`DeviceBuffer.view: ${message}`))
  })

  test('view() refuses an object without the memory protocol', () => {
    expect(() => DeviceBuffer.view(device, new Float32Array(3) as never, 'f32')).toThrow(
      "DeviceBuffer.view: memory must be an object with [Symbol.for('cuda.memory')], not an object of class Float32Array",
    )
  })

  test('fromAddress() borrows memory: dispose() does not free it', () => {
    const values = randomFloats(5)
    using whole = DeviceBuffer.from(device, values)
    const borrowed = DeviceBuffer.fromAddress(device, whole.address + 4n, 'f32', 3, { keep: whole })
    expect(borrowed.toArraySync()).toEqual(values.slice(1, 4))
    borrowed.dispose()
    expect(() => borrowed.address).toThrow(DisposedError)
    expect(whole.toArraySync()).toEqual(values)
  })

  test.each([
    [5, 1, {}, TypeError, 'address must be a bigint, not 5'],
    [-5n, 1, {}, RangeError, 'address must be a bigint of 64 bits without a sign, not -5n'],
    [2n ** 64n, 1, {}, RangeError, `address must be a bigint of 64 bits without a sign, not ${2n ** 64n}n`],
    [256n, 1.5, {}, TypeError, 'length must be an integer from 0 to 2251799813685247, not 1.5'],
    [256n, 1, { kept: 1 }, TypeError, "options must have only the keys keep, not 'kept'"],
  ] as const)('fromAddress() refuses %o, %o, %o', (address, length, options, type, message) => {
    const make = (): unknown => DeviceBuffer.fromAddress(device, address as bigint, 'f32', length, options as object)
    expect(make).toThrow(new type(`DeviceBuffer.fromAddress: ${message}`))
  })
})

describe('stream-ordered memory', () => {
  test('is usable by its stream at once, and is freed in stream order', async () => {
    const values = randomFloats(randomInteger(1, 999) * 2 + 1)
    const buffer = DeviceBuffer.allocateOn(stream, 'f32', values.length)
    expect([buffer.device, buffer.context, buffer.length]).toEqual([device, device.primaryContext, values.length])
    expect(current.used.current).toBeGreaterThanOrEqual(values.byteLength)
    const read = buffer.copyFrom(values, { stream }).toArray({ stream })
    buffer.disposeOn(stream)
    expect([buffer.disposed, current.used.current]).toEqual([true, 0])
    expect(await read).toEqual(values)
  })

  test('disposeOn() takes another stream of the device, and memory of every kind', async () => {
    using other = Stream.create(device)
    const ordered = DeviceBuffer.allocateOn(stream, 'u8', 100)
    stream.synchronizeSync()
    const plain = DeviceBuffer.zeros(device, 'u8', 100)
    for (const buffer of [ordered, plain]) {
      buffer.disposeOn(other)
      buffer.disposeOn(other)
      buffer.dispose()
    }
    await other.synchronize()
    expect([current.used.current, ordered.disposed, plain.disposed]).toEqual([0, true, true])
  })

  test('is freed by every way of disposing, also after its stream was disposed', async () => {
    for (const dispose of [
      (buffer: { dispose(): void }) => buffer.dispose(),
      (buffer: Disposable) => buffer[Symbol.dispose](),
      (buffer: AsyncDisposable) => buffer[Symbol.asyncDispose](),
    ]) {
      const brief = Stream.create(device)
      const [before, after] = [DeviceBuffer.allocateOn(brief, 'u8', 10), DeviceBuffer.allocateOn(brief, 'u8', 10)]
      const view = after.slice(3)
      await dispose(before)
      brief.dispose()
      await dispose(after)
      finishReleasesSync()
      expect([current.used.current, view.disposed]).toEqual([0, true])
    }
  })

  test('takes no memory for zero elements', () => {
    const empty = DeviceBuffer.allocateOn(stream, Particle, 0)
    expect([empty.address, empty.toArraySync(), current.used.current]).toEqual([0n, [], 0])
    empty.disposeOn(stream)
    expect(() => empty.address).toThrow(DisposedError)
  })

  test('has a distinct, stable address for each live allocation', () => {
    const [a, b] = [DeviceBuffer.allocateOn(stream, 'u8', 5), DeviceBuffer.allocateOn(stream, 'u8', 5)]
    a.fill(1, { stream })
    b.fill(2, { stream })
    expect([a.toArraySync({ stream }), b.toArraySync({ stream })].map(([first]) => first)).toEqual([1, 2])
    for (const buffer of [a, b]) buffer.disposeOn(stream)
  })

  test('allocateOn() and disposeOn() refuse everything except a stream of their device', () => {
    using theirs = Stream.create(second)
    using buffer = DeviceBuffer.allocate(device, 'f32', 1)
    const expected = 'stream must be a Stream; Stream.from() takes those of others, not'
    for (const [bad, what] of [
      [device, 'an object of class TestDevice'],
      [undefined, 'undefined'],
      [{ stream }, 'a plain object'],
    ] as const) {
      expect(() => DeviceBuffer.allocateOn(bad as never, 'f32', 1)).toThrow(
        new TypeError(`DeviceBuffer.allocateOn: ${expected} ${what}`),
      )
      expect(() => buffer.disposeOn(bad as never)).toThrow(new TypeError(`DeviceBuffer.disposeOn: ${expected} ${what}`))
    }
    expect(() => buffer.disposeOn(theirs)).toThrow(
      new TypeError('DeviceBuffer.disposeOn: stream must be one of device 0, not of device 1'),
    )
    expect(() => DeviceBuffer.allocateOn(stream, 'f32', -1)).toThrow(/^DeviceBuffer.allocateOn: length must be an int/)
    expect(() => DeviceBuffer.allocateOn(stream, 'f32', 1n as never)).toThrow('not 1n')
    expect([buffer.disposed, current.used.current]).toEqual([false, 0])
    theirs.dispose()
    expect(() => DeviceBuffer.allocateOn(theirs, 'f32', 1)).toThrow(new DisposedError('Stream'))
  })
})

describe('disposal of a DeviceBuffer', () => {
  test('using and await using free the memory', async () => {
    {
      using a = DeviceBuffer.allocate(device, 'u8', 7)
      await using b = DeviceBuffer.allocate(device, 'u8', 7)
      expect([a.disposed, b.disposed, device.used > 0]).toEqual([false, false, true])
    }
    expect(device.used).toBe(0)
  })

  test('await using waits for work that uses the buffer, without blocking', async () => {
    using pinned = PinnedBuffer.allocate(device, 'u8', 1 << 20)
    const buffer = DeviceBuffer.zeros(device, 'u8', 1 << 20)
    const copied = buffer.copyTo(pinned, { stream })
    const freed = buffer[Symbol.asyncDispose]()
    expect(buffer.disposed).toBe(true)
    await Promise.all([copied, freed])
    expect(device.used).toBe(0)
    await buffer[Symbol.asyncDispose]()
  })

  test('every later use throws DisposedError; a second dispose() does nothing', async () => {
    const buffer = DeviceBuffer.zeros(device, 'f32', 2)
    const ordered = DeviceBuffer.allocateOn(stream, 'f32', 2)
    for (const gone of [buffer, ordered]) {
      gone.dispose()
      gone.dispose()
      gone.disposeOn(stream)
      const array = new Float32Array(2)
      for (const use of [
        () => gone.address,
        () => gone[memoryProtocol],
        () => gone.fill(0),
        () => gone.fillSync(0),
        () => gone.copyFrom(array),
        () => gone.copyFromSync(array),
        () => gone.copyToSync(array),
        () => gone.toArraySync(),
        () => gone.slice(),
        () => gone.subarray(),
        () => gone.reinterpret('u8'),
        () => DeviceBuffer.view(device, gone, 'f32'),
      ]) {
        expect(use).toThrow(new DisposedError('DeviceBuffer'))
      }
      await expect(gone.copyTo(array)).rejects.toThrow(DisposedError)
      await expect(gone.toArray()).rejects.toThrow(DisposedError)
      expect([gone.length, gone.byteLength, gone.dtype, gone.device]).toEqual([2, 8, 'f32', device])
      expect(inspect(gone)).toBe('DeviceBuffer<f32>(2) on device 0, disposed')
    }
  })

  test('a getter of the arguments that disposes the buffer is detected before the memory is used', async () => {
    for (const use of [
      (gone: Buffer32, options: object) => gone.fill(1, options),
      (gone: Buffer32, options: object) => gone.copyFrom(new Float32Array(2), options),
      (gone: Buffer32, options: object) => gone.copyFromSync(new Float32Array(2), options),
      (gone: Buffer32, options: object) => gone.copyToSync(new Float32Array(2), options),
    ]) {
      const buffer = DeviceBuffer.allocate(device, 'f32', 2)
      const options = {
        get stream() {
          buffer.dispose()
          return stream
        },
      }
      expect(() => use(buffer, options)).toThrow(new DisposedError('DeviceBuffer'))
      const other = DeviceBuffer.allocate(device, 'f32', 2)
      const thrown = new Error('from a getter')
      const throwing = {
        get stream(): never {
          throw thrown
        },
      }
      expect(() => use(other, throwing)).toThrow(thrown)
      other.dispose()
    }
  })
})
