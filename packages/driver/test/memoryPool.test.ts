import { inspect } from 'node:util'
import { DisposedError, StatusError } from '@shoal/types'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { Particle, randomFloats, randomInteger, randomParticles } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, MemoryPool, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const stream = Stream.create(device)

afterAll(() => stream.dispose())

beforeEach(() => {
  stream.synchronizeSync()
  expect([device.used, second.used]).toEqual([0, 0])
})

describe('MemoryPool.allocate', () => {
  test('accepts a stream of another device only if that device has access to the memory', () => {
    using pool = MemoryPool.create(device)
    using theirs = Stream.create(second)
    expect(() => pool.allocate(theirs, 'u8', 16)).toThrow(
      /^MemoryPool.allocate: stream must be a stream of device 0, or of one that the pool's memory can be reached from \(setAccess\), not 'one of device 1'/,
    )
    expect(pool.used.current).toBe(0)
    pool.setAccess(second, 'readWrite')
    using memory = pool.allocate(theirs, 'u8', 16)
    memory.fillSync(5, { stream: theirs })
    expect(memory.toArraySync({ stream: theirs })).toEqual(new Uint8Array(16).fill(5))
    memory.dispose()
    theirs.synchronizeSync()
  })
})

describe('MemoryPool.create', () => {
  test('makes a pool for a Device or its Context', () => {
    for (const owner of [second, second.primaryContext]) {
      using pool = MemoryPool.create(owner)
      expect([pool.device, pool.context, typeof pool.handle]).toEqual([second, second.primaryContext, 'bigint'])
      expect([pool.used, pool.reserved]).toEqual([
        { current: 0, high: 0 },
        { current: 0, high: 0 },
      ])
    }
  })

  const keys = 'handleTypes, maximumBytes, location'
  const bytes = 'maximumBytes must be an integer from 0 to 2^53 - 1'
  test.each([
    [5, {}, TypeError, 'owner must be a Device or a Context, not 5'],
    [device, { maximumBytes: -1 }, RangeError, `${bytes}, not -1`],
    [device, { maximumBytes: 1.5 }, TypeError, `${bytes}, not 1.5`],
    [device, { maximumBytes: Number.NaN }, TypeError, `${bytes}, not NaN`],
    [device, { maximumBytes: '1' }, TypeError, `${bytes}, not '1'`],
    [
      device,
      { handleTypes: 'fd' },
      TypeError,
      "handleTypes must be 'posix-fd', 'win32', 'win32-kmt' or 'fabric', not 'fd'",
    ],
    [
      device,
      { maximum: 1 },
      TypeError,
      `options must have only the keys ${keys}, managed, not 'maximum'; did you mean 'maximumBytes'?`,
    ],
    [device, stream, TypeError, `options must be a plain object such as { ${keys} }, not an object of class Stream`],
    [device, null, TypeError, `options must be a plain object such as { ${keys} }, not null`],
  ] as const)('refuses %o, %o', (owner, options, type, message) => {
    const make = (): unknown => MemoryPool.create(owner as never, options as never)
    expect(make).toThrow(new type(`MemoryPool.create: ${message}`))
  })

  test('rethrows an error thrown by a getter of the options', () => {
    const thrown = new Error('from a getter')
    const options = {
      get maximumBytes(): number {
        throw thrown
      },
    }
    expect(() => MemoryPool.create(device, options)).toThrow(thrown)
  })
})

