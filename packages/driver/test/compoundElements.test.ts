import { type CompoundType, defineArray, defineStruct, defineTuple, memoryProtocol } from '@shoal/types'
import { afterAll, describe, expect, test } from 'vitest'
import { randomInteger } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim' })
const { CachingPool, DeviceBuffer, GrowableBuffer, ManagedBuffer, MemoryPool, PinnedBuffer, Stream } = await import(
  '@shoal/driver/shared'
)
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const stream = Stream.create(device)
const pool = MemoryPool.create(device)
const caching = CachingPool.create(device)
const owners: { dispose(): void }[] = []
function kept<T extends { dispose(): void }>(owner: T): T {
  owners.push(owner)
  return owner
}

afterAll(() => {
  pool.dispose()
  caching.dispose()
  for (const one of owners) one.dispose()
  stream.dispose()
  expect(device.used).toBe(0)
})

const number = (): number => randomInteger(-30_000, 30_000)
const Vector = defineArray('f32', 3)
const Matrix = defineArray(Vector, 2)
const Entry = defineTuple(['u8', 'f64', ['i16', 3]])
const Nested = defineTuple([Entry, Vector, defineStruct('Pair', { a: 'u8', b: 'i32' })])
const vector = (): number[] => [number(), number(), number()]
const entry = (): unknown[] => [randomInteger(0, 256), Math.random(), vector()]

/** Element types, each with a function for random values. */
const types: readonly (readonly [string, CompoundType, () => unknown])[] = [
  ['an array', Vector, vector],
  ['an array of arrays', Matrix, () => [vector(), vector()]],
  ['one byte', defineArray('u8', 1), () => [randomInteger(0, 256)]],
  ['a tuple', Entry, entry],
  ['a tuple of compounds', Nested, () => [entry(), vector(), { a: randomInteger(0, 256), b: number() }]],
]
const list = (make: () => unknown, length: number): never => Array.from({ length }, make) as never

describe.each(types)('elements that are %s', (_, type, make) => {
  const length = randomInteger(1, 40) * 2 + 1

  test.each([
    ['DeviceBuffer.allocate', () => DeviceBuffer.allocate(device, type, length)],
    ['DeviceBuffer.zeros', () => DeviceBuffer.zeros(device, type, length)],
    ['DeviceBuffer.allocateOn', () => DeviceBuffer.allocateOn(stream, type, length)],
    ['MemoryPool.allocate', () => pool.allocate(stream, type, length)],
    ['CachingPool.allocate', () => caching.allocate(stream, type, length)],
    ['GrowableBuffer', () => kept(GrowableBuffer.reserve(device, type, { maximumLength: length, length })).buffer],
    ['a view', () => DeviceBuffer.view(device, kept(DeviceBuffer.zeros(device, 'u8', type.bytes * length)), type)],
  ])('are written to and read from memory of %s', async (_name, allocate) => {
    using buffer = allocate()
    expect([buffer.dtype, buffer.length, buffer.byteLength]).toEqual([type, length, type.bytes * length])
    const values = list(make, length)
    buffer.copyFrom(values, { stream })
    expect(await buffer.toArray({ stream })).toEqual(values)
    const one = make() as never
    buffer.slice(1, 2).fillSync(one, { stream })
    expect(buffer.toArraySync({ stream })).toEqual((values as unknown[]).with(1, one))
    buffer.copyFromSync(type.encodeArray(values) as never, { stream })
    expect(buffer.slice(-1).toArraySync({ stream })).toEqual((values as unknown[]).slice(-1))
    expect(buffer[memoryProtocol].dtype).toBeUndefined()
    buffer.disposeOn(stream)
    stream.synchronizeSync()
  })

  test('work with from() and with page-locked, managed and pitched memory', async () => {
    const values = list(make, length)
    using buffer = DeviceBuffer.from(device, values, { dtype: type })
    expect(await buffer.toArray()).toEqual(values)
    using pinned = PinnedBuffer.from(device, values, { dtype: type })
    expect(type.decode(pinned.array as never)).toEqual(values)
    using copied = DeviceBuffer.allocate(device, type, length).copyFromSync(pinned)
    expect(copied.toArraySync()).toEqual(values)
    using managed = ManagedBuffer.allocate(device, type, length)
    managed.memory.copyFromSync(values)
    expect(managed.memory.toArraySync()).toEqual(values)
    using pitched = PitchedBuffer.from(device, list(make, length * 3), { width: length, height: 3, dtype: type })
    pitched.row(1).copyFromSync(values)
    expect(pitched.row(1).toArraySync()).toEqual(values)
  })

  test('accept empty lists, and refuse wrong values', () => {
    using empty = DeviceBuffer.allocate(device, type, 0)
    expect(empty.copyFromSync([] as never).toArraySync()).toEqual([])
    using buffer = DeviceBuffer.zeros(device, type, 2)
    const before = buffer.toArraySync()
    for (const wrong of [list(() => [], 2), list(() => null, 2), list(() => 5, 2)]) {
      expect(() => buffer.copyFromSync(wrong)).toThrow(/^DeviceBuffer.copyFromSync: source: .* must be an array of \d/)
    }
    expect(() => buffer.copyFromSync(list(make, 3))).toThrow(RangeError)
    expect(() => buffer.fillSync('x' as never)).toThrow(/^DeviceBuffer.fillSync: value: .* must be an array of \d/)
    // Each call of defineArray and defineTuple creates a new type.
    using other = PinnedBuffer.allocate(device, defineTuple([type]), 2)
    expect(() => buffer.copyFromSync(other as never)).toThrow(`source must be of ${type.name}, not '[${type.name}]'`)
    expect(buffer.toArraySync()).toEqual(before)
  })
})

test('allocate() refuses a wrong element type', () => {
  for (const wrong of [['f32', 3], ['u8'], { kind: 'array' }, null]) {
    expect(() => DeviceBuffer.allocate(device, wrong as never, 1)).toThrow(
      /^DeviceBuffer.allocate: dtype must be one of .*, or a type of defineStruct, defineArray or defineTuple, not /,
    )
  }
})
