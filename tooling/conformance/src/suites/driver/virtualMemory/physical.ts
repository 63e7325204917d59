import assert from 'node:assert/strict'
import { allocationGranularity, type Device, PhysicalMemory, StatusError } from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { assertNothingLeft } from '../../../support/leftovers.js'
import { mapNew } from '../../../support/mapping.js'
import { harmless, invalidValue, outOfRange, places } from './expect.js'

/** Physical memory and its properties. */
export const physicalCases: readonly ConformanceCase[] = [
  {
    name: 'physical memory tells what it is',
    run(t) {
      for (const place of places(t)) {
        const onDevice = typeof place === 'object' && 'ordinal' in place ? place : undefined
        const byteLength = allocationGranularity(place) * t.random.integer(1, 3)
        const memory = t.own(PhysicalMemory.create(place, byteLength))
        const { location, handleTypes, gpuDirectRdma, compressible } = memory.properties
        if (onDevice !== undefined) assert.deepEqual(location, { type: 'device', deviceOrdinal: onDevice.ordinal })
        // For memory created for the host as a whole, the driver may report one of the host's nodes.
        else if (place === 'host') assert.ok(location.type === 'host' || location.type === 'host-node', location.type)
        else assert.deepEqual(location, { type: 'host-node', node: (place as { hostNode: number }).hostNode })
        assert.deepEqual(handleTypes, [])
        assert.equal(gpuDirectRdma, false)
        assert.equal(compressible, false)
        assert.equal(memory.byteLength, byteLength)
      }
      const rdma = t.device.attribute('GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED') === 1
      const options = { handleTypes: ['posix-fd'], gpuDirectRdma: rdma, compressible: true } as const
      const byteLength = allocationGranularity(t.device, options)
      const shared = t.own(PhysicalMemory.create(t.device, byteLength, options))
      assert.deepEqual(shared.properties.handleTypes, ['posix-fd'])
      assert.equal(shared.properties.gpuDirectRdma, rdma)
      t.note(`memory that may be compressed says compressible: ${shared.properties.compressible}`)
    },
  },
  {
    name: 'physical memory of a wrong size, kind or amount is refused, and nothing is kept',
    async run(t) {
      const unit = allocationGranularity(t.device)
      await assertNothingLeft(t, () => {
        for (const byteLength of [1, unit - 1, unit + 4096, unit * 2.5]) {
          const create = (): unknown => PhysicalMemory.create(t.device, byteLength)
          assert.throws(create, outOfRange('multiple', unit, byteLength))
        }
        assert.throws(() => PhysicalMemory.create(t.device, 0), RangeError)
        assert.throws(() => PhysicalMemory.create(t.device, 0.5), TypeError)
        assert.throws(() => PhysicalMemory.create('device' as unknown as Device, unit), TypeError)
        assert.throws(() => PhysicalMemory.create({ hostNode: 1.5 }, unit), TypeError)
        assert.throws(() => PhysicalMemory.create({ hostNode: 4000 }, unit), StatusError)
        assert.throws(() => PhysicalMemory.create({ hostNode: 'current' }, unit), harmless(invalidValue))
        // A kind of handle that the platform does not have.
        assert.throws(() => PhysicalMemory.create(t.device, unit, { handleTypes: 'win32' }), StatusError)
        const { total } = t.device.memoryInfo()
        const tooMuch = Math.ceil((total * 2) / unit) * unit
        assert.throws(() => PhysicalMemory.create(t.device, tooMuch), harmless(2, 'cuMemCreate'))
      })
      mapNew(t, t.device, unit).bytes.fillSync(1)
    },
  },
]
