import assert from 'node:assert/strict'
import {
  allocationGranularity,
  CachingPool,
  type Device,
  DeviceBuffer,
  DisposedError,
  driverVersion,
  MemoryPool,
  PinnedBuffer,
  StatusError,
  type Stream,
} from '@shoal/driver'
import type { Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { queueDelay } from '../../support/delay.js'
import { assertNothingLeft } from '../../support/leftovers.js'

const mebibyte = 2 ** 20

export const memoryPoolSuite: Suite = {
  name: 'driver memory pool',
  cases: [
    {
      name: 'what is allocated from a pool is memory, and counted',
      async run(t) {
        const pool = t.own(MemoryPool.create(t.device))
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        assert.deepEqual([pool.used.current, pool.reserved.current], [0, 0])
        let used = 0
        const buffers: DeviceBuffer<'i32'>[] = []
        for (let round = 0; round < 5; round += 1) {
          const data = t.random.array('i32', t.random.integer(1, 500_000))
          const buffer = pool.allocate(stream, 'i32', data.length)
          buffers.push(buffer)
          buffer.copyFrom(data, { stream })
          assertSameBits(await buffer.toArray({ stream }), data, 'i32')
          used += data.byteLength
          assert.ok(pool.used.current >= used, `${pool.used.current} of ${used} bytes`)
          assert.ok(pool.reserved.current >= pool.used.current)
        }
        const { high } = pool.used
        assert.ok(high >= pool.used.current && high >= used)
        for (const buffer of buffers) buffer.dispose()
        await stream.synchronize()
        assert.equal(pool.used.current, 0)
        assert.equal(pool.used.high, high)
        pool.resetHighWaterMarks()
        assert.equal(pool.used.high, 0)
        assert.equal(pool.reserved.high, pool.reserved.current)
        assert.equal(pool.allocate(stream, 'u8', 0).length, 0)
      },
    },
    {
      name: 'the release threshold keeps memory, trimming gives it back',
      async run(t) {
        const pool = t.own(MemoryPool.create(t.device))
        const stream = t.own(t.device.createStream())
        assert.equal(pool.releaseThreshold, 0)
        pool.releaseThreshold = Number.POSITIVE_INFINITY
        assert.equal(pool.releaseThreshold, Number.POSITIVE_INFINITY)
        pool.allocate(stream, 'u8', 64 * mebibyte).dispose()
        // The driver notices freed memory only when it waits itself.
        await t.device.synchronize()
        assert.ok(pool.reserved.current >= 64 * mebibyte, `${pool.reserved.current} bytes kept`)
        pool.trimTo(40 * mebibyte)
        assert.ok(pool.reserved.current >= 40 * mebibyte || pool.reserved.current === 0, `${pool.reserved.current}`)
        pool.trimTo()
        assert.equal(pool.reserved.current, 0)
        assert.ok(pool.reserved.high >= 64 * mebibyte)
        const bytes = t.random.integer(1, 2 ** 40)
        pool.releaseThreshold = bytes
        assert.equal(pool.releaseThreshold, bytes)
        for (const bad of [-1, 2 ** 60]) {
          assert.throws(() => {
            pool.releaseThreshold = bad
          }, RangeError)
        }
        assert.throws(() => {
          pool.releaseThreshold = 0.5
        }, TypeError)
        assert.throws(() => pool.trimTo(-1), RangeError)
      },
    },
    {
      name: 'without a threshold memory goes back when the device is synchronised',
      async run(t) {
        const pool = t.own(MemoryPool.create(t.device))
        const stream = t.own(t.device.createStream())
        pool.allocate(stream, 'u8', 64 * mebibyte).dispose()
        await stream.synchronize()
        await t.device.synchronize()
        assert.equal(pool.reserved.current, 0)
      },
    },
    {
      name: 'a caching pool hands memory out again, and to another stream only when the device is done with it',
      requires: { delay: true },
      async run(t) {
        const pool = t.own(CachingPool.create(t.device))
        const [stream, other] = [0, 1].map(() => t.own(t.device.createStream({ nonBlocking: true }))) as [
          Stream,
          Stream,
        ]
        const result = t.own(DeviceBuffer.allocate(t.device, 'i32', 1000))
        const first = t.random.array('i32', 1000)
        // Memory that is freed while queued work reads it may be allocated again on the same stream, because later work
        // there runs after that work.
        const early = pool.allocate(stream, 'i32', 1000)
        const { address } = early
        early.copyFrom(first, { stream })
        await queueDelay(stream, 50)
        result.copyFrom(early, { stream })
        early.dispose()
        const late = pool.allocate(stream, 'i32', 1000)
        assert.equal(late.address, address)
        late.fill(0, { stream })
        assertSameBits(await result.toArray({ stream }), first, 'i32')
        // On another stream the memory is allocated again only after its work has completed.
        await queueDelay(other, 50)
        late.disposeOn(other)
        assert.equal(pool.statistics.waitingBytes, 4096)
        const meanwhile = pool.allocate(stream, 'i32', 1000)
        assert.notEqual(meanwhile.address, address)
        await other.synchronize()
        const afterwards = pool.allocate(stream, 'i32', 1000)
        assert.equal(afterwards.address, address)
        assert.deepEqual(pool.statistics, { allocations: 4, misses: 1, retries: 0, waitingBytes: 0 })
        for (const buffer of [meanwhile, afterwards]) buffer.dispose()
        const { current } = pool.reserved
        assert.equal(await pool.trim(), current)
        assert.equal(pool.reserved.current, 0)
      },
    },
    {
      name: 'a caching pool gives back what it keeps where memory runs out',
      run(t) {
        const pool = t.own(CachingPool.create(t.device, { maximumBytes: 64 * mebibyte }))
        const stream = t.own(t.device.createStream())
        pool.allocate(stream, 'u8', 40 * mebibyte).dispose()
        const next = pool.allocate(stream, 'u8', 50 * mebibyte)
        assert.deepEqual([pool.reserved.current, pool.statistics.retries], [50 * mebibyte, 1])
        assert.throws(() => pool.allocate(stream, 'u8', 20 * mebibyte), StatusError)
        next.dispose()
      },
    },
    {
      name: 'the reuse policy is told and changed',
      run(t) {
        const pool = t.own(MemoryPool.create(t.device))
        const all = { followEventDependencies: true, opportunistic: true, internalDependencies: true }
        assert.deepEqual(pool.reuse, all)
        pool.setReuse({ opportunistic: false })
        assert.deepEqual(pool.reuse, { ...all, opportunistic: false })
        pool.setReuse({ opportunistic: true, followEventDependencies: false, internalDependencies: false })
        assert.deepEqual(pool.reuse, { ...all, followEventDependencies: false, internalDependencies: false })
        assert.throws(() => pool.setReuse({ opportunistic: 1 as unknown as boolean }), TypeError)
        assert.throws(() => pool.setReuse(true as never), TypeError)
      },
    },
    {
      name: 'the default and the current pool of a device',
      async run(t) {
        const { device } = t
        const ordinary = device.defaultMemoryPool
        const before = device.memoryPool
        assert.equal(ordinary.device, device)
        assert.equal(before.handle, ordinary.handle)
        const own = t.own(device.createMemoryPool())
        t.defer(() => before.setCurrent())
        own.setCurrent()
        assert.equal(device.memoryPool.handle, own.handle)
        assert.notEqual(device.defaultMemoryPool.handle, own.handle)
        const stream = t.own(device.createStream())
        const buffer = t.own(DeviceBuffer.allocateOn(stream, 'u8', 1000))
        await stream.synchronize()
        assert.ok(own.used.current >= 1000, 'it came from the current pool')
        // The program cannot destroy either pool.
        ordinary.dispose()
        assert.throws(() => ordinary.handle, DisposedError)
        assert.ok(device.defaultMemoryPool.reserved.current >= 0)
        buffer.dispose()
        await stream.synchronize()
      },
    },
    {
      name: 'pools of host and managed memory',
      async run(t) {
        if (driverVersion().major < 13) t.skip('the driver has no such pools')
        const stream = t.own(t.device.createStream())
        for (const [options, attribute] of [
          [{ location: 'host' }, 'HOST_MEMORY_POOLS_SUPPORTED'],
          [{ location: { hostNode: 0 } }, 'HOST_NUMA_MEMORY_POOLS_SUPPORTED'],
          [{ managed: true }, 'CONCURRENT_MANAGED_ACCESS'],
          [{ managed: true, location: 'device' }, 'CONCURRENT_MANAGED_ACCESS'],
        ] as const) {
          if (t.device.attribute(attribute) === 0) {
            t.note(`no ${attribute}`)
            continue
          }
          const pool = t.own(MemoryPool.create(t.device, options))
          const data = t.random.array('i32', t.random.integer(1, 100_000))
          const buffer = pool.allocate(stream, 'i32', data.length)
          buffer.copyFrom(data, { stream })
          assertSameBits(await buffer.toArray({ stream }), data, 'i32')
          // Each way to copy calls another function of the driver.
          const pinned = t.own(PinnedBuffer.allocate(t.device, 'i32', data.length))
          pinned.array.set(data.map((value) => ~value))
          buffer.copyFrom(pinned.array, { stream })
          const other = t.own(DeviceBuffer.allocate(t.device, 'i32', data.length))
          other.copyFrom(buffer, { stream })
          assertSameBits(await other.toArray({ stream }), pinned.array, 'from page-locked memory, and to the device')
          buffer.fill(7, { stream })
          await buffer.copyTo(pinned.array, { stream })
          assertSameBits(
            pinned.array,
            data.map(() => 7),
            'fill, and to page-locked memory',
          )
          buffer.copyFromSync(data, { stream })
          assertSameBits(buffer.toArraySync({ stream }), data, 'blocking')
          assert.ok(pool.used.current >= data.byteLength)
          buffer.dispose()
          await stream.synchronize()
          assert.equal(pool.used.current, 0)
          assert.throws(() => pool.setCurrent(), TypeError)
        }
      },
    },
    {
      name: 'a pool disposed of while memory from it is in use goes when that memory goes',
      async run(t) {
        const stream = t.own(t.device.createStream())
        await assertNothingLeft(t, async () => {
          const pool = MemoryPool.create(t.device)
          const buffer = pool.allocate(stream, 'u8', 5 * mebibyte + 1)
          pool.dispose()
          pool.dispose()
          assert.equal(pool.disposed, true)
          assert.throws(() => pool.used, DisposedError)
          assert.throws(() => pool.allocate(stream, 'u8', 1), DisposedError)
          assert.throws(() => pool.setCurrent(), DisposedError)
          const data = t.random.bytes(buffer.length)
          buffer.copyFrom(data, { stream })
          assertSameBits(await buffer.toArray({ stream }), data, 'after the pool')
          buffer.dispose()
          await t.device.synchronize()
        })
      },
    },
    {
      name: 'a pool is disposed of while work uses its memory, without waiting',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const pool = MemoryPool.create(t.device)
        const buffer = pool.allocate(stream, 'u8', 4096)
        await queueDelay(stream, 80)
        buffer.fill(5, { stream })
        const result = buffer.toArray({ stream })
        buffer.dispose()
        const start = performance.now()
        pool.dispose()
        assert.ok(performance.now() - start < 60, 'it must not wait')
        assertSameBits(await result, new Uint8Array(4096).fill(5), 'the work was done')
      },
    },
    {
      name: 'a pool that may hold no more refuses more',
      async run(t) {
        const pool = t.own(MemoryPool.create(t.device, { maximumBytes: 64 * mebibyte }))
        const stream = t.own(t.device.createStream())
        const first = t.own(pool.allocate(stream, 'u8', 32 * mebibyte))
        assert.throws(
          () => pool.allocate(stream, 'u8', 64 * mebibyte),
          (error) => error instanceof StatusError && error.code === 'CUDA_ERROR_OUT_OF_MEMORY' && !error.isSticky,
        )
        first.fill(1, { stream })
        await stream.synchronize()
      },
    },
    {
      name: 'a pool lets another device use its memory',
      requires: { devices: 2 },
      async run(t) {
        const [first, second] = t.devices as [Device, Device]
        if (!second.canAccessPeer(first)) t.skip('the devices cannot reach each other')
        const pool = t.own(MemoryPool.create(first))
        assert.equal(pool.getAccess(first), 'readWrite')
        assert.equal(pool.getAccess(second), 'none')
        pool.setAccess(second, 'readWrite')
        assert.equal(pool.getAccess(second), 'readWrite')
        const stream = t.own(first.createStream())
        const buffer = t.own(pool.allocate(stream, 'u8', 10_001))
        await stream.synchronize()
        const seen = DeviceBuffer.view(second, buffer, 'u8')
        seen.fillSync(7)
        assertSameBits(await buffer.toArray({ stream }), new Uint8Array(10_001).fill(7), 'written by the other device')
        pool.setAccess([second], 'none')
        assert.equal(pool.getAccess(second), 'none')
        assert.throws(() => pool.setAccess(first, 'none'), StatusError)
        assert.throws(() => pool.setAccess(first, 'all' as 'none'), TypeError)
        assert.throws(() => pool.getAccess('device' as never), TypeError)
      },
    },
    {
      name: 'what is wrong is refused, and nothing is left',
      async run(t) {
        await assertNothingLeft(t, () => {
          assert.throws(() => MemoryPool.create(t.device, { maximumBytes: -1 }), RangeError)
          assert.throws(() => MemoryPool.create(t.device, { handleTypes: 'fd' as 'fabric' }), TypeError)
          assert.throws(() => MemoryPool.create(t.device, 5 as never), TypeError)
          assert.throws(() => MemoryPool.create(undefined as never), TypeError)
          assert.throws(() => MemoryPool.create(t.device, { handleTypes: 'win32' }), StatusError)
          const pool = MemoryPool.create(t.device)
          const stream = t.device.createStream()
          assert.throws(() => pool.allocate({} as Stream, 'u8', 1), TypeError)
          assert.throws(() => pool.allocate(stream, 'u9' as 'u8', 1), TypeError)
          assert.throws(() => pool.allocate(stream, 'u8', -1), RangeError)
          assert.throws(() => pool.allocate(stream, 'u8', 2 ** 50), StatusError)
          assert.equal(pool.used.current, 0)
          stream.dispose()
          assert.throws(() => pool.allocate(stream, 'u8', 1), DisposedError)
          pool.dispose()
        })
      },
    },
    {
      name: 'devices make what lies on them',
      run(t) {
        const unit = t.device.allocationGranularity()
        assert.equal(unit, allocationGranularity(t.device))
        assert.equal(t.device.allocationGranularity({ granularity: 'recommended' }) % unit, 0)
        const memory = t.own(t.device.createPhysicalMemory(unit, { handleTypes: 'posix-fd' }))
        assert.deepEqual(memory.properties.location, { type: 'device', deviceOrdinal: t.device.ordinal })
        assert.deepEqual(memory.properties.handleTypes, ['posix-fd'])
        const growable = t.own(t.device.createGrowableBuffer('f32', { maximumLength: unit, length: 3 }))
        growable.buffer.fillSync(1)
      },
    },
  ],
}
