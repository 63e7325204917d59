import assert from 'node:assert/strict'
import { allocationGranularity, type Device, DeviceBuffer, ipcMemoryHandle, MemoryPool } from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { RemoteError } from '../../../support/child.js'
import { assertSameBits } from '../../../support/compare.js'
import { mapNew } from '../../../support/mapping.js'
import { failed, hand, share, startPartner } from './partner.js'

/** What the other process may do with the memory, and on which device. */
export const reachCases: readonly ConformanceCase[] = [
  {
    name: 'a read-only import cannot be written: an error and nothing worse, and the memory stays as it is',
    async run(t) {
      const { bytes, data, child } = await share(t, { access: 'read' })
      assertSameBits((await child.run('read')) as Uint8Array, data, 'read by the child')
      const refused = failed((failure) => failure.code === 'CUDA_ERROR_INVALID_VALUE' && failure.isSticky === false)
      await assert.rejects(child.run('fill', 3), refused)
      await assert.rejects(child.run('write', { start: 5, data: new Uint8Array(100) }), refused)
      assert.equal(await child.run('probe'), 10)
      assertSameBits(bytes.toArraySync(), data, 'the memory')
    },
  },
  {
    name: 'a kernel that writes to a read-only import loses its context, and nobody else’s memory',
    requires: { kernels: true },
    async run(t) {
      const { bytes, data, child } = await share(t, { access: 'read' })
      await assert.rejects(
        child.run('runAxpy', t.kernels),
        failed((failure) => failure.isSticky === true),
      )
      await assert.rejects(
        child.run('probe'),
        failed((failure) => failure.isSticky === true),
      )
      assertSameBits(bytes.toArraySync(), data, 'the memory')
      t.own(DeviceBuffer.zeros(t.device, 'u8', 10))
    },
  },
  {
    name: 'a kernel of another process writes to memory of this one',
    requires: { kernels: true },
    async run(t) {
      const { bytes, child } = await share(t)
      bytes.fillSync(0)
      await child.run('runAxpy', t.kernels)
      assertSameBits(bytes.reinterpret('f32').slice(0, 1000).toArraySync(), new Float32Array(1000).fill(2), 'y')
    },
  },
  {
    name: 'an address where nothing is mapped any more is an error, not a crash',
    async run(t) {
      const { child } = startPartner(t)
      const error = await child.run('fillUnmapped').then(
        () => undefined,
        (reason: unknown) => reason,
      )
      assert.ok(error instanceof RemoteError)
      const { name, code, isSticky } = error.failure
      assert.equal(name, 'StatusError', error.message)
      t.note(`use of an unmapped address: ${code}, ${isSticky === true ? '' : 'not '}sticky`)
    },
  },
  {
    name: 'memory of one device is imported for another',
    requires: { devices: 2 },
    async run(t) {
      if (!(t.devices[1] as Device).canAccessPeer(t.device)) t.skip('the devices cannot reach each other')
      const { bytes, data, child } = await share(t, { device: 1 })
      assertSameBits((await child.run('read')) as Uint8Array, data, 'read by the other device')
      await child.run('fill', 0x42)
      assertSameBits(bytes.toArraySync(), data.fill(0x42), 'written by the other device')
    },
  },
  {
    name: 'memory on a device that the other process does not see is refused there, and stays',
    requires: { devices: 2 },
    async run(t) {
      const second = t.devices[1] as Device
      const { physical, bytes } = mapNew(t, second, allocationGranularity(second), { isShared: true })
      bytes.fillSync(0x19)
      const pool = t.own(MemoryPool.create(second, { handleTypes: 'posix-fd' }))
      const { child, socket } = startPartner(t, { CUDA_VISIBLE_DEVICES: '0', SHOAL_SIM_DEVICES: '1' })
      const refused = failed(
        ({ name, message }) => name === 'FeatureNotSupportedError' && message.includes(second.uuid),
      )
      let before: unknown
      for (const [command, handle] of [
        // The first one is sent twice, because the driver opens descriptors at its first import and keeps them.
        ['receiveMemory', physical.export()],
        ['receiveMemory', physical.export()],
        ['receivePool', pool.export()],
      ] as const) {
        const attempt = child.run(command, {})
        await hand(socket, handle)
        await assert.rejects(attempt, refused)
        before ??= await child.run('disposeAll')
      }
      const buffer = t.own(DeviceBuffer.zeros(second, 'u8', 100))
      await assert.rejects(child.run('openIpc', ipcMemoryHandle(buffer)), refused)
      assert.deepEqual(await child.run('disposeAll'), before)
      assertSameBits(bytes.toArraySync(), new Uint8Array(bytes.length).fill(0x19), 'the memory')
    },
  },
]
