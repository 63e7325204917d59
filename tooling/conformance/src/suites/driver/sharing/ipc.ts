import assert from 'node:assert/strict'
import {
  allocationGranularity,
  DeviceBuffer,
  DisposedError,
  FeatureNotSupportedError,
  IpcMemory,
  type IpcMemoryHandle,
  ipcEventHandle,
  ipcMemoryHandle,
  openIpcEvent,
  StatusError,
} from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { assertSameBits } from '../../../support/compare.js'
import { queueDelay } from '../../../support/delay.js'
import { assertNothingLeft } from '../../../support/leftovers.js'
import { mapNew } from '../../../support/mapping.js'
import { failed, leaves, startPartner } from './partner.js'

/** Memory and events, shared by handles in JSON. */
export const ipcCases: readonly ConformanceCase[] = [
  {
    name: 'IPC memory: a child opens a buffer, and a part of one, by what JSON carries',
    async run(t) {
      const length = t.random.integer(5000, 500_000)
      const data = t.random.bytes(length)
      const buffer = t.own(DeviceBuffer.from(t.device, data))
      const { child } = startPartner(t)
      for (const [start, end] of [
        [0, length],
        [t.random.integer(1, 1000), t.random.integer(2000, length)],
      ] as const) {
        const part = buffer.slice(start, end)
        const handle = JSON.parse(JSON.stringify(ipcMemoryHandle(part)))
        assert.equal(await child.run('openIpc', handle), end - start)
        assertSameBits((await child.run('read')) as Uint8Array, data.subarray(start, end), 'read by the child')
        const value = t.random.integer(0, 255)
        await child.run('fill', value)
        data.fill(value, start, end)
        assertSameBits(buffer.toArraySync(), data, 'written by the child')
        await child.run('disposeAll')
      }
      await leaves(child)
    },
  },
  {
    name: 'IPC memory that is wrong is refused, and nothing is left',
    async run(t) {
      await assertNothingLeft(t, async () => {
        const buffer = DeviceBuffer.zeros(t.device, 'f32', 1000)
        const handle = ipcMemoryHandle(buffer)
        assert.throws(() => IpcMemory.open(t.device, handle), StatusError)
        assert.throws(() => ipcMemoryHandle(buffer.slice(5, 5)), RangeError)
        assert.throws(() => ipcMemoryHandle({} as never), TypeError)
        const bad = (change: object) => () =>
          IpcMemory.open(t.device, { ...handle, ...change } as unknown as IpcMemoryHandle)
        assert.throws(bad({ handle: 'AAAA' }), /64 bytes, not 3/)
        assert.throws(bad({ handle: 5 }), TypeError)
        assert.throws(bad({ type: 'ipc-event' }), TypeError)
        assert.throws(bad({ dtype: 'f31' }), TypeError)
        assert.throws(bad({ length: 0 }), RangeError)
        assert.throws(bad({ byteOffset: -4 }), RangeError)
        assert.throws(bad({ deviceUuid: 'GPU-0' }), FeatureNotSupportedError)
        assert.throws(() => IpcMemory.open(t.device, undefined as never), TypeError)
        const stream = t.device.createStream()
        const ordered = DeviceBuffer.allocateOn(stream, 'u8', 100)
        await stream.synchronize()
        assert.throws(() => ipcMemoryHandle(ordered), StatusError)
        ordered.dispose()
        await stream.synchronize()
        stream.dispose()
        buffer.dispose()
        assert.throws(() => ipcMemoryHandle(buffer), DisposedError)
      })
      const mapped = mapNew(t, t.device, allocationGranularity(t.device))
      assert.throws(() => ipcMemoryHandle(mapped.bytes), StatusError)
      const second = t.devices[1]
      if (second === undefined) return
      const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 10))
      assert.throws(() => IpcMemory.open(second, ipcMemoryHandle(buffer)), RangeError)
    },
  },
  {
    name: 'IPC memory longer than what was allocated cannot be opened',
    async run(t) {
      const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 5000))
      const handle = ipcMemoryHandle(buffer)
      const { child } = startPartner(t)
      for (const change of [{ length: 2 ** 40 }, { byteOffset: 2 ** 40 }]) {
        await assert.rejects(
          child.run('openIpc', { ...handle, ...change }),
          failed((failure) => failure.name === 'RangeError'),
        )
      }
      assert.equal(await child.run('openIpc', handle), 5000)
    },
  },
  {
    name: 'an IPC event of this process is awaited by another',
    requires: { delay: true },
    async run(t) {
      const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 3000))
      const event = t.own(t.device.createEvent({ interprocess: true }))
      const stream = t.own(t.device.createStream({ nonBlocking: true }))
      const { child } = startPartner(t)
      await child.run('openIpc', ipcMemoryHandle(buffer))
      await queueDelay(stream, 300)
      buffer.fill(0x66, { stream })
      stream.record(event)
      const handle = JSON.parse(JSON.stringify(ipcEventHandle(event)))
      assert.equal(await child.run('openEvent', handle), false)
      await child.run('awaitEvent')
      assert.equal(event.query(), true)
      assertSameBits((await child.run('read')) as Uint8Array, new Uint8Array(3000).fill(0x66), 'read by the child')
    },
  },
  {
    name: 'work of this process waits for an IPC event of another',
    requires: { delay: true },
    async run(t) {
      const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 3000))
      const event = t.own(t.device.createEvent({ interprocess: true }))
      const { child } = startPartner(t)
      await child.run('openIpc', ipcMemoryHandle(buffer))
      await child.run('openEvent', ipcEventHandle(event))
      await child.run('recordLater', 200)
      const stream = t.own(t.device.createStream({ nonBlocking: true }))
      stream.waitEvent(event)
      assertSameBits(await buffer.toArray({ stream }), new Uint8Array(3000).fill(0x5a), 'after the child’s work')
    },
  },
  {
    name: 'IPC events that are wrong are refused',
    run(t) {
      const plain = t.own(t.device.createEvent())
      assert.throws(() => ipcEventHandle(plain), StatusError)
      assert.throws(() => ipcEventHandle({} as never), TypeError)
      const event = t.own(t.device.createEvent({ interprocess: true }))
      const handle = ipcEventHandle(event)
      assert.throws(() => openIpcEvent(t.device, { ...handle, handle: '' }), RangeError)
      assert.throws(() => openIpcEvent(t.device, { ...handle, type: 'ipc-memory' as 'ipc-event' }), TypeError)
      assert.throws(() => openIpcEvent(t.device, undefined as never), TypeError)
      const garbage = Buffer.from(t.random.bytes(64)).toString('base64')
      assert.throws(() => openIpcEvent(t.device, { ...handle, handle: garbage }), StatusError)
    },
  },
]
