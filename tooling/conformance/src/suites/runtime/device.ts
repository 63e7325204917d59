import assert from 'node:assert/strict'
import { Device as DriverDevice } from '@shoal/driver'
import {
  currentDevice,
  Device,
  type DeviceAttribute,
  type DeviceLimit,
  deviceAttributeNames,
  lastError,
  peekLastError,
  runtimeVersion,
  StatusError,
  setDevice,
  statusText,
  withDevice,
} from '@shoal/runtime'
import type { Suite } from '../../suite.js'

export const deviceSuite: Suite = {
  name: 'runtime device',
  cases: [
    {
      name: 'the devices are those of the driver',
      run(t) {
        assert.equal(statusText(2).name, 'cudaErrorMemoryAllocation')
        assert.equal(Device.count, DriverDevice.count)
        for (const device of Device.all()) {
          const other = DriverDevice.get(device.ordinal)
          assert.equal(Device.get(device.ordinal), device)
          assert.equal(Device.from(other), device)
          assert.equal(device.uuid, other.uuid)
          assert.equal(device.name, other.name)
          assert.equal(device.pciBusId.toLowerCase(), other.pciBusId.toLowerCase())
          assert.equal(Device.getByPciBusId(device.pciBusId), device)
          assert.equal(device.primaryContext.handle, other.primaryContext.handle)
        }
        assert.equal(t.device.ordinal, 0)
        assert.throws(() => Device.get(Device.count), RangeError)
        assert.throws(() => Device.get(0.5), TypeError)
        assert.throws(() => Device.getByPciBusId('ffff:ff:1f.0'), StatusError)
        assert.ok(runtimeVersion().value >= 12000)
      },
    },
    {
      name: 'the current device is set, restored and asked for',
      requires: { devices: 2 },
      run(t) {
        const before = currentDevice()
        t.defer(() => void setDevice(before))
        assert.equal(setDevice(1), Device.get(1))
        assert.equal(currentDevice().ordinal, 1)
        withDevice(t.device, (device) => {
          assert.equal(device, Device.get(0))
          assert.equal(currentDevice().ordinal, 0)
          withDevice(1, () => assert.equal(currentDevice().ordinal, 1))
          assert.equal(currentDevice().ordinal, 0)
          setDevice(1)
        })
        assert.equal(currentDevice().ordinal, 1)
        assert.throws(
          () =>
            withDevice(0, () => {
              throw new Error('from inside')
            }),
          /from inside/,
        )
        assert.equal(currentDevice().ordinal, 1)
        setDevice(0)
        assert.equal(currentDevice().ordinal, 0)
      },
    },
    {
      name: 'withDevice() takes functions that are not asynchronous, and devices that are there',
      run() {
        const before = currentDevice()
        const refusal = { name: 'TypeError', message: /fn must be a (synchronous )?function/ }
        assert.throws(() => withDevice(0, async () => undefined), refusal)
        assert.throws(() => withDevice(0, 5 as unknown as () => void), /fn must be a function/)
        assert.throws(() => withDevice(Device.count, () => undefined), RangeError)
        assert.throws(() => setDevice(-1), RangeError)
        assert.throws(() => setDevice('0' as unknown as number), TypeError)
        assert.equal(currentDevice(), before)
      },
    },
    {
      name: 'every property is that of the driver',
      run(t) {
        for (const device of Device.all()) {
          const other = DriverDevice.get(device.ordinal)
          const { properties } = device
          assert.equal(properties.name, other.name)
          assert.equal(properties.uuid, other.uuid)
          assert.equal(properties.totalGlobalMem, other.totalMemory)
          assert.equal(properties.major, other.computeCapability.major)
          assert.equal(properties.minor, other.computeCapability.minor)
          assert.equal(properties.multiProcessorCount, other.attribute('MULTIPROCESSOR_COUNT'))
          assert.equal(properties.warpSize, 32)
          assert.deepEqual(properties.maxThreadsDim, [
            other.attribute('MAX_BLOCK_DIM_X'),
            other.attribute('MAX_BLOCK_DIM_Y'),
            other.attribute('MAX_BLOCK_DIM_Z'),
          ])
          assert.equal(properties.memoryBusWidth, other.attribute('GLOBAL_MEMORY_BUS_WIDTH'))
          assert.equal(properties.l2CacheSize, other.attribute('L2_CACHE_SIZE'))
          assert.equal(properties.maxThreadsPerMultiProcessor, other.attribute('MAX_THREADS_PER_MULTIPROCESSOR'))
          assert.equal(properties.sharedMemPerBlockOptin, other.attribute('MAX_SHARED_MEMORY_PER_BLOCK_OPTIN'))
          assert.equal(properties.managedMemory, other.attribute('MANAGED_MEMORY') === 1)
          assert.equal(properties.memoryPoolsSupported, other.attribute('MEMORY_POOLS_SUPPORTED') === 1)
          assert.equal(properties.clusterLaunch, other.attribute('CLUSTER_LAUNCH') === 1)
          assert.equal(properties.pciBusID, other.attribute('PCI_BUS_ID'))
          assert.ok(properties.memoryPoolSupportedHandleTypes.includes('posix-fd'))
          assert.equal(properties.luid.length, 8)
          for (const [name, value] of Object.entries(properties)) {
            assert.ok(value !== undefined && !Number.isNaN(value), name)
          }
        }
        t.note(`${Object.keys(Device.get(0).properties).length} properties`)
      },
    },
    {
      name: 'every attribute answers',
      run(t) {
        const device = Device.get(0)
        const refused: string[] = []
        for (const name of deviceAttributeNames()) {
          try {
            assert.ok(Number.isInteger(device.attribute(name)), name)
          } catch (error) {
            // The header reserves these numbers.
            assert.ok(error instanceof StatusError && error.code === 'cudaErrorInvalidValue', `${name}: ${error}`)
            refused.push(name)
          }
        }
        assert.ok(refused.length < 10, refused.join(', '))
        if (refused.length > 0) t.note(`the driver does not answer ${refused.join(', ')}`)
        assert.equal(device.attribute('MultiProcessorCount'), t.device.attribute('MULTIPROCESSOR_COUNT'))
        for (const wrong of ['NoSuch', 'Max', 'toString', Symbol('WarpSize')]) {
          assert.throws(() => device.attribute(wrong as DeviceAttribute), /Device.attribute: attribute must be/)
        }
        lastError()
      },
    },
    {
      name: 'limits, priorities and memory are read, limits set',
      run(t) {
        const device = Device.get(0)
        const before = device.getLimit('StackSize')
        device.setLimit('StackSize', before + 1024)
        assert.ok(device.getLimit('StackSize') >= before + 1024)
        device.setLimit('StackSize', before)
        assert.throws(() => device.getLimit('NoSuch' as DeviceLimit), /Device.getLimit: limit must be/)
        assert.throws(() => device.setLimit('StackSize', -1), RangeError)
        assert.deepEqual(device.streamPriorityRange, t.device.primaryContext.streamPriorityRange)
        const { free, total } = device.memoryInfo()
        assert.ok(free > 0 && free <= total)
      },
    },
    {
      name: 'links between devices',
      requires: { devices: 2 },
      run(t) {
        const [first, second] = Device.all() as [Device, Device]
        assert.equal(first.canAccessPeer(second), t.device.canAccessPeer(DriverDevice.get(1)))
        assert.equal(first.peerAttribute('AccessSupported', 1), first.canAccessPeer(1) ? 1 : 0)
        assert.throws(() => first.enablePeerAccess(first), RangeError)
        if (!first.canAccessPeer(second)) return
        first.enablePeerAccess(second)
        first.enablePeerAccess(1)
        first.disablePeerAccess(second)
        first.disablePeerAccess(second)
        lastError()
      },
    },
    {
      name: 'an error is thrown with its name, and is the last one of the thread',
      run() {
        lastError()
        assert.equal(lastError(), undefined)
        assert.throws(
          () => Device.getByPciBusId('nonsense'),
          (error: unknown) => {
            assert.ok(error instanceof StatusError)
            assert.equal(error.library, 'CUDA runtime')
            assert.equal(error.api, 'cudaDeviceGetByPCIBusId')
            assert.match(error.code, /^cudaErrorInvalid/)
            assert.equal(error.isSticky, false)
            assert.equal(error.libraryVersion, runtimeVersion().toString())
            return true
          },
        )
        const peeked = peekLastError()
        assert.match(peeked?.code ?? '', /^cudaErrorInvalid/)
        assert.equal(lastError()?.status, peeked?.status)
        assert.equal(lastError(), undefined)
      },
    },
    {
      name: 'a device is waited for',
      async run() {
        const device = Device.get(0)
        assert.equal(await device.synchronize(), device)
        device.synchronizeSync()
      },
    },
  ],
}
