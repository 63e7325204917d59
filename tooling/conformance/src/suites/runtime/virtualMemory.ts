import assert from 'node:assert/strict'
import {
  AddressRange,
  allocationGranularity,
  currentDevice,
  Device,
  DeviceBuffer,
  DisposedError,
  GrowableRange,
  MulticastObject,
  multicastGranularity,
  PhysicalMemory,
  setDevice,
} from '@shoal/runtime'
import type { Suite } from '../../suite.js'

export const virtualMemorySuite: Suite = {
  name: 'runtime virtual memory',
  cases: [
    {
      name: 'physical memory of the current device is mapped, used, retained and unmapped',
      run(t) {
        const granularity = allocationGranularity()
        assert.ok(allocationGranularity({ granularity: 'recommended' }) % granularity === 0)
        const physical = t.own(PhysicalMemory.create(granularity))
        assert.ok(physical instanceof PhysicalMemory)
        assert.deepEqual(physical.properties.location, { type: 'device', deviceOrdinal: currentDevice().ordinal })
        const range = t.own(AddressRange.reserve(2 * granularity))
        const first = t.own(range.map(physical))
        const second = t.own(range.map(physical, { offset: granularity }))
        const memory = DeviceBuffer.view(first, 'u32')
        memory.fillSync(0x01020304)
        const alias = DeviceBuffer.view(second, 'u32')
        assert.equal(alias.toArraySync().at(-1), 0x01020304)
        assert.equal(first.getAccess(Device.get(0)), 'readWrite')
        const retained = t.own(PhysicalMemory.retain(first.address, granularity))
        assert.equal(retained.byteLength, granularity)
        first.dispose()
        assert.throws(() => memory.address, DisposedError)
        assert.equal(alias.slice(0, 1).toArraySync()[0], 0x01020304)
      },
    },
    {
      name: 'places, sizes and options that are none',
      run() {
        const granularity = allocationGranularity()
        assert.throws(() => PhysicalMemory.create(granularity + 1), RangeError)
        assert.throws(() => PhysicalMemory.create(0), RangeError)
        assert.throws(() => PhysicalMemory.create(granularity, { place: 'moon' as 'host' }), TypeError)
        assert.throws(() => PhysicalMemory.create(granularity, 5 as unknown as object), TypeError)
        assert.throws(() => allocationGranularity({ granularity: 'least' as 'minimum' }), TypeError)
        assert.throws(() => AddressRange.reserve(granularity - 1), RangeError)
      },
    },
    {
      name: 'memory is made where the current device is, and another device gets access',
      requires: { devices: 2 },
      run(t) {
        const before = currentDevice()
        t.defer(() => void setDevice(before))
        setDevice(1)
        const granularity = allocationGranularity()
        const physical = t.own(PhysicalMemory.create(granularity))
        assert.deepEqual(physical.properties.location, { type: 'device', deviceOrdinal: 1 })
        const range = t.own(AddressRange.reserve(granularity))
        const mapped = t.own(range.map(physical))
        const memory = DeviceBuffer.view(mapped, 'u8')
        assert.equal(memory.device, Device.get(1))
        memory.fillSync(4)
        assert.equal(mapped.getAccess(Device.get(0)), 'none')
        if (!Device.get(0).canAccessPeer(1)) return
        mapped.setAccess(Device.get(0), 'readWrite')
        const there = DeviceBuffer.view(mapped, 'u8', { device: 0 })
        assert.equal(there.slice(0, 1).toArraySync()[0], 4)
      },
    },
    {
      name: 'memory is exported and imported',
      run(t) {
        const granularity = allocationGranularity({ handleTypes: 'posix-fd' })
        const physical = t.own(PhysicalMemory.create(granularity, { handleTypes: 'posix-fd' }))
        const handle = t.own(physical.export())
        const imported = t.own(PhysicalMemory.import(handle))
        const range = t.own(AddressRange.reserve(2 * granularity))
        const here = t.own(range.map(physical))
        const there = t.own(range.map(imported, { offset: granularity }))
        DeviceBuffer.view(here, 'u8').fillSync(6)
        assert.equal(DeviceBuffer.view(there, 'u8').slice(0, 1).toArraySync()[0], 6)
      },
    },
    {
      name: 'memory grows in place',
      run(t) {
        const growable = t.own(GrowableRange.reserve({ maximumBytes: 1 << 23 }))
        const { address } = growable
        growable.resize(1000)
        const memory = DeviceBuffer.view(growable, 'u8')
        memory.fillSync(2)
        growable.resize(1 << 22)
        assert.equal(growable.address, address)
        assert.equal(DeviceBuffer.view(growable, 'u8').slice(0, 1).toArraySync()[0], 2)
        growable.resize(500)
        assert.throws(() => memory.address, RangeError)
      },
    },
    {
      name: 'a multicast write lands on every device',
      requires: { devices: 2, only: 'software' },
      run(t) {
        const devices = Device.all().slice(0, 2)
        const byteLength = multicastGranularity({ deviceCount: 2, byteLength: 1 << 21 })
        const object = t.own(MulticastObject.create({ deviceCount: 2, byteLength }))
        for (const device of devices) object.addDevice(device)
        const views = devices.map((device) => {
          const physical = t.own(PhysicalMemory.create(byteLength, { place: device }))
          object.bindMemorySync(physical)
          const range = t.own(AddressRange.reserve(byteLength))
          return DeviceBuffer.view(t.own(range.map(physical)), 'u32')
        })
        const range = t.own(AddressRange.reserve(byteLength))
        const mapped = t.own(range.map(object))
        DeviceBuffer.view(mapped, 'u32', { device: 0 }).fillSync(0xabcdef01)
        for (const view of views) assert.equal(view.toArraySync().at(-1), 0xabcdef01)
      },
    },
  ],
}
