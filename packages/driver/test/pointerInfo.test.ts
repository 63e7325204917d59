import { DisposedError, memoryProtocol, StatusError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { Particle, randomInteger } from './support/elements.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const {
  AddressRange,
  allocationGranularity,
  DeviceBuffer,
  finishReleasesSync,
  GrowableBuffer,
  ManagedBuffer,
  MemoryPool,
  PhysicalMemory,
  PinnedBuffer,
  pointerAttribute,
  pointerAttributes,
  pointerInfo,
  setPointerAttribute,
  Stream,
} = await import('@shoal/driver/shared')
const { readers } = await import('../src/memory/pointer/pointerAttributes.js')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const unregistered = {
  type: 'unregistered',
  deviceOrdinal: undefined,
  devicePointer: undefined,
  hostPointer: undefined,
  rangeStart: 0n,
  rangeLength: 0,
}

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

test('peer tokens have the layout of CUDA_POINTER_ATTRIBUTE_P2P_TOKENS', () => {
  const view = new DataView(new ArrayBuffer(16))
  view.setBigUint64(0, 0x1122_3344_5566_7788n, true)
  view.setUint32(8, 0x99aa_bbcc, true)
  view.setUint32(12, 0xffff_ffff, true)
  expect(readers.P2P_TOKENS(view)).toEqual({ p2pToken: 0x1122_3344_5566_7788n, vaSpaceToken: 0x99aa_bbcc })
})

