import assert from 'node:assert/strict'
import { MemoryPool as DriverPool } from '@shoal/driver'
import { Device, DeviceBuffer, DisposedError, MemoryPool, type PoolPointer, StatusError, Stream } from '@shoal/runtime'
import type { Suite } from '../../suite.js'

export const poolSuite: Suite = {
  name: 'runtime pool',
  cases: [
    {
      name: 'memory comes from a pool, is counted and goes back',
      async run(t) {
        const pool = t.own(MemoryPool.create())
        const stream = t.own(Stream.create({ nonBlocking: true }))
        assert.equal(pool.used.current, 0)
        const memory = pool.allocate(stream, 'f32', 1 << 18)
        memory.fill(1, { stream })
        assert.equal((await memory.toArray({ stream }))[5], 1)
        assert.ok(pool.used.current >= 1 << 20)
        assert.ok(pool.reserved.current >= pool.used.current)
        memory.dispose()
        await stream.synchronize()
        assert.equal(pool.used.current, 0)
        assert.ok(pool.used.high >= 1 << 20)
        // A driver frees no memory before it has waited for the end of the work itself.
        stream.synchronizeSync()
        pool.trimTo(0)
        assert.equal(pool.reserved.current, 0)
        pool.resetHighWaterMarks()
        assert.equal(pool.used.high, 0)
      },
    },
    {
      name: 'attributes are read and set',
      run(t) {
        const pool = t.own(MemoryPool.create({ device: t.device }))
        pool.releaseThreshold = 1 << 24
        assert.equal(pool.releaseThreshold, 1 << 24)
        pool.releaseThreshold = Number.POSITIVE_INFINITY
        assert.equal(pool.releaseThreshold, Number.POSITIVE_INFINITY)
        pool.setReuse({ opportunistic: false })
        assert.equal(pool.reuse.opportunistic, false)
        assert.equal(pool.reuse.followEventDependencies, true)
        assert.throws(() => {
          pool.releaseThreshold = -1
        }, RangeError)
        assert.throws(() => pool.trimTo(1.5), TypeError)
        assert.throws(() => MemoryPool.create({ maximumBytes: -1 }), RangeError)
        assert.throws(() => MemoryPool.create({ handleTypes: 'paper' as 'fabric' }), TypeError)
        assert.throws(() => pool.allocate({} as Stream, 'u8', 1), TypeError)
      },
    },
    {
      name: 'the current pool is the default one until another is set',
      async run(t) {
        const original = MemoryPool.currentOf()
        assert.equal(original.handle, MemoryPool.defaultOf(t.device).handle)
        const pool = t.own(MemoryPool.create())
        pool.setCurrent()
        try {
          assert.equal(MemoryPool.currentOf().handle, pool.handle)
          const stream = t.own(Stream.create())
          const memory = DeviceBuffer.allocateOn(stream, 'u8', 1000)
          assert.ok(pool.used.current >= 1000)
          memory.dispose()
          await stream.synchronize()
        } finally {
          original.setCurrent()
        }
        assert.equal(MemoryPool.currentOf().handle, original.handle)
        original.dispose()
        assert.equal(MemoryPool.defaultOf().used.current >= 0, true)
      },
    },
    {
      name: 'another device gets access',
      requires: { devices: 2 },
      run(t) {
        const pool = t.own(MemoryPool.create({ device: 0 }))
        const other = Device.get(1)
        assert.equal(pool.getAccess(Device.get(0)), 'readWrite')
        assert.equal(pool.getAccess(other), 'none')
        if (!other.canAccessPeer(0)) return
        pool.setAccess(other, 'readWrite')
        assert.equal(pool.getAccess(other), 'readWrite')
        pool.setAccess([other], 'none')
        assert.equal(pool.getAccess(other), 'none')
      },
    },
    {
      name: 'a pool is exported and imported, and its memory too',
      async run(t) {
        const pool = t.own(MemoryPool.create({ handleTypes: 'posix-fd' }))
        const stream = t.own(Stream.create())
        const memory = t.own(pool.allocate(stream, 'i32', 100))
        memory.fill(3, { stream })
        await stream.synchronize()
        const handle = t.own(pool.export())
        const imported = t.own(MemoryPool.import(handle))
        assert.throws(() => imported.allocate(stream, 'i32', 1), StatusError)
        const pointer = JSON.parse(JSON.stringify(pool.exportPointer(memory))) as PoolPointer<'i32'>
        assert.equal(pointer.length, 100)
        assert.throws(() => imported.importPointer(stream, {} as PoolPointer), TypeError)
        assert.throws(() => imported.importPointer(stream, { ...pointer, data: 'AAAA' }), RangeError)
        assert.throws(() => t.own(MemoryPool.create()).export(), StatusError)
      },
    },
    {
      name: 'pools of the driver are those of the runtime',
      async run(t) {
        const theirs = t.own(DriverPool.create(t.device))
        const here = MemoryPool.from(theirs)
        const stream = t.own(Stream.create())
        const memory = here.allocate(stream, 'u8', 1 << 16)
        assert.ok(theirs.used.current >= 1 << 16)
        memory.dispose()
        await stream.synchronize()
        here.dispose()
        assert.equal(theirs.used.current, 0)
        assert.throws(() => here.used, DisposedError)
        assert.throws(() => MemoryPool.from({} as MemoryPool), TypeError)
      },
    },
  ],
}
