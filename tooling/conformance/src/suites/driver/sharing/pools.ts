import assert from 'node:assert/strict'
import { DeviceBuffer, MemoryPool, PhysicalMemory, StatusError } from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { assertSameBits } from '../../../support/compare.js'
import { failed, hand, leaves, startPartner } from './partner.js'

/** Pools that are sent to another process, and memory that is allocated from them. */
export const poolCases: readonly ConformanceCase[] = [
  {
    name: 'a pool travels, and so does what is allocated from it',
    async run(t) {
      const pool = t.own(MemoryPool.create(t.device, { handleTypes: 'posix-fd' }))
      const stream = t.own(t.device.createStream())
      const { child, socket } = startPartner(t)
      const ready = child.run('receivePool', {})
      await hand(socket, pool.export())
      await ready
      for (const length of [1, 1001, t.random.integer(1e5, 1e6)]) {
        const buffer = t.own(pool.allocate(stream, 'u8', length))
        const data = t.random.bytes(length)
        buffer.copyFrom(data, { stream })
        await stream.synchronize()
        const pointer = pool.exportPointer(buffer)
        assert.equal(await child.run('openPointer', JSON.parse(JSON.stringify(pointer))), length)
        assertSameBits((await child.run('read')) as Uint8Array, data, 'read by the child')
        await child.run('fill', 0x2a)
        assertSameBits(buffer.toArraySync(), data.fill(0x2a), 'written by the child')
      }
      const small = t.own(pool.allocate(stream, 'u8', 1000))
      await stream.synchronize()
      await assert.rejects(
        child.run('openPointer', { ...pool.exportPointer(small), length: 2 ** 40 }),
        failed((failure) => failure.name === 'RangeError'),
      )
      // Only the process that created the pool can allocate from it.
      await assert.rejects(
        child.run('allocateFromPool'),
        failed((failure) => failure.name === 'StatusError'),
      )
      await child.run('disposeAll')
      await leaves(child)
    },
  },
  {
    name: 'pools and pointers that are wrong are refused',
    async run(t) {
      const pool = t.own(MemoryPool.create(t.device, { handleTypes: 'posix-fd' }))
      const closed = t.own(MemoryPool.create(t.device))
      const stream = t.own(t.device.createStream())
      assert.throws(() => closed.export(), StatusError)
      const handle = t.own(pool.export())
      assert.deepEqual(handle.toJSON(), {
        type: 'posix-fd',
        content: 'pool',
        byteLength: 0,
        deviceUuid: t.device.uuid,
      })
      assert.throws(() => PhysicalMemory.import(t.device, handle as never), TypeError)
      const plain = t.own(DeviceBuffer.allocate(t.device, 'u8', 100))
      assert.throws(() => pool.exportPointer(plain), StatusError)
      assert.throws(() => pool.exportPointer({} as never), TypeError)
      const buffer = t.own(pool.allocate(stream, 'u8', 100))
      const pointer = pool.exportPointer(buffer)
      // The driver requires that the pool is exported first. exportPointer does this.
      const fresh = t.own(MemoryPool.create(t.device, { handleTypes: 'posix-fd' }))
      assert.equal(fresh.exportPointer(t.own(fresh.allocate(stream, 'u8', 100))).length, 100)
      // This process created the pool, so it cannot import from it.
      assert.throws(() => pool.importPointer(stream, pointer), StatusError)
      const bad = (change: object) => () => pool.importPointer(stream, { ...pointer, ...change })
      assert.throws(bad({ data: 'AAAA' }), /64 bytes, not 3/)
      assert.throws(bad({ type: 'ipc-memory' }), TypeError)
      assert.throws(bad({ data: Buffer.alloc(64).toString('base64') }), StatusError)
      assert.throws(bad({ length: -1 }), RangeError)
      assert.throws(bad({ dtype: 'u9' }), TypeError)
      assert.throws(() => pool.importPointer({} as never, pointer), TypeError)
      assert.throws(() => pool.importPointer(stream, undefined as never), TypeError)
      await stream.synchronize()
    },
  },
]
