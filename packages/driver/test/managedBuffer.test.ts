import { inspect } from 'node:util'
import { DisposedError, type DType, dtypeInfo, memoryProtocol, StatusError } from '@shoal/types'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { bytes, Particle, randomArray, randomFloats, randomInteger, randomParticles } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, finishReleasesSync, ManagedBuffer, pointerInfo, rangeAttribute, rangeAttributes, Stream } =
  await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const stream = Stream.create(device)

afterAll(() => stream.dispose())
beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

const isManaged = (address: bigint): boolean => pointerInfo(device, address).type === 'managed'

describe('ManagedBuffer.allocate', () => {
  test('allocates memory shared by host and devices, until dispose()', () => {
    const length = randomInteger(1, 5000) * 2 + 1
    for (const owner of [second, second.primaryContext]) {
      for (const options of [{}, { attach: 'global' }, { attach: 'host' }] as const) {
        const buffer = ManagedBuffer.allocate(owner, 'f64', length, options)
        const { address, array } = buffer
        expect([buffer.dtype, buffer.length, buffer.byteLength]).toEqual(['f64', length, length * 8])
        expect([buffer.device, buffer.context]).toEqual([second, second.primaryContext])
        expect([array.constructor, array.length, array.buffer]).toEqual([Float64Array, length, buffer.buffer])
        expect(isManaged(address)).toBe(true)
        buffer.disposeSync()
        expect([isManaged(address), array.length]).toEqual([false, 0])
      }
    }
  })

  test('exposes the same memory as an array, for every dtype', () => {
    for (const dtype of ['i8', 'u16', 'bf16', 'f8e5m2', 'u64', 'f32', 'complex64', 'bool'] as const satisfies DType[]) {
      const values = randomArray(dtype, randomInteger(1, 200) * 2 + 1)
      const length = values.byteLength / dtypeInfo(dtype).bytes
      using buffer = ManagedBuffer.allocate<DType>(device, dtype, length)
      bytes(buffer.array).set(bytes(values))
      expect(buffer.memory.toArraySync()).toEqual(values)
      buffer.memory.reinterpret('u8').slice(1).fillSync(0)
      expect(bytes(buffer.array)).toEqual(bytes(values).map((byte, index) => (index === 0 ? byte : 0)))
    }
  })

  test('copies, fills and views of the memory are visible in the array', async () => {
    const values = randomFloats(9)
    using buffer = ManagedBuffer.allocate(device, 'f32', 9)
    expect(buffer.memory).toBe(buffer.memory)
    buffer.memory.copyFromSync(values)
    expect(buffer.array).toEqual(values)
    using copy = DeviceBuffer.allocate(device, 'f32', 9)
    expect(await copy.copyFrom(buffer, { stream }).toArray({ stream })).toEqual(values)
    buffer.memory.slice(2, -2).fillSync(1)
    expect(buffer.array).toEqual(values.fill(1, 2, -2))
  })

  test('exposes structs as bytes in the array and as objects in device copies', () => {
    const values = randomParticles(3)
    using buffer = ManagedBuffer.allocate(device, Particle, 3)
    buffer.array.set(Particle.encodeArray(values))
    expect(buffer.memory.toArraySync()).toEqual(values)
    expect(buffer.array.length).toBe(72)
  })

  const range = 'an integer from 1 to 1073741824'
  test.each([
    [5, 'f32', 1, {}, TypeError, 'owner must be a Device or a Context, not 5'],
    [device, 'f33', 1, {}, TypeError, 'dtype must be one of i8, u8'],
    [device, 'f32', 0, {}, RangeError, `length must be ${range}, not 0`],
    [device, 'f32', 2 ** 30 + 1, {}, RangeError, `length must be ${range}, not 1073741825`],
    [device, 'f32', Number.NaN, {}, TypeError, `length must be ${range}, not NaN`],
    [device, 'f32', 1.5, {}, TypeError, `length must be ${range}, not 1.5`],
    [device, 'f32', 1n, {}, TypeError, `length must be ${range}, not 1n`],
    [device, 'f32', '1', {}, TypeError, `length must be ${range}, not '1'`],
    [device, 'f32', 1, { attach: 'single' }, TypeError, "attach must be 'global' or 'host', not 'single'"],
    [device, 'f32', 1, { at: 'host' }, TypeError, "options must have only the keys attach, not 'at'"],
    [device, 'f32', 1, 'host', TypeError, "options must be a plain object such as { attach }, not 'host'"],
    [device, 'f32', 1, stream, TypeError, 'options must be a plain object such as { attach }, not an object of class'],
  ] as const)('refuses %o, %o, %o, %o', (owner, dtype, length, options, type, message) => {
    const make = (): unknown =>
      ManagedBuffer.allocate(owner as never, dtype as never, length as never, options as never)
    expect(make).toThrow(type)
    expect(make).toThrow(`ManagedBuffer.allocate: ${message}`)
  })

  test('rethrows an error thrown by a getter of the options', () => {
    const thrown = new Error('from a getter')
    const options = {
      get attach(): 'host' {
        throw thrown
      },
    }
    expect(() => ManagedBuffer.allocate(device, 'f32', 1, options)).toThrow(thrown)
  })
})