describe('MemoryPool.allocate', () => {
  test('allocates memory that the stream uses and frees, and counts it', async () => {
    using pool = MemoryPool.create(device)
    const values = randomFloats(randomInteger(1, 5000) * 2 + 1)
    const structs = randomParticles(5)
    const a = pool.allocate(stream, 'f32', values.length)
    const b = pool.allocate(stream, Particle, 5)
    expect([a.dtype, a.length, a.device, b.dtype, b.length]).toEqual(['f32', values.length, device, Particle, 5])
    const { current } = pool.used
    expect(current).toBeGreaterThanOrEqual(a.byteLength + b.byteLength)
    expect(pool.reserved.current).toBeGreaterThanOrEqual(current)
    expect(await a.copyFrom(values, { stream }).toArray({ stream })).toEqual(values)
    expect(b.copyFromSync(structs, { stream }).toArraySync({ stream })).toEqual(structs)
    a.disposeOn(stream)
    b.dispose()
    stream.synchronizeSync()
    expect(pool.used).toEqual({ current: 0, high: current })
  })

  test('allocates nothing for zero elements', () => {
    using pool = MemoryPool.create(device)
    using empty = pool.allocate(stream, 'f32', 0)
    expect([empty.address, empty.length, pool.used.current]).toEqual([0n, 0, 0])
  })

  test('fails above maximumBytes without keeping memory', () => {
    using pool = MemoryPool.create(device, { maximumBytes: 2 ** 25 })
    expect(() => pool.allocate(stream, 'u8', 2 ** 26)).toThrow(StatusError)
    expect(pool.used.current).toBe(0)
  })

  test('refuses wrong streams and lengths', () => {
    using pool = MemoryPool.create(device)
    const range = 'length must be an integer from 0 to 2251799813685247, not'
    for (const [where, dtype, length, type, message] of [
      [
        device,
        'f32',
        1,
        TypeError,
        'stream must be a Stream; Stream.from() takes those of others, not an object of clas',
      ],
      [undefined, 'f32', 1, TypeError, 'stream must be a Stream; Stream.from() takes those of others, not undefined'],
      [stream, 'f33', 1, TypeError, 'dtype must be one of i8, u8'],
      [stream, 'f32', -1, RangeError, `${range} -1`],
      [stream, 'f32', 0.5, TypeError, `${range} 0.5`],
      [stream, 'f32', 1n, TypeError, `${range} 1n`],
    ] as const) {
      const allocate = (): unknown => pool.allocate(where as never, dtype as never, length as never)
      expect(allocate).toThrow(type)
      expect(allocate).toThrow(`MemoryPool.allocate: ${message}`)
    }
    expect(pool.used.current).toBe(0)
  })
})

describe('memory held by a MemoryPool', () => {
  test('trimTo() frees unused memory', () => {
    using pool = MemoryPool.create(device)
    pool.releaseThreshold = Number.POSITIVE_INFINITY
    pool.allocate(stream, 'u8', 1000).disposeOn(stream)
    stream.synchronizeSync()
    expect(pool.reserved.current).toBeGreaterThan(0)
    pool.trimTo(2 ** 40)
    expect(pool.reserved.current).toBeGreaterThan(0)
    pool.trimTo()
    expect([pool.reserved.current, device.used]).toEqual([0, 0])
  })

  test('releaseThreshold and the reuse settings can be read back', () => {
    using pool = MemoryPool.create(device)
    expect(pool.releaseThreshold).toBe(0)
    for (const bytes of [12_345, 2 ** 40, Number.POSITIVE_INFINITY, 0]) {
      pool.releaseThreshold = bytes
      expect(pool.releaseThreshold).toBe(bytes)
    }
    const all = { followEventDependencies: true, opportunistic: true, internalDependencies: true }
    expect(pool.reuse).toEqual(all)
    for (const name of ['followEventDependencies', 'opportunistic', 'internalDependencies'] as const) {
      pool.setReuse({ [name]: false })
      expect(pool.reuse).toEqual({ ...all, [name]: false })
      pool.setReuse({ [name]: true })
    }
  })

  test('resetHighWaterMarks() sets the marks to the current values', () => {
    using pool = MemoryPool.create(device)
    pool.allocate(stream, 'u8', 1000).disposeOn(stream)
    expect(pool.used.high).toBeGreaterThanOrEqual(1000)
    stream.synchronizeSync()
    pool.resetHighWaterMarks()
    expect(pool.used).toEqual({ current: 0, high: 0 })
  })

  test('values of the wrong type are refused, and change nothing', () => {
    using pool = MemoryPool.create(device)
    const any = (value: unknown): never => value as never
    const keys = 'followEventDependencies, opportunistic, internalDependencies'
    for (const [use, type, message] of [
      [() => pool.trimTo(-1), RangeError, '.trimTo: bytesToKeep must be an integer from 0 to 2^53 - 1, not -1'],
      [() => pool.trimTo(any(5n)), TypeError, '.trimTo: bytesToKeep must be an integer from 0 to 2^53 - 1, not 5n'],
      [
        () => any((pool.releaseThreshold = Number.NaN)),
        TypeError,
        '.releaseThreshold: bytes must be an integer from 0 to 2',
      ],
      [
        () => any((pool.releaseThreshold = -1)),
        RangeError,
        '.releaseThreshold: bytes must be an integer from 0 to 2^53 - 1',
      ],
      [() => pool.setReuse(any({ opportunistic: 1 })), TypeError, '.setReuse: policy.opportunistic must be a boolean'],
      [() => pool.setReuse(any({ x: true })), TypeError, `.setReuse: policy must have only the keys ${keys}, not 'x'`],
      [() => pool.setReuse(any(undefined)), TypeError, `.setReuse: policy must be a plain object such as { ${keys} }`],
    ] as const) {
      expect(use).toThrow(type)
      expect(use).toThrow(`MemoryPool${message}`)
    }
    expect([pool.releaseThreshold, pool.reuse.opportunistic]).toEqual([0, true])
  })
})

