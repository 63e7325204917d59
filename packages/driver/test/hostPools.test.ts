import { inspect } from 'node:util'
import { memoryProtocol } from '@shoal/types'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { Particle, randomFloats, randomInteger, randomParticles } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, MemoryPool, pointerAttributes, Stream } = await import('@shoal/driver/shared')
const { toDLPack } = await import('@shoal/driver/dlpack')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const stream = Stream.create(device)
const other = Stream.create(second)

afterAll(() => {
  stream.dispose()
  other.dispose()
})
afterEach(() => {
  stream.synchronizeSync()
  other.synchronizeSync()
  expect([device.used, second.used]).toEqual([0, 0])
})

const kinds = [
  ['host', { location: 'host' }],
  ['host', { location: { hostNode: 0 } }],
  ['managed', { managed: true }],
  ['managed', { managed: true, location: 'device' }],
  ['managed', { managed: true, location: 'host' }],
  ['managed', { managed: true, location: { hostNode: 0 } }],
] as const

describe.each(kinds)('a pool of %s memory (%o)', (memory, options) => {
  test('allocates memory that the stream uses and frees', async () => {
    using pool = MemoryPool.create(device, options)
    expect([pool.memory, pool.device]).toEqual([memory, device])
    expect(inspect(pool)).toContain(`memory: '${memory}'`)
    const values = randomFloats(randomInteger(1, 3000) * 2 + 1)
    const structs = randomParticles(7)
    const floats = pool.allocate(stream, 'f32', values.length)
    const particles = pool.allocate(stream, Particle, 7)
    expect(await floats.copyFrom(values, { stream }).toArray({ stream })).toEqual(values)
    expect(particles.copyFromSync(structs, { stream }).toArraySync({ stream })).toEqual(structs)
    using plain = DeviceBuffer.allocate(device, 'f32', values.length)
    plain.copyFrom(floats, { stream })
    expect(await plain.toArray({ stream })).toEqual(values)
    expect(floats.fillSync(3, { stream }).toArraySync({ stream })).toEqual(new Float32Array(values.length).fill(3))
    expect(pool.used.current).toBeGreaterThanOrEqual(floats.byteLength + particles.byteLength)
    const { IS_MANAGED, MEMPOOL_HANDLE } = pointerAttributes(device, floats.address, ['IS_MANAGED', 'MEMPOOL_HANDLE'])
    expect([IS_MANAGED, MEMPOOL_HANDLE]).toEqual([memory === 'managed', pool.handle])
    floats.disposeOn(stream)
    particles.dispose()
    stream.synchronizeSync()
    expect(pool.used.current).toBe(0)
  })

  test('uses no device memory', () => {
    using pool = MemoryPool.create(device, { ...options, maximumBytes: 2 ** 26 })
    pool.releaseThreshold = Number.POSITIVE_INFINITY
    using buffer = pool.allocate(stream, 'u8', 1001)
    buffer.disposeOn(stream)
    stream.synchronizeSync()
    expect(pool.reserved.current).toBeGreaterThan(0)
    if (memory === 'host') expect(device.used).toBe(0)
    pool.trimTo(0)
    expect(pool.reserved.current).toBe(0)
  })

  test('allocates nothing for zero elements, and fails for too many', () => {
    using pool = MemoryPool.create(device, { ...options, maximumBytes: 2 ** 25 })
    using empty = pool.allocate(stream, 'f32', 0)
    expect([empty.address, empty.length, pool.used.current]).toEqual([0n, 0, 0])
    expect(() => pool.allocate(stream, 'u8', 2 ** 26)).toThrow('CUDA_ERROR_OUT_OF_MEMORY')
  })

  test('cannot be exported or become the current pool of a device', () => {
    using pool = MemoryPool.create(device, options)
    expect(() => pool.export('posix-fd')).toThrow('it was made with no handles, not posix-fd')
    expect(() => pool.setCurrent()).toThrow(
      new TypeError(
        `MemoryPool.setCurrent: this must be a pool of device memory, not of ${memory} memory: allocate() takes from it`,
      ),
    )
    expect(() => MemoryPool.create(device, { ...options, handleTypes: 'posix-fd' })).toThrow(
      new TypeError(
        `MemoryPool.create: handleTypes must be left out for ${memory} memory, which is not exported, not 'posix-fd'`,
      ),
    )
  })

  test('lives until its last memory is freed, also memory allocated through another object', () => {
    const pool = MemoryPool.create(device, options)
    const again = MemoryPool.from(device, pool)
    expect(again.memory).toBe(memory)
    const buffer = pool.allocate(stream, 'f32', 3)
    pool.dispose()
    expect(buffer.fillSync(2, { stream }).toArraySync({ stream })).toEqual(Float32Array.of(2, 2, 2))
    buffer.disposeOn(stream)
    expect(() => pool.allocate(stream, 'f32', 3)).toThrow('MemoryPool was disposed')
  })
})