describe('ManagedBuffer advice and prefetches', () => {
  test('advise() and unadvise() set each advice separately in the driver', () => {
    using buffer = ManagedBuffer.allocate(device, 'f32', 1024)
    const none = { readMostly: false, preferredLocation: undefined, accessedBy: [], lastPrefetchLocation: undefined }
    expect(buffer.attributes).toEqual(none)
    expect(buffer.advise('readMostly')).toBe(buffer)
    expect(buffer.attributes).toEqual({ ...none, readMostly: true })
    expect(buffer.unadvise('readMostly')).toBe(buffer)
    buffer.advise('preferredLocation', 'host')
    expect(buffer.attributes).toEqual({ ...none, preferredLocation: { type: 'host' } })
    buffer.advise('preferredLocation', second)
    expect(buffer.attributes.preferredLocation).toEqual({ type: 'device', deviceOrdinal: 1 })
    buffer.unadvise('preferredLocation')
    buffer.advise('accessedBy', 1).advise('accessedBy', device)
    expect([...buffer.attributes.accessedBy].sort()).toEqual([0, 1])
    buffer.unadvise('accessedBy', second).unadvise('accessedBy', 0)
    expect(buffer.attributes).toEqual(none)
  })

  test('prefetch() runs on a stream and keeps the values', async () => {
    const values = randomFloats(333)
    using buffer = ManagedBuffer.allocate(device, 'f32', values.length)
    buffer.array.set(values)
    for (const [place, location] of [
      [device, { type: 'device', deviceOrdinal: 0 }],
      [1, { type: 'device', deviceOrdinal: 1 }],
      ['host', { type: 'host' }],
    ] as const) {
      expect(buffer.prefetch(place, { stream })).toBe(buffer)
      await stream.synchronize()
      expect(buffer.attributes.lastPrefetchLocation).toEqual(location)
      expect(buffer.array).toEqual(values)
    }
  })

  test('attachTo() attaches the memory to a stream, to the host or to all devices', async () => {
    using buffer = ManagedBuffer.allocate(device, 'f32', 3, { attach: 'host' })
    for (const attachment of [undefined, 'single', 'host', 'global'] as const) {
      expect(buffer.attachTo(stream, attachment)).toBe(buffer)
      await stream.synchronize()
    }
    buffer.array.fill(2)
    expect(buffer.memory.toArraySync()).toEqual(new Float32Array(3).fill(2))
  })

  test('wrong advice, places, streams and options are refused', () => {
    using buffer = ManagedBuffer.allocate(device, 'f32', 3)
    using theirs = Stream.create(second)
    const place = "place must be a Device, a Context, 'host' or { hostNode }, not"
    const any = (value: unknown): never => value as never
    for (const [use, type, message] of [
      [() => buffer.advise(any('x')), TypeError, "advise: advice must be 'readMostly', 'preferredLocation' or 'access"],
      [() => buffer.advise(any('toString')), TypeError, "advise: advice must be 'readMostly'"],
      [() => buffer.advise('accessedBy'), TypeError, `advise: ${place} undefined`],
      [() => buffer.advise('preferredLocation'), TypeError, `advise: ${place} undefined`],
      [() => buffer.unadvise('accessedBy'), TypeError, `unadvise: ${place} undefined`],
      [
        () => buffer.advise('accessedBy', 2),
        RangeError,
        'advise: place must be the ordinal of one of the 2 devices, n',
      ],
      [() => buffer.prefetch(any(undefined)), TypeError, `prefetch: ${place} undefined`],
      [() => buffer.prefetch(7), RangeError, 'prefetch: place must be the ordinal of one of the 2 devices, not 7'],
      [() => buffer.prefetch(0, any({ x: 1 })), TypeError, "prefetch: options must have only the keys stream, not 'x'"],
      [() => buffer.prefetch(0, any(stream)), TypeError, 'prefetch: options must be a plain object such as { stream }'],
      [() => buffer.prefetch(0, { stream: theirs }), TypeError, 'prefetch: stream must be one of device 0, not of dev'],
      [() => buffer.attachTo(any(5)), TypeError, 'attachTo: stream must be a Stream; Stream.from() takes those of oth'],
      [() => buffer.attachTo(theirs), TypeError, 'attachTo: stream must be one of device 0, not of device 1'],
      [() => buffer.attachTo(stream, any('x')), TypeError, "attachTo: attachment must be 'global', 'host' or 'single'"],
    ] as const) {
      expect(use).toThrow(type)
      expect(use).toThrow(`ManagedBuffer.${message}`)
    }
    expect(buffer.attributes).toMatchObject({ readMostly: false, accessedBy: [], lastPrefetchLocation: undefined })
  })
})

