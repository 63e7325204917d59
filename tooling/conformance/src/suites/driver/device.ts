import assert from 'node:assert/strict'
import {
  Device,
  type DeviceAttribute,
  deviceAttributeNames,
  driverVersion,
  initialize,
  StatusError,
} from '@shoal/driver'
import type { Suite } from '../../suite.js'

export const deviceSuite: Suite = {
  name: 'driver device',
  cases: [
    {
      name: 'the driver starts and has a version',
      run() {
        initialize()
        assert.ok(driverVersion().major >= 11, String(driverVersion()))
      },
    },
    {
      name: 'all() lists every device once, and get() gives the same objects',
      run(t) {
        assert.equal(t.devices.length, Device.count)
        for (const [ordinal, device] of t.devices.entries()) {
          assert.equal(device.ordinal, ordinal)
          assert.equal(Device.get(ordinal), device)
        }
      },
    },
    {
      name: 'an ordinal that is none is refused before the call',
      run() {
        for (const ordinal of [-1, Device.count, 2 ** 40]) assert.throws(() => Device.get(ordinal), RangeError)
        for (const ordinal of [0.5, Number.NaN, '0', null]) {
          assert.throws(() => Device.get(ordinal as number), TypeError)
        }
      },
    },
    {
      name: 'names and ids are there, and ids differ between devices',
      run(t) {
        for (const device of t.devices) {
          assert.ok(device.name.length > 0)
          assert.match(device.uuid, /^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
          assert.match(device.pciBusId, /^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]$/)
        }
        assert.equal(new Set(t.devices.map((device) => device.uuid)).size, t.devices.length)
        assert.equal(new Set(t.devices.map((device) => device.pciBusId)).size, t.devices.length)
      },
    },
    {
      name: 'a device is found by its PCI bus id',
      run(t) {
        for (const device of t.devices) assert.equal(Device.getByPciBusId(device.pciBusId), device)
        assert.throws(() => Device.getByPciBusId('0000:00:00\0'), TypeError)
        assert.throws(() => Device.getByPciBusId('ffff:ff:1f.7'), StatusError)
      },
    },
    {
      name: 'memory sizes agree',
      run(t) {
        for (const device of t.devices) {
          const { free, total } = device.memoryInfo()
          assert.ok(Number.isSafeInteger(free) && free > 0 && free <= total, `${free} of ${total}`)
          assert.ok(device.totalMemory >= total * 0.9, `${device.totalMemory} and ${total}`)
        }
      },
    },
    {
      name: 'every attribute has a whole number',
      run(t) {
        const names = deviceAttributeNames()
        assert.ok(names.length >= 153, `${names.length} names`)
        for (const name of names) assert.ok(Number.isInteger(t.device.attribute(name)), name)
      },
    },
    {
      name: 'attributes a program depends on make sense',
      run(t) {
        for (const device of t.devices) {
          assert.ok(device.attribute('MULTIPROCESSOR_COUNT') > 0)
          assert.equal(device.attribute('WARP_SIZE'), 32)
          assert.equal(device.attribute('MAX_THREADS_PER_BLOCK'), 1024)
          assert.equal(device.attribute('UNIFIED_ADDRESSING'), 1)
          assert.deepEqual(device.computeCapability, {
            major: device.attribute('COMPUTE_CAPABILITY_MAJOR'),
            minor: device.attribute('COMPUTE_CAPABILITY_MINOR'),
          })
        }
      },
    },
    {
      name: 'an unknown attribute is refused before the call',
      run(t) {
        for (const name of ['MAX', 'multiprocessor_count', 'toString', '']) {
          assert.throws(() => t.device.attribute(name as DeviceAttribute), TypeError)
        }
      },
    },
    {
      name: 'peers: access is switched on and off, as often as one likes',
      requires: { devices: 2 },
      run(t) {
        const [first, second] = t.devices as [Device, Device]
        if (!first.canAccessPeer(second)) {
          assert.throws(() => first.enablePeerAccess(second), StatusError)
          t.skip('these devices have no peer access')
        }
        assert.equal(first.peerAttribute('ACCESS_SUPPORTED', second), 1)
        assert.equal(first.canAccessPeer(second.ordinal), true)
        first.enablePeerAccess(second)
        first.enablePeerAccess(second)
        first.disablePeerAccess(second)
        first.disablePeerAccess(second)
        assert.throws(() => first.enablePeerAccess(first), RangeError)
        assert.throws(() => first.canAccessPeer('1' as unknown as Device), TypeError)
      },
    },
    {
      name: 'disposing of a device lets it be used again',
      run(t) {
        const device = t.devices.at(-1) as Device
        const before = device.primaryContext
        device.dispose()
        device.dispose()
        const after = device.primaryContext
        assert.notEqual(before, after)
        assert.ok(device.memoryInfo().total > 0)
      },
    },
  ],
}
