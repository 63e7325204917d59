import assert from 'node:assert/strict'
import { AddressRange, allocationGranularity, type Device, DisposedError, StatusError } from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { isPowerOfTwo, outOfRange, places } from './expect.js'

/** Granularities and reserved addresses. */
export const reservationCases: readonly ConformanceCase[] = [
  {
    name: 'granularity: the recommended one is a multiple of the minimum, at every place',
    run(t) {
      for (const place of places(t)) {
        const minimum = allocationGranularity(place)
        const recommended = allocationGranularity(place, { granularity: 'recommended' })
        assert.ok(minimum > 0 && isPowerOfTwo(minimum), `${minimum}`)
        assert.equal(recommended % minimum, 0)
        if (typeof place === 'object' && 'ordinal' in place) {
          assert.equal(allocationGranularity(place, { handleTypes: 'posix-fd', gpuDirectRdma: true }) % minimum, 0)
        }
      }
      assert.throws(() => allocationGranularity(t.device, { granularity: 'best' as 'minimum' }), TypeError)
      assert.throws(() => allocationGranularity(t.device, { handleTypes: 'fd' as 'fabric' }), TypeError)
      assert.throws(() => allocationGranularity(0 as unknown as Device), TypeError)
      assert.throws(() => allocationGranularity({ hostNode: -1 }), outOfRange('hostNode', -1))
      assert.throws(() => allocationGranularity(t.device, { compressible: 1 as unknown as boolean }), TypeError)
    },
  },
  {
    name: 'addresses are reserved as long and as aligned as was asked for',
    run(t) {
      const unit = allocationGranularity(t.device)
      const ranges: AddressRange[] = []
      for (let round = 0; round < 8; round += 1) {
        const byteLength = unit * t.random.integer(1, 600)
        const alignment = 2 ** t.random.integer(21, 33)
        const range = t.own(AddressRange.reserve(byteLength, { alignment }))
        assert.equal(range.byteLength, byteLength)
        assert.equal(range.mappedBytes, 0)
        assert.equal(range.address % BigInt(alignment), 0n)
        for (const other of ranges) {
          const isApart =
            range.address >= other.address + BigInt(other.byteLength) ||
            other.address >= range.address + BigInt(byteLength)
          assert.ok(isApart, 'ranges must not overlap')
        }
        ranges.push(range)
      }
      const [first] = ranges as [AddressRange]
      const { address, byteLength } = first
      first.dispose()
      first.dispose()
      assert.throws(() => first.address, DisposedError)
      const again = t.own(AddressRange.reserve(byteLength, { address }))
      t.note(`the hint of an address that was just given back was ${again.address === address ? '' : 'not '}taken`)
    },
  },
  {
    name: 'a reservation of a wrong size or alignment is refused, with the rule and the value',
    run(t) {
      const unit = allocationGranularity(t.device)
      for (const byteLength of [1, 4096, unit + 1, unit * 1.5, unit * 3 - 1]) {
        assert.throws(() => AddressRange.reserve(byteLength), outOfRange('multiple', unit, byteLength))
      }
      assert.throws(() => AddressRange.reserve(0), outOfRange('byteLength', 0))
      assert.throws(() => AddressRange.reserve(-unit), outOfRange('byteLength', -unit))
      assert.throws(() => AddressRange.reserve(Number.NaN), TypeError)
      assert.throws(() => AddressRange.reserve(`${unit}` as unknown as number), TypeError)
      assert.throws(() => AddressRange.reserve(unit, { alignment: unit * 3 }), outOfRange('power of two', unit * 3))
      assert.throws(() => AddressRange.reserve(unit, { alignment: -1 }), outOfRange('alignment', -1))
      assert.throws(() => AddressRange.reserve(unit, { address: 5 as unknown as bigint }), TypeError)
      assert.throws(() => AddressRange.reserve(unit, { address: -1n }), outOfRange('address', -1))
      assert.throws(() => AddressRange.reserve(unit, { address: 2n ** 64n }), outOfRange('64 bits'))
      assert.throws(() => AddressRange.reserve(unit, 5 as unknown as object), TypeError)
      // More than a processor can address.
      assert.throws(() => AddressRange.reserve(2 ** 52), StatusError)
    },
  },
]