describe('rangeAttribute and rangeAttributes', () => {
  test('return the current advice, each alone and all with one call', async () => {
    using buffer = ManagedBuffer.allocate(device, 'f32', 4096)
    const none = {
      READ_MOSTLY: false,
      PREFERRED_LOCATION: -2,
      ACCESSED_BY: [],
      LAST_PREFETCH_LOCATION: -2,
      PREFERRED_LOCATION_TYPE: 'none',
      LAST_PREFETCH_LOCATION_TYPE: 'none',
    }
    const names = Object.keys(none) as (keyof typeof none)[]
    const each = () => Object.fromEntries(names.map((name) => [name, rangeAttribute(device, buffer, name)]))
    expect([each(), rangeAttributes(device, buffer, names)]).toEqual([none, none])
    buffer.advise('readMostly').advise('preferredLocation', 'host').advise('accessedBy', device)
    buffer.advise('accessedBy', second).advise('accessedBy', 'host').prefetch(second, { stream })
    await stream.synchronize()
    const advised = {
      READ_MOSTLY: true,
      PREFERRED_LOCATION: -1,
      ACCESSED_BY: expect.arrayContaining([-1, 0, 1]),
      LAST_PREFETCH_LOCATION: 1,
      PREFERRED_LOCATION_TYPE: 'host',
      LAST_PREFETCH_LOCATION_TYPE: 'device',
    }
    expect([each(), rangeAttributes(device, buffer, names)]).toEqual([advised, advised])
    for (const name of names) expect(rangeAttributes(second, buffer, [name])).toEqual({ [name]: advised[name] })
    expect(rangeAttribute(device, buffer, 'ACCESSED_BY').length).toBe(3)
    expect(rangeAttribute(device, buffer, 'LAST_PREFETCH_LOCATION_ID')).toBe(1)
    expect(rangeAttributes(device, buffer, [])).toEqual({})
  })

  test('refuse unmanaged memory, unknown attributes and wrong owners', () => {
    using plain = DeviceBuffer.allocate(device, 'u8', 16)
    expect(() => rangeAttribute(device, plain, 'READ_MOSTLY')).toThrow(StatusError)
    expect(() => rangeAttributes(device, plain, ['READ_MOSTLY'])).toThrow(StatusError)
    using buffer = ManagedBuffer.allocate(device, 'f32', 1)
    const bad = 'readMostly' as 'READ_MOSTLY'
    expect(() => rangeAttribute(device, buffer, bad)).toThrow(/^rangeAttribute: attribute must be /)
    expect(() => rangeAttributes(device, buffer, [bad])).toThrow(/^rangeAttributes: attributes must be /)
    expect(() => rangeAttributes(device, buffer, bad as never)).toThrow(/^rangeAttributes: attributes must be a list/)
    expect(() => rangeAttribute(5 as never, buffer, 'READ_MOSTLY')).toThrow(/^rangeAttribute: owner must be /)
    expect(() => rangeAttributes(5 as never, buffer, [])).toThrow(/^rangeAttributes: owner must be /)
  })
})

