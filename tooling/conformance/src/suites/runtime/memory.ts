import assert from 'node:assert/strict'
import {
  DeviceBuffer as DriverBuffer,
  PinnedBuffer as DriverPinned,
  rangeAttribute,
  rangeAttributes,
} from '@shoal/driver'
import {
  currentDevice,
  Device,
  DeviceBuffer,
  DisposedError,
  lastError,
  ManagedBuffer,
  PinnedBuffer,
  pointerInfo,
  StatusError,
  Stream,
  setDevice,
} from '@shoal/runtime'
import { discardBatch, PitchedBuffer, prefetchBatch } from '@shoal/runtime/memory'
import type { DType } from '@shoal/types'
import type { Suite } from '../../suite.js'

export const memorySuite: Suite = {
  name: 'runtime memory',
  cases: [
    {
      name: 'memory is made on the current device, or on the one named, and stays there',
      requires: { devices: 2 },
      run(t) {
        const before = currentDevice()
        t.defer(() => void setDevice(before))
        setDevice(1)
        const here = t.own(DeviceBuffer.from(new Int32Array([1, 2, 3])))
        const there = t.own(DeviceBuffer.zeros('i32', 3, { device: t.device }))
        assert.equal(here.device, Device.get(1))
        assert.equal(there.device, Device.get(0))
        setDevice(0)
        assert.equal(pointerInfo(here).deviceOrdinal, 1)
        there.copyFromSync(here)
        assert.deepEqual([...there.toArraySync()], [1, 2, 3])
        here.fillSync(7)
        assert.deepEqual([...here.toArraySync()], [7, 7, 7])
      },
    },
    {
      name: 'pitched memory of two and three dimensions is made by the runtime, copied, filled and cut',
      async run(t) {
        const stream = t.own(Stream.create({ nonBlocking: true }))
        for (const depth of [undefined, t.random.integer(2, 5)]) {
          const extent = { width: t.random.integer(1, 900), height: t.random.integer(2, 40), depth }
          const length = extent.width * extent.height * (depth ?? 1)
          const data = Float64Array.from({ length }, (_, index) => index * 0.5)
          const image = t.own(PitchedBuffer.allocate('f64', extent))
          assert(image.pitch >= extent.width * 8)
          image.copyFrom(data, { stream })
          assert.deepEqual(await image.toArray({ stream }), data)
          image.region({ y: 1, height: 1 }).fill(-1, { stream })
          assert((await image.row(1).toArray({ stream })).every((value) => value === -1))
          assert.deepEqual(await image.row(0).toArray({ stream }), data.slice(0, extent.width))
        }
        assert.throws(() => PitchedBuffer.allocate('f64', { width: 0, height: 1 }), RangeError)
      },
    },
    {
      name: 'attributes of streams, the cache configuration, and batches of managed memory go through the runtime',
      async run(t) {
        const device = currentDevice()
        const stream = t.own(Stream.create({ nonBlocking: true }))
        const other = t.own(Stream.create({ nonBlocking: true }))
        stream.setAttributes({ synchronizationPolicy: 'yield' })
        assert.equal(other.copyAttributes(stream).attributes.synchronizationPolicy, 'yield')
        const before = device.cacheConfig
        device.cacheConfig = 'shared'
        assert.equal(device.cacheConfig, 'shared')
        device.cacheConfig = before
        if (device.attribute('ConcurrentManagedAccess') === 0) return
        const pieces = Array.from({ length: 3 }, () => t.own(ManagedBuffer.allocate('u8', 4096)))
        prefetchBatch(
          pieces.map((memory) => ({ memory, place: device })),
          { stream },
        )
        await stream.synchronize()
        for (const { attributes } of pieces) assert.equal(attributes.lastPrefetchLocation?.type, 'device')
        discardBatch(pieces, { stream })
        await stream.synchronize()
      },
    },
    {
      name: 'arrays travel to the device and back, queued and at once',
      async run(t) {
        const stream = t.own(Stream.create({ nonBlocking: true }))
        const length = t.random.integer(1, 100_000)
        const data = Float64Array.from({ length }, (_, index) => index * 1.5)
        const memory = t.own(DeviceBuffer.allocate('f64', length))
        memory.copyFrom(data, { stream })
        assert.deepEqual(await memory.toArray({ stream }), data)
        assert.deepEqual(
          memory.copyFromSync(data.map((value) => -value)).toArraySync()[length - 1],
          -(data.at(-1) ?? 0),
        )
        const pinned = t.own(PinnedBuffer.from(data))
        memory.copyFrom(pinned, { stream })
        const back = t.own(PinnedBuffer.allocate('f64', length))
        assert.equal(await memory.copyTo(back, { stream }), back)
        assert.deepEqual(back.array, data)
      },
    },
    {
      name: 'fills of every width',
      run(t) {
        const cases: [DType, number | bigint | boolean | [number, number]][] = [
          ['u8', 200],
          ['i16', -2],
          ['u32', 0xdeadbeef],
          ['f32', 1.5],
          ['i64', -5n],
          ['f64', Math.PI],
          ['bool', true],
          ['complex64', [1, -2]],
          ['complex128', [0.5, 3]],
          ['u32', 0],
        ]
        for (const [dtype, value] of cases) {
          const memory = t.own(DeviceBuffer.zeros(dtype, 37))
          memory.slice(1, 36).fillSync(value as never)
          const expected = t.own(DriverBuffer.zeros(t.device, dtype, 37))
          expected.slice(1, 36).fillSync(value as never)
          assert.deepEqual(memory.toArraySync(), expected.toArraySync(), dtype)
        }
      },
    },
    {
      name: 'views share the memory, and end with it',
      run(t) {
        const memory = DeviceBuffer.from(new Uint32Array([1, 2, 3, 4]))
        const view = memory.slice(-2)
        assert.deepEqual([...view.toArraySync()], [3, 4])
        view.fillSync(9)
        assert.deepEqual([...memory.toArraySync()], [1, 2, 9, 9])
        assert.equal(memory.reinterpret('u8').length, 16)
        assert.throws(() => memory.slice(3, 2), RangeError)
        assert.throws(() => memory.slice(0, 5), RangeError)
        assert.throws(() => memory.slice(1, 2).reinterpret('u64'), RangeError)
        const other = t.own(DeviceBuffer.zeros('u32', 2))
        memory.dispose()
        memory.dispose()
        for (const gone of [memory, view]) {
          assert.equal(gone.disposed, true)
          assert.throws(() => gone.address, DisposedError)
          assert.throws(() => gone.fill(1), DisposedError)
          assert.throws(() => gone.slice(), DisposedError)
        }
        assert.throws(() => other.copyFrom(view), DisposedError)
      },
    },
    {
      name: 'zero elements are no allocation, and too many are refused by name',
      run(t) {
        lastError()
        const none = t.own(DeviceBuffer.allocate('f32', 0))
        assert.equal(none.address, 0n)
        assert.deepEqual([...none.fillSync(1).toArraySync()], [])
        const wrong = 2 ** 45
        assert.throws(
          () => DeviceBuffer.allocate('u8', wrong),
          (error: unknown) => {
            assert.ok(error instanceof StatusError)
            assert.equal(error.code, 'cudaErrorMemoryAllocation')
            assert.equal(error.api, 'cudaMalloc')
            return true
          },
        )
        assert.equal(lastError()?.code, 'cudaErrorMemoryAllocation')
      },
    },
    {
      name: 'lengths, dtypes and arrays that are none',
      run(t) {
        for (const length of [Number.NaN, 1.5, '3', null, undefined, 3n]) {
          assert.throws(() => DeviceBuffer.allocate('f32', length as number), TypeError)
          assert.throws(() => PinnedBuffer.allocate('f32', length as number), TypeError)
          assert.throws(() => ManagedBuffer.allocate('f32', length as number), TypeError)
        }
        for (const length of [-1, Number.POSITIVE_INFINITY, 2 ** 53]) {
          assert.throws(() => DeviceBuffer.allocate('f32', length), RangeError)
          assert.throws(() => ManagedBuffer.allocate('f32', length), RangeError)
        }
        const memory = t.own(DeviceBuffer.zeros('f32', 3))
        assert.throws(() => DeviceBuffer.allocate('float' as DType, 3), TypeError)
        assert.throws(() => DeviceBuffer.from([1, 2] as unknown as Float32Array), TypeError)
        assert.throws(
          () => DeviceBuffer.allocate('f32', 3, Stream.defaultOf() as object),
          /^TypeError: DeviceBuffer.allocate: options must be/,
        )
        assert.throws(() => memory.copyFrom(new Float32Array(4)), RangeError)
        assert.throws(() => memory.copyFrom(new Float64Array(3) as unknown as Float32Array), TypeError)
        assert.throws(() => memory.copyToSync(new Float32Array(2)), RangeError)
        assert.throws(() => memory.fill('1' as unknown as number), TypeError)
        assert.throws(() => DeviceBuffer.fromAddress(-1n, 'u8', 1), RangeError)
        assert.throws(() => DeviceBuffer.fromAddress(5 as unknown as bigint, 'u8', 1), TypeError)
        assert.throws(() => DeviceBuffer.allocateOn({} as Stream, 'u8', 1), TypeError)
        assert.throws(() => DeviceBuffer.view({} as DeviceBuffer, 'u8'), TypeError)
      },
    },
    {
      name: 'stream-ordered memory is used on its stream and freed on it',
      async run(t) {
        const stream = t.own(Stream.create({ nonBlocking: true }))
        const memory = DeviceBuffer.allocateOn(stream, 'i32', 1000)
        memory.fill(5, { stream })
        const result = memory.toArray({ stream })
        memory.dispose()
        assert.equal((await result)[999], 5)
        const other = DeviceBuffer.allocate('i32', 4)
        other.fill(1, { stream })
        other.disposeOn(stream)
        assert.equal(other.disposed, true)
        await stream.synchronize()
        await using _ = DeviceBuffer.allocate('i32', 4)
      },
    },
    {
      name: 'page-locked memory is an ArrayBuffer until it is disposed of',
      async run(t) {
        const pinned = PinnedBuffer.allocate('i32', 4, { mapped: true })
        const { array, buffer } = pinned
        array.set([1, 2, 3, 4])
        assert.equal(buffer.byteLength, 16)
        assert.equal(pointerInfo(pinned.address).type, 'host')
        assert.ok(pinned.deviceAddress > 0n)
        const memory = t.own(DeviceBuffer.from(pinned.array))
        assert.deepEqual([...memory.toArraySync()], [1, 2, 3, 4])
        pinned.dispose()
        assert.equal(array.length, 0)
        assert.throws(() => pinned.array, DisposedError)
        assert.throws(() => memory.copyFrom(pinned), DisposedError)
        const plain = t.own(PinnedBuffer.allocate('u8', 4))
        assert.throws(() => plain.deviceAddress, TypeError)
      },
    },
    {
      name: 'managed memory is seen by host and device',
      async run(t) {
        const managed = ManagedBuffer.allocate('f32', 1024)
        const { array, memory } = managed
        array.fill(2)
        const copy = t.own(DeviceBuffer.allocate('f32', 1024))
        copy.copyFromSync(managed)
        assert.equal(copy.toArraySync()[1023], 2)
        memory.fillSync(3)
        assert.equal(array[1023], 3)
        assert.equal(pointerInfo(managed).type, 'managed')
        const stream = t.own(Stream.create())
        managed.advise('readMostly').advise('preferredLocation', t.device).advise('accessedBy', 'host')
        managed.prefetch(0, { stream }).prefetch('host', { stream })
        await stream.synchronize()
        const { attributes } = managed
        assert.equal(attributes.readMostly, true)
        assert.deepEqual(attributes.preferredLocation, { type: 'device', deviceOrdinal: 0 })
        assert.deepEqual(attributes.accessedBy, [-1])
        assert.deepEqual(attributes.lastPrefetchLocation, { type: 'host' })
        managed.unadvise('readMostly').unadvise('preferredLocation').unadvise('accessedBy', 'host')
        assert.equal(managed.attributes.readMostly, false)
        assert.equal(managed.attributes.preferredLocation, undefined)
        assert.throws(() => managed.advise('often' as 'readMostly'), TypeError)
        assert.throws(() => managed.advise('accessedBy'), TypeError)
        assert.throws(() => managed.prefetch(99), RangeError)
        assert.throws(() => managed.prefetch('moon' as 'host'), TypeError)
        assert.throws(() => ManagedBuffer.allocate('f32', 0), RangeError)
        managed.dispose()
        assert.equal(array.length, 0)
        assert.throws(() => memory.address, DisposedError)
        assert.throws(() => managed.array, DisposedError)
      },
    },
    {
      name: 'advice that the runtime gave is read through the driver',
      async run(t) {
        const managed = t.own(ManagedBuffer.allocate('f32', 4096))
        managed.array.fill(1)
        managed.advise('readMostly').advise('preferredLocation', t.device).advise('accessedBy', t.device)
        managed.prefetch(0)
        await t.device.defaultStream.synchronize()
        assert.equal(rangeAttribute(t.device, managed, 'READ_MOSTLY'), true)
        assert.equal(rangeAttribute(t.device, managed.memory.slice(16, 32), 'PREFERRED_LOCATION'), 0)
        const names = ['ACCESSED_BY', 'LAST_PREFETCH_LOCATION', 'PREFERRED_LOCATION_TYPE'] as const
        const all = rangeAttributes(t.device, managed, names)
        assert.deepEqual(all, { ACCESSED_BY: [0], LAST_PREFETCH_LOCATION: 0, PREFERRED_LOCATION_TYPE: 'device' })
        const plain = t.own(DeviceBuffer.allocate('u8', 16))
        assert.throws(() => rangeAttribute(t.device, plain, 'READ_MOSTLY'), { name: 'StatusError' })
      },
    },
    {
      name: 'managed memory is attached to the host and to a stream',
      async run(t) {
        const managed = t.own(ManagedBuffer.allocate('u8', 64, { attach: 'host' }))
        managed.array.fill(1)
        const stream = t.own(Stream.create())
        managed.attachTo(stream)
        await stream.synchronize()
        managed.memory.fill(9, { stream })
        await stream.synchronize()
        assert.equal(managed.array[63], 9)
        assert.throws(() => managed.attachTo({} as Stream), TypeError)
        assert.throws(() => managed.attachTo(stream, 'all' as 'single'), TypeError)
        assert.throws(() => ManagedBuffer.allocate('u8', 64, { attach: 'all' as 'host' }), TypeError)
      },
    },
    {
      name: 'pointers are told apart',
      run(t) {
        const memory = t.own(DeviceBuffer.zeros('u8', 10))
        const info = pointerInfo(memory.slice(3))
        assert.equal(info.type, 'device')
        assert.equal(info.deviceOrdinal, 0)
        assert.equal(info.devicePointer, memory.address + 3n)
        assert.equal(info.hostPointer, undefined)
        assert.equal(pointerInfo(0x1000n).type, 'unregistered')
        assert.equal(pointerInfo(0x1000n).deviceOrdinal, undefined)
        assert.throws(() => pointerInfo('x' as unknown as bigint), TypeError)
      },
    },
    {
      name: 'memory of the driver and of the runtime is each other’s, without a copy',
      async run(t) {
        const buffer = DriverBuffer.from(t.device, new Int32Array([1, 2, 3]))
        const ours = t.own(DeviceBuffer.from(new Int32Array([4, 5, 6])))
        const theirsHere = DeviceBuffer.view(buffer, 'i32')
        const oursThere = DriverBuffer.view(t.device, ours, 'i32')
        assert.equal(theirsHere.address, buffer.address)
        assert.equal(oursThere.address, ours.address)
        theirsHere.fillSync(8)
        oursThere.fillSync(9)
        assert.deepEqual([...buffer.toArraySync()], [8, 8, 8])
        assert.deepEqual([...ours.toArraySync()], [9, 9, 9])
        ours.copyFromSync(buffer)
        assert.deepEqual([...oursThere.toArraySync()], [8, 8, 8])
        const pinned = t.own(DriverPinned.from(t.device, new Int32Array([7, 7, 1])))
        const stream = t.own(t.device.createStream())
        ours.copyFrom(pinned, { stream })
        assert.deepEqual([...(await oursThere.toArray({ stream }))], [7, 7, 1])
        const pinnedHere = t.own(PinnedBuffer.allocate('i32', 3))
        await oursThere.copyTo(pinnedHere.array, { stream })
        assert.deepEqual([...pinnedHere.array], [7, 7, 1])
        buffer.dispose()
        assert.throws(() => theirsHere.address, DisposedError)
        ours.dispose()
        assert.throws(() => oursThere.address, DisposedError)
      },
    },
    {
      name: 'a stream of another device is refused',
      requires: { devices: 2 },
      run(t) {
        const memory = t.own(DeviceBuffer.zeros('u8', 4, { device: 0 }))
        const stream = t.own(Stream.create({ device: 1 }))
        assert.throws(
          () => memory.fill(1, { stream }),
          /DeviceBuffer.fill: stream must be one of device 0, not of device 1/,
        )
        assert.throws(() => memory.disposeOn(stream), TypeError)
        assert.equal(memory.disposed, false)
      },
    },
  ],
}
