import assert from 'node:assert/strict'
import {
  AddressRange,
  allocationGranularity,
  DeviceBuffer,
  DisposedError,
  type MappedRange,
  PhysicalMemory,
} from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { assertSameBits } from '../../../support/compare.js'
import { queueDelay } from '../../../support/delay.js'
import { assertNothingLeft } from '../../../support/leftovers.js'
import { type Mapped, mapAgain, mapNew, orders, someBytes } from '../../../support/mapping.js'
import { harmless, invalidValue, outOfRange } from './expect.js'

/** Lifetimes of memory, ranges and mappings, and the work that a disposal waits for. */
export const lifetimeCases: readonly ConformanceCase[] = [
  {
    name: 'whatever is disposed of first, the rest works, and nothing is left',
    timeout: 120_000,
    async run(t) {
      const byteLength = someBytes(t, t.device, 2)
      const data = t.random.bytes(byteLength)
      const make = (): Mapped & { readonly other: MappedRange } => {
        const physical = PhysicalMemory.create(t.device, byteLength)
        const range = AddressRange.reserve(byteLength * 2)
        const mapped = range.map(physical)
        const other = range.map(physical, { offset: byteLength })
        return { physical, range, mapped, other, bytes: DeviceBuffer.view(t.device, mapped, 'u8') }
      }
      await assertNothingLeft(t, () => {
        for (const order of orders(['physical', 'range', 'mapped', 'other'] as const)) {
          const all = make()
          all.bytes.copyFromSync(data)
          for (const name of order) {
            all[name].dispose()
            all[name].dispose()
            assert.equal(all[name].disposed, true)
            for (const each of [all.mapped, all.other]) {
              if (each.disposed) {
                assert.throws(() => each.address, DisposedError)
                assert.throws(() => DeviceBuffer.view(t.device, each, 'u8'), DisposedError)
              } else {
                const view = DeviceBuffer.view(t.device, each, 'u8')
                assertSameBits(view.toArraySync(), data, order.join())
              }
            }
            if (all.mapped.disposed) assert.throws(() => all.bytes.fillSync(1), DisposedError)
            if (all.range.disposed) assert.throws(() => all.range.map(all.physical), DisposedError)
          }
        }
      })
    },
  },
  {
    name: 'thousands of ranges made and disposed of leave nothing',
    timeout: 180_000,
    async run(t) {
      const unit = allocationGranularity(t.device)
      const times = t.isSoftware ? 500 : 5000
      const rssAfter: number[] = []
      await assertNothingLeft(t, () => {
        for (let round = 0; round < times; round += 1) {
          const range = AddressRange.reserve(unit * 4)
          const physical = PhysicalMemory.create(t.device, unit)
          const mapped = range.map(physical, { offset: unit * (round % 4) })
          const objects = [range, physical, mapped]
          for (let index = 0; index < 3; index += 1) objects[(index + round) % 3]?.dispose()
        }
        rssAfter.push(process.memoryUsage.rss())
      })
      const [first = 0, second = 0] = rssAfter
      t.note(`${times} ranges twice: resident memory ${first} bytes after the first time, ${second} after the second`)
    },
  },
  {
    name: 'memory is retained from an address and outlives its mapping',
    run(t) {
      const byteLength = someBytes(t, t.device)
      const { physical, mapped, range, bytes } = mapNew(t, t.device, byteLength)
      const data = t.random.bytes(byteLength)
      bytes.copyFromSync(data)
      const retained = t.own(PhysicalMemory.retain(t.device, mapped.address, byteLength))
      assert.deepEqual(retained.properties, physical.properties)
      const inside = mapped.address + BigInt(t.random.integer(1, byteLength - 1))
      t.own(PhysicalMemory.retain(t.device, inside, byteLength))
      mapped.disposeSync()
      physical.dispose()
      assert.throws(() => PhysicalMemory.retain(t.device, inside, byteLength), harmless(invalidValue))
      const again = t.own(range.map(retained))
      assertSameBits(DeviceBuffer.view(t.device, again, 'u8').toArraySync(), data, 'mapped again')
      const at = again.address
      assert.throws(() => PhysicalMemory.retain(t.device, at, byteLength + 1), outOfRange('multiple', byteLength + 1))
      assert.throws(() => PhysicalMemory.retain(t.device, at, 0), RangeError)
      assert.throws(() => PhysicalMemory.retain(t.device, 5 as unknown as bigint, byteLength), TypeError)
      assert.throws(() => PhysicalMemory.retain(t.device, -5n, byteLength), RangeError)
      assert.throws(() => PhysicalMemory.retain('host', at, byteLength), outOfRange('lies, on device 0', 'the host'))
      const second = t.devices[1]
      if (second === undefined) return
      assert.throws(() => PhysicalMemory.retain(second, at, byteLength), outOfRange('device 0', 'device 1'))
    },
  },
  {
    name: 'disposeSync() waits for the work that uses the memory',
    requires: { delay: true },
    async run(t) {
      const byteLength = someBytes(t, t.device)
      const { physical, mapped, bytes } = mapNew(t, t.device, byteLength)
      const other = mapAgain(t, t.device, physical)
      const stream = t.own(t.device.createStream({ nonBlocking: true }))
      await queueDelay(stream, 80)
      bytes.fill(5, { stream })
      const start = performance.now()
      mapped.disposeSync()
      const elapsed = performance.now() - start
      assert.ok(elapsed > 40, `it took only ${elapsed} ms`)
      assertSameBits(other.toArraySync(), new Uint8Array(byteLength).fill(5), 'the work was done')
      await stream.synchronize()
    },
  },
  {
    name: 'asynchronous disposal does not block the thread and waits for the work all the same',
    requires: { delay: true },
    async run(t) {
      const byteLength = someBytes(t, t.device)
      const { physical, mapped, range, bytes } = mapNew(t, t.device, byteLength)
      const other = mapAgain(t, t.device, physical)
      const stream = t.own(t.device.createStream({ nonBlocking: true }))
      await queueDelay(stream, 120)
      bytes.fill(6, { stream })
      const start = performance.now()
      const gone = mapped[Symbol.asyncDispose]()
      const elapsed = performance.now() - start
      assert.ok(elapsed < 70, `it blocked for ${elapsed} ms`)
      assert.throws(() => bytes.fill(1), DisposedError)
      assert.equal(range.mappedBytes, byteLength)
      await mapped[Symbol.asyncDispose]()
      await gone
      assert.equal(range.mappedBytes, 0)
      assertSameBits(other.toArraySync(), new Uint8Array(byteLength).fill(6), 'the work was done')
      t.own(range.map(physical))
      await stream.synchronize()
    },
  },
  {
    name: 'taking access away waits for the work that relies on it',
    requires: { delay: true },
    async run(t) {
      const byteLength = someBytes(t, t.device)
      const { mapped, bytes } = mapNew(t, t.device, byteLength)
      const stream = t.own(t.device.createStream({ nonBlocking: true }))
      await queueDelay(stream, 60)
      bytes.fill(5, { stream })
      mapped.setAccess(t.device, 'read')
      await stream.synchronize()
      assertSameBits(bytes.toArraySync(), new Uint8Array(byteLength).fill(5), 'the work was done')
    },
  },
  {
    name: 'the contents survive being unmapped and mapped elsewhere',
    run(t) {
      const byteLength = someBytes(t, t.device)
      const { physical, mapped, bytes } = mapNew(t, t.device, byteLength)
      const data = t.random.bytes(byteLength)
      bytes.copyFromSync(data)
      mapped.dispose()
      assertSameBits(mapAgain(t, t.device, physical).toArraySync(), data, 'elsewhere')
    },
  },
]