describe('disposal of a ManagedBuffer', () => {
  test('using and await using free it, and its arrays become empty', async () => {
    const kept: { address: bigint; array: Uint8Array }[] = []
    {
      using a = ManagedBuffer.allocate(device, 'u8', 7)
      await using b = ManagedBuffer.allocate(device, 'u8', 7)
      kept.push({ address: a.address, array: a.array }, { address: b.address, array: b.array })
      expect(kept.map(({ array }) => array.length)).toEqual([7, 7])
    }
    finishReleasesSync()
    expect(kept.map(({ address, array }) => [isManaged(address), array.length])).toEqual([
      [false, 0],
      [false, 0],
    ])
  })

  test('every later use throws DisposedError, of its views too; a second dispose() does nothing', () => {
    const buffer = ManagedBuffer.allocate(device, 'f32', 2)
    const views = [buffer.memory, buffer.memory.slice(1)]
    buffer.dispose()
    buffer.dispose()
    for (const use of [
      () => buffer.array,
      () => buffer.buffer,
      () => buffer.address,
      () => buffer.memory,
      () => buffer[memoryProtocol],
      () => buffer.attributes,
      () => buffer.advise('readMostly'),
      () => buffer.prefetch('host'),
      () => buffer.attachTo(stream),
      ...views.map((view) => () => view.toArraySync()),
    ]) {
      expect(use).toThrow(new DisposedError('ManagedBuffer'))
    }
    expect([buffer.disposed, buffer.length, buffer.byteLength, buffer.dtype]).toEqual([true, 2, 8, 'f32'])
  })
})

test('ManagedBuffer answers the memory protocol as memory of its device', () => {
  using buffer = ManagedBuffer.allocate(second, 'f32', 3)
  const { address } = buffer
  const context = second.primaryContext.handle
  const common = { version: 0, address, byteLength: 12, deviceOrdinal: 1, context }
  expect(buffer[memoryProtocol]).toEqual({ ...common, dtype: 'f32', length: 3 })
  using structs = ManagedBuffer.allocate(device, Particle, 1)
  expect(Object.keys(structs[memoryProtocol])).not.toContain('dtype')
})

test('ManagedBuffer is printed in one line, also after dispose()', () => {
  const buffer = ManagedBuffer.allocate(second, 'f32', 3)
  expect([inspect(buffer), String(buffer)]).toEqual([
    "ManagedBuffer { dtype: 'f32', length: 3, device: 1 }",
    '[object ManagedBuffer]',
  ])
  buffer.dispose()
  expect(inspect(buffer)).toBe("ManagedBuffer { dtype: 'f32', length: 3, device: 1, disposed: true }")
})
