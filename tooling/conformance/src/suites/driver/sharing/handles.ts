import assert from 'node:assert/strict'
import { closeSync, openSync } from 'node:fs'
import {
  AddressRange,
  allocationGranularity,
  DescriptorHandle,
  type Device,
  DisposedError,
  FabricHandle,
  FeatureNotSupportedError,
  MemoryPool,
  PhysicalMemory,
  type ShareableHandle,
  StatusError,
  WindowsHandle,
} from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { assertSameBits } from '../../../support/compare.js'
import { assertNothingLeft } from '../../../support/leftovers.js'
import { mapAgain } from '../../../support/mapping.js'
import { exportAs, processScript, startPartner } from './partner.js'

/** Valid handles, and everything that can be wrong with them. */
export const handleCases: readonly ConformanceCase[] = [
  {
    name: 'handles that are wrong are refused before the driver sees them, and nothing is left',
    async run(t) {
      const unit = allocationGranularity(t.device)
      await assertNothingLeft(t, () => {
        const physical = PhysicalMemory.create(t.device, unit, { handleTypes: 'posix-fd' })
        const handle = physical.export()
        const facts = { content: 'memory', byteLength: unit, deviceUuid: t.device.uuid } as const
        const take = (what: unknown) => () => PhysicalMemory.import(t.device, what as ShareableHandle<'memory'>)
        // These values are not handles.
        for (const bad of [undefined, null, 5, {}, handle.descriptor, handle.toJSON()]) {
          assert.throws(take(bad), TypeError)
        }
        const openNull = (change: object): DescriptorHandle<'memory'> =>
          new DescriptorHandle(openSync('/dev/null', 'r'), { ...facts, ...change })
        const refuse = (wrong: DescriptorHandle<'memory'>, check: (error: unknown) => boolean): void => {
          assert.throws(take(wrong), check)
          wrong.dispose()
        }
        // Handles of other content.
        for (const content of ['pool', 'multicast']) {
          refuse(
            openNull({ content }),
            (error) => error instanceof TypeError && /must be one of memory/.test(error.message),
          )
        }
        assert.throws(() => MemoryPool.import(t.device, handle as never), TypeError)
        // A size that memory cannot have.
        const odd = unit + 1
        refuse(openNull({ byteLength: odd }), (error) => {
          return error instanceof RangeError && error.message.includes(`${odd}`)
        })
        // A closed handle, a disposed handle, and a file.
        const closed = physical.export()
        closeSync(closed.descriptor)
        assert.throws(take(closed), { name: 'TypeError', message: new RegExp(`${closed.descriptor} is not open`) })
        // The handle's owner did not know of the close, so dispose() reports it.
        assert.throws(() => closed.dispose(), { code: 'EBADF' })
        const disposed = physical.export()
        disposed.dispose()
        disposed.dispose()
        assert.throws(take(disposed), DisposedError)
        assert.throws(() => disposed.descriptor, DisposedError)
        refuse(new DescriptorHandle(openSync(processScript, 'r'), facts), (error) => {
          return error instanceof TypeError && error.message.includes('memoryProcess')
        })
        refuse(openNull({}), (error) => {
          return error instanceof TypeError || (error instanceof StatusError && !error.isSticky)
        })
        // A device that this process does not see.
        const deviceUuid = 'GPU-00000000-0000-0000-0000-000000000000'
        refuse(openNull({ deviceUuid }), (error) => {
          return error instanceof FeatureNotSupportedError && error.message.includes(deviceUuid)
        })
        assert.throws(() => PhysicalMemory.import(0 as unknown as Device, handle), TypeError)
        // Kinds of handles that Linux does not have.
        assert.throws(take(new WindowsHandle('win32', 4n, facts)), StatusError)
        const garbage = new FabricHandle(t.random.bytes(64), facts)
        assert.throws(take(garbage), StatusError)
        assert.throws(() => new FabricHandle(new Uint8Array(63), facts), /64 bytes, not 63/)
        // A kind of handle that the memory was not created for.
        assert.throws(() => physical.export('fabric'), StatusError)
        assert.throws(() => physical.export('fd' as 'fabric'), TypeError)
        const closedToAll = PhysicalMemory.create(t.device, unit)
        assert.throws(() => closedToAll.export(), StatusError)
        closedToAll.dispose()
        physical.dispose()
        assert.throws(() => physical.export(), DisposedError)
        handle.dispose()
      })
    },
  },
  {
    name: 'memory that is shorter than its handle says cannot be mapped longer',
    async run(t) {
      const unit = allocationGranularity(t.device)
      const physical = t.own(PhysicalMemory.create(t.device, unit, { handleTypes: 'posix-fd' }))
      const handle = t.own(physical.export())
      const longer = t.own(await exportAs(handle, { content: 'memory', byteLength: unit * 2 }))
      let imported: PhysicalMemory
      try {
        imported = PhysicalMemory.import(t.device, longer)
      } catch (error) {
        assert.ok(error instanceof RangeError || error instanceof StatusError)
        return
      }
      t.own(imported)
      const range = t.own(AddressRange.reserve(unit * 2))
      assert.throws(() => range.map(imported), StatusError)
      assert.equal(range.mappedBytes, 0)
      t.own(range.map(physical))
    },
  },
  {
    name: 'memory is shared by fabric handles if the device supports them',
    async run(t) {
      const unit = allocationGranularity(t.device)
      if (t.device.attribute('HANDLE_TYPE_FABRIC_SUPPORTED') === 0) {
        assert.throws(() => PhysicalMemory.create(t.device, unit, { handleTypes: 'fabric' }), StatusError)
        return t.skip('the device has no fabric handles')
      }
      let physical: PhysicalMemory
      try {
        physical = t.own(PhysicalMemory.create(t.device, unit, { handleTypes: ['fabric', 'posix-fd'] }))
      } catch (error) {
        // The device supports fabric handles, but the system permits them only to some users.
        assert.ok(error instanceof StatusError && error.code === 'CUDA_ERROR_NOT_PERMITTED', String(error))
        return t.skip('this process is not permitted to make fabric handles')
      }
      const bytes = mapAgain(t, t.device, physical)
      bytes.fillSync(0x21)
      const handle = physical.export('fabric')
      assert.equal(handle.bytes.length, 64)
      const { child } = startPartner(t)
      assert.equal(await child.run('importFabric', JSON.parse(JSON.stringify(handle))), unit)
      assertSameBits((await child.run('read')) as Uint8Array, new Uint8Array(unit).fill(0x21), 'read by the child')
    },
  },
]