describe('a MemoryPool and other devices', () => {
  test('setAccess() grants and revokes their access', () => {
    using pool = MemoryPool.create(device)
    expect([pool.getAccess(device), pool.getAccess(second)]).toEqual(['readWrite', 'none'])
    for (const access of ['readWrite', 'none'] as const) {
      for (const places of [second, [second], second.primaryContext]) {
        pool.setAccess(places, access)
        expect(pool.getAccess(second)).toBe(access)
      }
    }
    const place = "place must be a Device, a Context, 'host' or { hostNode }"
    expect(() => pool.getAccess(5 as never)).toThrow(new TypeError(`MemoryPool.getAccess: ${place}, not 5`))
    expect(() => pool.setAccess('x' as never, 'readWrite')).toThrow(
      `MemoryPool.setAccess: ${place.replace('place', 'places')}, not 'x'`,
    )
    expect(() => pool.setAccess(second, 'write' as never)).toThrow(
      "MemoryPool.setAccess: access must be 'none', 'read' or 'readWrite', not 'write'",
    )
  })

  test('setCurrent() makes allocateOn() use the pool until the pool is disposed', () => {
    const standard = MemoryPool.defaultOf(device)
    expect(MemoryPool.currentOf(device.primaryContext).handle).toBe(standard.handle)
    const pool = MemoryPool.create(device)
    pool.setCurrent()
    expect(MemoryPool.currentOf(device).handle).toBe(pool.handle)
    const buffer = DeviceBuffer.allocateOn(stream, 'u8', 100)
    expect([pool.used.current > 0, standard.used.current]).toEqual([true, 0])
    buffer.disposeOn(stream)
    pool.dispose()
    expect(MemoryPool.currentOf(device).handle).toBe(standard.handle)
  })

  test('from() accepts only a pool of the same device', async () => {
    using pool = MemoryPool.create(device)
    expect(MemoryPool.from(device, pool)).toBe(pool)
    expect(() => MemoryPool.from(device, 5 as never)).toThrow('MemoryPool.from: pool must be a MemoryPool, not 5')
    expect(() => MemoryPool.from(second, pool)).toThrow('MemoryPool.from: pool must be a MemoryPool of the same device')
    const other = await secondCopy()
    expect(() => MemoryPool.from(device, Object.create(other.MemoryPool.prototype))).toThrow(twoCopies)
  })
})