describe('pointerInfo', () => {
  test('returns the device and the allocation of device memory for every device or context', () => {
    const length = randomInteger(1, 999) * 2 + 1
    using buffer = DeviceBuffer.allocate(second, 'u8', length)
    const { address } = buffer
    for (const owner of [device, device.primaryContext, second, second.primaryContext]) {
      expect(pointerInfo(owner, buffer)).toEqual({
        type: 'device',
        deviceOrdinal: 1,
        devicePointer: address,
        hostPointer: undefined,
        rangeStart: address,
        rangeLength: length,
      })
    }
  })

  test('accepts an address or a view within the allocation, up to its last byte', () => {
    using buffer = DeviceBuffer.allocate(device, Particle, 7)
    const { address, byteLength } = buffer
    const facts = { type: 'device', rangeStart: address, rangeLength: byteLength }
    expect(pointerInfo(device, buffer.slice(3))).toMatchObject({ ...facts, devicePointer: address + 72n })
    const last = address + BigInt(byteLength) - 1n
    expect(pointerInfo(device, last)).toMatchObject({ ...facts, devicePointer: last })
    expect(pointerInfo(device, { [memoryProtocol]: buffer[memoryProtocol] })).toMatchObject(facts)
  })

  test('distinguishes page-locked, managed, stream-ordered and mapped memory', async () => {
    using pinned = PinnedBuffer.allocate(device, 'f32', 3, { mapped: true })
    expect(pointerInfo(device, pinned)).toMatchObject({
      type: 'host',
      devicePointer: pinned.deviceAddress,
      hostPointer: pinned.address,
      rangeLength: 12,
    })
    using managed = ManagedBuffer.allocate(second, 'f32', 5)
    const { address } = managed
    expect(pointerInfo(device, managed)).toEqual({
      type: 'managed',
      deviceOrdinal: 1,
      devicePointer: address,
      hostPointer: address,
      rangeStart: address,
      rangeLength: 20,
    })
    using stream = Stream.create(device)
    using pool = MemoryPool.create(device)
    using pooled = pool.allocate(stream, 'f32', 5)
    const { address: fromPool } = pooled
    expect(pointerInfo(device, pooled)).toMatchObject({ type: 'device', deviceOrdinal: 0, devicePointer: fromPool })
    using growable = GrowableBuffer.reserve(second, 'f32', { maximumLength: 9, length: 5 })
    const { address: mapped } = growable
    expect(pointerInfo(device, growable)).toMatchObject({ type: 'device', deviceOrdinal: 1, devicePointer: mapped })
    // Without elements it has an address, but no memory.
    growable.resize(0)
    finishReleasesSync()
    expect(pointerInfo(device, growable)).toEqual(unregistered)
  })

  test('reports unknown and freed addresses as unregistered', () => {
    for (const address of [0n, 5n, 2n ** 63n, 2n ** 64n - 1n]) {
      expect(pointerInfo(device, address)).toEqual(unregistered)
    }
    using empty = DeviceBuffer.allocate(device, 'f32', 0)
    expect(pointerInfo(device, empty)).toEqual(unregistered)
    const buffer = DeviceBuffer.allocate(device, 'f32', 3)
    const { address } = buffer
    expect(pointerInfo(device, address).type).toBe('device')
    buffer.disposeSync()
    expect(pointerInfo(device, address)).toEqual(unregistered)
    expect(() => pointerInfo(device, buffer)).toThrow(new DisposedError('DeviceBuffer'))
  })

  test.each([
    [5, 5n, TypeError, 'owner must be a Device or a Context, not 5'],
    [undefined, 5n, TypeError, 'owner must be a Device or a Context, not undefined'],
    [5n, device, TypeError, 'owner must be a Device or a Context, not 5n'],
    [device, 5, TypeError, 'pointer must be a bigint, not 5'],
    [device, Number.NaN, TypeError, 'pointer must be a bigint, not NaN'],
    [device, undefined, TypeError, 'pointer must be a bigint, not undefined'],
    [device, {}, TypeError, 'pointer must be a bigint, not a plain object'],
    [device, new Float32Array(3), TypeError, 'pointer must be a bigint, not an object of class Float32Array'],
    [device, -5n, RangeError, 'pointer must be a bigint of 64 bits without a sign, not -5n'],
    [device, 2n ** 64n, RangeError, `pointer must be a bigint of 64 bits without a sign, not ${2n ** 64n}n`],
  ] as const)('refuses %o, %o', (owner, pointer, type, message) => {
    expect(() => pointerInfo(owner as never, pointer as never)).toThrow(new type(`pointerInfo: ${message}`))
  })

  test('refuses malformed answers of the memory protocol, and rethrows errors of getters', () => {
    const range = { version: 0, address: 256n, byteLength: 4, deviceOrdinal: 0, context: 0n }
    const of = (change: object): never => ({ [memoryProtocol]: { ...range, ...change } }) as never
    expect(() => pointerInfo(device, of({ address: 5 }))).toThrow(/^pointerInfo: pointer.address must be/)
    expect(() => pointerInfo(device, of({ byteLength: -1 }))).toThrow(/^pointerInfo: pointer.byteLength must be/)
    const thrown = new Error('from a getter')
    const memory = {
      get [memoryProtocol](): never {
        throw thrown
      },
    }
    expect(() => pointerInfo(device, memory)).toThrow(thrown)
  })
})

