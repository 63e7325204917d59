import assert from 'node:assert/strict'
import {
  AddressRange,
  allocationGranularity,
  type Device,
  DeviceBuffer,
  DisposedError,
  PhysicalMemory,
  StatusError,
} from '@shoal/driver'
import { memoryProtocol } from '@shoal/types'
import type { ConformanceCase } from '../../../suite.js'
import { assertSameBits } from '../../../support/compare.js'
import { mapAgain, mapNew, oddPart, someBytes } from '../../../support/mapping.js'
import { harmless, invalidValue, places } from './expect.js'

/** Who may read and write mapped memory. */
export const accessCases: readonly ConformanceCase[] = [
  {
    name: 'access is what was given, can be changed, and is asked for at every operation',
    run(t) {
      const byteLength = someBytes(t, t.device)
      const { mapped, bytes, physical } = mapNew(t, t.device, byteLength, { access: [] })
      const other = mapAgain(t, t.device, physical)
      const data = t.random.bytes(byteLength)
      other.copyFromSync(data)
      assert.equal(mapped.getAccess(t.device), 'none')
      const refused = harmless(invalidValue)
      const tryAll = (canRead: boolean): void => {
        assert.throws(() => bytes.fillSync(1), refused)
        assert.throws(() => oddPart(t, bytes).fillSync(1), refused)
        assert.throws(() => bytes.copyFromSync(new Uint8Array(byteLength)), refused)
        if (canRead) assertSameBits(bytes.toArraySync(), data, 'read-only')
        else assert.throws(() => bytes.toArraySync(), refused)
        assertSameBits(other.toArraySync(), data, 'nothing was written')
      }
      tryAll(false)
      mapped.setAccess(t.device, 'read')
      assert.equal(mapped.getAccess(t.device), 'read')
      tryAll(true)
      mapped.setAccess([t.device], 'readWrite')
      assert.equal(mapped.getAccess(t.device), 'readWrite')
      bytes.fillSync(4)
      data.fill(4)
      assertSameBits(other.toArraySync(), data, 'written with access')
      mapped.setAccess(t.device, 'none')
      assert.equal(mapped.getAccess(t.device), 'none')
      tryAll(false)
      mapped.setAccess([], 'read')
      assert.equal(mapped.getAccess(t.device), 'none')
      assert.throws(() => mapped.setAccess(t.device, 'write' as 'read'), TypeError)
      assert.throws(() => mapped.setAccess(9 as never, 'read'), TypeError)
      assert.throws(() => mapped.getAccess(undefined as never), TypeError)
      // The host cannot get access to device memory.
      assert.throws(() => mapped.setAccess('host', 'readWrite'), StatusError)
      mapped.dispose()
      assert.throws(() => mapped.setAccess(t.device, 'read'), DisposedError)
      assert.throws(() => mapped.getAccess(t.device), DisposedError)
    },
  },
  {
    name: 'a device uses mapped memory of another, once it may',
    requires: { devices: 2 },
    async run(t) {
      const [first, second] = t.devices as [Device, Device]
      if (!second.canAccessPeer(first)) t.skip('the devices cannot reach each other')
      const byteLength = someBytes(t, first)
      const { mapped, bytes } = mapNew(t, first, byteLength)
      const data = t.random.bytes(byteLength)
      bytes.copyFromSync(data)
      assert.equal(mapped.getAccess(second), 'none')
      const seen = DeviceBuffer.view(second, mapped, 'u8')
      assert.throws(() => seen.fillSync(1), harmless(invalidValue))
      assertSameBits(bytes.toArraySync(), data, 'nothing was written')
      mapped.setAccess(second, 'read')
      assertSameBits(await seen.toArray(), data, 'read by the other device')
      assert.throws(() => seen.fillSync(1), harmless(invalidValue))
      mapped.setAccess([first, second], 'readWrite')
      const stream = t.own(second.createStream({ nonBlocking: true }))
      const part = oddPart(t, seen)
      const start = Number(part.address - seen.address)
      part.fill(8, { stream })
      await stream.synchronize()
      data.fill(8, start, start + part.length)
      assertSameBits(bytes.toArraySync(), data, 'written by the other device')
      assert.deepEqual([mapped.getAccess(first), mapped.getAccess(second)], ['readWrite', 'readWrite'])
    },
  },
  {
    name: 'mapped memory is copied between devices',
    requires: { devices: 2 },
    run(t) {
      const [first, second] = t.devices as [Device, Device]
      const byteLength = someBytes(t, first)
      const source = mapNew(t, first, byteLength)
      const target = mapNew(t, second, byteLength)
      const data = t.random.bytes(byteLength)
      source.bytes.copyFromSync(data)
      try {
        target.bytes.copyFromSync(source.bytes)
        assertSameBits(target.bytes.toArraySync(), data, 'without access for the peer')
        t.note('a copy between devices needs no access for the other one')
      } catch (error) {
        if (!harmless(invalidValue)(error)) throw error
        t.note('a copy between devices is refused without access for the device that copies')
      }
      if (!first.canAccessPeer(second)) t.skip('the devices cannot reach each other')
      for (const each of [source, target]) each.mapped.setAccess([first, second], 'readWrite')
      target.bytes.fillSync(0)
      target.bytes.copyFromSync(source.bytes)
      assertSameBits(target.bytes.toArraySync(), data, 'to the other device')
      const plain = t.own(DeviceBuffer.allocate(first, 'u8', byteLength))
      plain.copyFromSync(target.bytes)
      assertSameBits(plain.toArraySync(), data, 'and back into plain memory')
    },
  },
  {
    name: 'memory of the host is mapped for the device',
    async run(t) {
      for (const place of places(t).filter((one) => one === 'host' || 'hostNode' in one)) {
        const byteLength = allocationGranularity(place)
        const physical = t.own(PhysicalMemory.create(place, byteLength))
        const range = t.own(AddressRange.reserve(byteLength))
        const mapped = t.own(range.map(physical, { access: [{ place: t.device, access: 'readWrite' }] }))
        assert.equal(mapped[memoryProtocol].deviceOrdinal, -1)
        const bytes = DeviceBuffer.view(t.device, mapped, 'u8')
        const data = t.random.bytes(byteLength)
        bytes.copyFromSync(data)
        assertSameBits(await bytes.toArray(), data, 'memory of the host')
        mapped.setAccess(place, 'readWrite')
        assert.equal(mapped.getAccess(place), 'readWrite')
      }
    },
  },
]