describe('sharing of a MemoryPool', () => {
  test('a pool made with handleTypes can be imported, and its memory by pointer', async () => {
    using pool = MemoryPool.create(device, { handleTypes: 'posix-fd' })
    using handle = pool.export()
    using imported = MemoryPool.import(device, handle)
    const values = randomFloats(99)
    const buffer = pool.allocate(stream, 'f32', values.length).copyFromSync(values, { stream })
    const pointer = JSON.parse(JSON.stringify(pool.exportPointer(buffer)))
    expect(pointer).toMatchObject({ type: 'pool-pointer', dtype: 'f32', length: 99 })
    const seen = imported.importPointer(stream, pointer)
    expect(await seen.toArray({ stream })).toEqual(values)
    seen.disposeOn(stream)
    buffer.disposeOn(stream)
    await stream.synchronize()
  })

  test('wrong pointers, wrong handles and foreign memory are refused', () => {
    using pool = MemoryPool.create(device, { handleTypes: 'posix-fd' })
    using plain = MemoryPool.create(device)
    using foreign = DeviceBuffer.allocate(device, 'f32', 1)
    using structs = pool.allocate(stream, Particle, 1)
    const pointer = { type: 'pool-pointer', dtype: 'f32', length: 1, data: '' }
    const whole = { ...pointer, data: Buffer.alloc(64).toString('base64') }
    const gone = Stream.create(device)
    gone.dispose()
    using elsewhere = Stream.create(second)
    const any = (value: unknown): never => value as never
    for (const [use, message] of [
      [() => pool.exportPointer(any(5)), 'MemoryPool.exportPointer: buffer must be a DeviceBuffer, not 5'],
      [
        () => pool.exportPointer(any(structs)),
        "exportPointer: buffer must be of a dtype (reinterpret() it), not 'Parti",
      ],
      [() => pool.exportPointer(foreign), 'the memory must be from this pool, and the pool made with handleTypes'],
      [
        () => pool.export(any('fd')),
        "MemoryPool.export: kind must be 'posix-fd', 'win32', 'win32-kmt' or 'fabric', no",
      ],
      [() => plain.export('posix-fd'), 'it was made with no handles, not posix-fd'],
      [
        () => MemoryPool.import(device, any(5)),
        'MemoryPool.import: handle must be a DescriptorHandle, FabricHandle or',
      ],
      [() => pool.importPointer(gone, any(whole)), 'Stream was disposed'],
      [
        () => pool.importPointer(elsewhere, any(whole)),
        'importPointer: stream must be one of device 0, not of device 1',
      ],
      [() => pool.importPointer(stream, any(5)), 'importPointer: pointer must be what exportPointer() gave, not 5'],
      [
        () => pool.importPointer(stream, any({ ...pointer, dtype: 'x' })),
        'MemoryPool.importPointer: pointer.dtype must',
      ],
      [() => pool.importPointer(stream, any({ ...pointer, length: 0 })), 'pointer.length must be an integer from 1 to'],
      [() => pool.importPointer(stream, any({ ...pointer, data: 5 })), 'pointer.data must be base64 text, not 5'],
      [() => pool.importPointer(stream, any(pointer)), 'importPointer: pointer.data must be 64 bytes, not 0'],
    ] as const) {
      expect(use).toThrow(message)
    }
  })
})

describe('disposal of a MemoryPool', () => {
  test('takes effect when the last memory of the pool is freed', () => {
    const pool = MemoryPool.create(device)
    const buffer = pool.allocate(stream, 'f32', 3)
    pool.dispose()
    pool.dispose()
    expect(buffer.fillSync(2, { stream }).toArraySync()).toEqual(Float32Array.of(2, 2, 2))
    expect(device.used).toBeGreaterThan(0)
    buffer.disposeOn(stream)
    stream.synchronizeSync()
    expect(device.used).toBe(0)
  })

  test('makes every later use throw DisposedError', async () => {
    const pool = MemoryPool.create(device)
    {
      await using same = pool
      expect(same.disposed).toBe(false)
    }
    for (const use of [
      () => pool.handle,
      () => pool.used,
      () => pool.reserved,
      () => pool.reuse,
      () => pool.releaseThreshold,
      () => pool.trimTo(),
      () => pool.resetHighWaterMarks(),
      () => pool.setReuse({ opportunistic: true }),
      () => pool.allocate(stream, 'f32', 1),
      () => pool.allocate(stream, 'f32', 0),
      () => pool.setAccess(second, 'readWrite'),
      () => pool.getAccess(second),
      () => pool.setCurrent(),
      () => pool.export(),
      () => pool.exportPointer({} as never),
      () => pool.importPointer(stream, {} as never),
      () => MemoryPool.from(device.primaryContext, pool).handle,
    ]) {
      expect(use).toThrow(new DisposedError('MemoryPool'))
    }
  })

  test('does not affect the default pool', () => {
    const pool = MemoryPool.defaultOf(device)
    pool.dispose()
    expect(() => pool.used).toThrow(DisposedError)
    expect(MemoryPool.defaultOf(device.primaryContext).used.current).toBe(0)
  })
})

test('MemoryPool is printed in one line, also after dispose()', () => {
  const pool = MemoryPool.create(second)
  const handle = `0x${pool.handle.toString(16)}`
  expect(inspect(pool)).toBe(`MemoryPool { device: 1, handle: ${handle} }`)
  pool.dispose()
  expect(inspect(pool)).toBe(`MemoryPool { device: 1, handle: ${handle}, disposed: true }`)
})