describe('pointerAttribute and pointerAttributes', () => {
  type Name = Parameters<typeof pointerAttribute>[2]
  const all = Object.keys(readers) as Name[]

  test('return each applicable attribute alone and all together', () => {
    using buffer = DeviceBuffer.allocate(second, 'u8', 1001)
    const { address } = buffer
    for (const at of [address, address + 5n]) {
      const facts = pointerAttributes(second, at, all)
      expect(facts).toMatchObject({
        CONTEXT: second.primaryContext.handle,
        MEMORY_TYPE: 'device',
        DEVICE_POINTER: at,
        HOST_POINTER: 0n,
        SYNC_MEMOPS: true,
        IS_MANAGED: false,
        DEVICE_ORDINAL: 1,
        IS_LEGACY_CUDA_IPC_CAPABLE: true,
        RANGE_START_ADDR: address,
        RANGE_SIZE: 1001,
        MAPPED: true,
        ALLOWED_HANDLE_TYPES: [],
        ACCESS_FLAGS: 'readWrite',
        MEMPOOL_HANDLE: 0n,
      })
      const alone = all.filter((name) => pointerAttribute(second, at, name) !== undefined)
      expect(alone).not.toContain('HOST_POINTER')
      for (const name of alone) expect([name, pointerAttribute(second, at, name)]).toEqual([name, facts[name]])
      expect(alone.length).toBeGreaterThan(10)
    }
  })

  test('report the access of the device to mapped memory', () => {
    const unit = allocationGranularity(device)
    using physical = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit)
    using mapped = range.map(physical)
    expect(pointerAttribute(device, mapped.address, 'ACCESS_FLAGS')).toBe('readWrite')
    mapped.setAccess(device, 'read')
    expect(pointerAttribute(device, mapped.address, 'ACCESS_FLAGS')).toBe('read')
    expect(pointerAttributes(device, mapped.address, ['ACCESS_FLAGS', 'CONTEXT'])).toEqual({
      ACCESS_FLAGS: 'read',
      CONTEXT: 0n,
    })
  })

  test('return nothing for unknown addresses', () => {
    for (const address of [0n, 4096n, 2n ** 64n - 1n]) {
      for (const name of all) expect([name, pointerAttribute(device, address, name)]).toEqual([name, undefined])
      const found = pointerAttributes(device, address, ['MEMORY_TYPE', 'DEVICE_ORDINAL', 'RANGE_SIZE', 'MAPPED'])
      expect(found).toEqual({ MEMORY_TYPE: 'unknown', DEVICE_ORDINAL: -2, RANGE_SIZE: 0, MAPPED: false })
    }
    expect(pointerAttributes(device, 0n, [])).toEqual({})
  })

  test('can set SYNC_MEMOPS', () => {
    using buffer = DeviceBuffer.allocate(device, 'u8', 8)
    for (const value of [true, false, true]) {
      setPointerAttribute(device, buffer.address, 'SYNC_MEMOPS', value)
      expect(pointerAttribute(device, buffer.address, 'SYNC_MEMOPS')).toBe(value)
    }
    expect(() => setPointerAttribute(device, 0n, 'SYNC_MEMOPS', true)).toThrow(StatusError)
  })

  test.each([
    ['pointerAttribute: owner must be a Device or a Context, not 5', () => pointerAttribute(5 as never, 0n, 'MAPPED')],
    ['pointerAttribute: address must be a bigint, not 5', () => pointerAttribute(device, 5 as never, 'MAPPED')],
    ['pointerAttribute: address must be a bigint of 64 bits', () => pointerAttribute(device, -5n, 'MAPPED')],
    ['pointerAttribute: attribute must be ', () => pointerAttribute(device, 0n, 'SIZE' as 'MAPPED')],
    ['pointerAttributes: owner must be a Device or a Context, not 5', () => pointerAttributes(5 as never, 0n, [])],
    ['pointerAttributes: address must be a bigint, not 5', () => pointerAttributes(device, 5 as never, [])],
    ['pointerAttributes: attributes must be a list of names', () => pointerAttributes(device, 0n, 'MAPPED' as never)],
    ['pointerAttributes: attributes must be ', () => pointerAttributes(device, 0n, ['SIZE' as 'MAPPED'])],
    ['setPointerAttribute: owner must be a Device or', () => setPointerAttribute(5 as never, 0n, 'SYNC_MEMOPS', true)],
    [
      'setPointerAttribute: address must be a bigint',
      () => setPointerAttribute(device, 5 as never, 'SYNC_MEMOPS', true),
    ],
    [
      "setPointerAttribute: attribute must be 'SYNC_MEMOPS', not 'MAPPED'",
      () => setPointerAttribute(device, 0n, 'MAPPED' as 'SYNC_MEMOPS', true),
    ],
    [
      'setPointerAttribute: value must be a boolean, not 1',
      () => setPointerAttribute(device, 0n, 'SYNC_MEMOPS', 1 as never),
    ],
  ])('refuse with %s', (message, use) => expect(use).toThrow(message))
})