describe('access to pool memory', () => {
  test('of the host: only the owner at first, another device after setAccess', () => {
    using pool = MemoryPool.create(device, { location: 'host' })
    const access = () => [pool.getAccess('host'), pool.getAccess(device), pool.getAccess(second)]
    expect(access()).toEqual(['readWrite', 'readWrite', 'none'])
    const refused = (ordinal: number): string =>
      "MemoryPool.allocate: stream must be a stream of one that the pool's memory can be reached from (setAccess), " +
      `not 'one of device ${ordinal}'`
    expect(() => pool.allocate(other, 'u8', 16)).toThrow(new TypeError(refused(1)))
    pool.setAccess(second, 'readWrite')
    using theirs = pool.allocate(other, 'u8', 16)
    expect(theirs.fillSync(5, { stream: other }).toArraySync({ stream: other })).toEqual(new Uint8Array(16).fill(5))
    pool.setAccess(device, 'none')
    expect(access()).toEqual(['readWrite', 'none', 'readWrite'])
    expect(() => pool.allocate(stream, 'u8', 16)).toThrow(new TypeError(refused(0)))
    expect(pool.used.current).toBe(theirs.byteLength)
  })

  test('of managed memory: every device', () => {
    using pool = MemoryPool.create(device, { managed: true })
    using theirs = pool.allocate(other, 'u8', 16)
    using ours = pool.allocate(stream, 'u8', 16)
    for (const [buffer, on] of [
      [theirs, other],
      [ours, stream],
    ] as const) {
      expect(buffer.fillSync(5, { stream: on }).toArraySync({ stream: on })).toEqual(new Uint8Array(16).fill(5))
    }
  })

  test('host pool memory can be given access; managed memory needs none', () => {
    using host = MemoryPool.create(device, { location: 'host' })
    using managed = MemoryPool.create(device, { managed: true })
    using granted = host.allocate(stream, 'f32', 3)
    using plain = managed.allocate(stream, 'f32', 3)
    expect(granted[memoryProtocol]).toMatchObject({ access: 'granted', deviceOrdinal: 0, dtype: 'f32', length: 3 })
    expect(plain[memoryProtocol].access).toBeUndefined()
    using capsule = toDLPack(granted, { deviceType: 'cudaHost' })
    expect(capsule.taken).toBe(false)
  })
})

describe('MemoryPool refuses', () => {
  const places = "location must be 'device', 'host' or { hostNode }"
  test.each([
    [{ location: 'Host' }, TypeError, `${places}, not 'Host'`],
    [{ location: 5 }, TypeError, `${places}, not 5`],
    [{ location: null }, TypeError, `${places}, not null`],
    [{ location: device }, TypeError, `${places}, not `],
    [{ location: {} }, TypeError, 'location.hostNode must be an integer from 0 to 2147483647, not undefined'],
    [{ location: { hostNode: -1 } }, RangeError, 'location.hostNode must be an integer from 0 to 2147483647, not -1'],
    [
      { location: { hostNode: 'current' } },
      TypeError,
      "location.hostNode must be an integer from 0 to 2147483647, not '",
    ],
    [{ location: { node: 0 } }, TypeError, 'location must have only the keys hostNode, not '],
    [{ managed: 1 }, TypeError, 'managed must be a boolean, not 1'],
    [{ managed: null }, TypeError, 'managed must be a boolean, not null'],
  ] as const)('the options %o', (options, type, message) => {
    const make = (): unknown => MemoryPool.create(device, options as never)
    expect(make).toThrow(type)
    expect(make).toThrow(`MemoryPool.create: ${message}`)
  })

  test("a NUMA node that does not exist, with the driver's error", () => {
    expect(() => MemoryPool.create(device, { location: { hostNode: 4711 } })).toThrow('cuMemPoolCreate failed')
  })
})
