import assert from 'node:assert/strict'
import {
  AddressRange,
  allocationGranularity,
  type Device,
  DeviceBuffer,
  DisposedError,
  type MappedRange,
  type MemoryPlace,
  PhysicalMemory,
  StatusError,
} from '@shoal/driver'
import { memoryProtocol } from '@shoal/types'
import type { CaseContext, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { queueDelay } from '../../support/delay.js'
import { assertNothingLeft } from '../../support/leftovers.js'
import { type Mapped, mapAgain, mapNew, oddPart, orders, someBytes } from '../../support/mapping.js'

const invalidValue = 1

/** An error of the driver that leaves the context as it was. */
function harmless(status: number, api?: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof StatusError &&
    error.status === status &&
    !error.isSticky &&
    (api === undefined || error.api === api)
}

/** A RangeError whose text has all of these in it. */
function outOfRange(...words: readonly (string | number)[]): (error: unknown) => boolean {
  return (error) => error instanceof RangeError && words.every((word) => error.message.includes(String(word)))
}

function isPowerOfTwo(value: number): boolean {
  return Number.isInteger(Math.log2(value))
}

/** Places that memory can be made at here. */
function places(t: CaseContext): MemoryPlace[] {
  const found: MemoryPlace[] = [...t.devices]
  if (t.device.attribute('HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED') === 1) found.push('host')
  if (t.device.attribute('HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED') === 1) {
    found.push({ hostNode: Math.max(0, t.device.attribute('HOST_NUMA_ID')) })
  }
  return found
}

export const virtualMemorySuite: Suite = {
  name: 'driver virtual memory',
  cases: [
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
    {
      name: 'physical memory tells what it is',
      run(t) {
        for (const place of places(t)) {
          const onDevice = typeof place === 'object' && 'ordinal' in place ? place : undefined
          const byteLength = allocationGranularity(place) * t.random.integer(1, 3)
          const memory = t.own(PhysicalMemory.create(place, byteLength))
          const { location, handleTypes, gpuDirectRdma, compressible } = memory.properties
          if (onDevice !== undefined) assert.deepEqual(location, { type: 'device', device: onDevice.ordinal })
          // Where it was made for the host as such, one of its nodes is told.
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
          // A kind of handle that the platform has not.
          assert.throws(() => PhysicalMemory.create(t.device, unit, { handleTypes: 'win32' }), StatusError)
          const { total } = t.device.memoryInfo()
          const tooMuch = Math.ceil((total * 2) / unit) * unit
          assert.throws(() => PhysicalMemory.create(t.device, tooMuch), harmless(2, 'cuMemCreate'))
        })
        mapNew(t, t.device, unit).bytes.fillSync(1)
      },
    },
    {
      name: 'mapped memory is memory: copies, fills and odd parts of it',
      async run(t) {
        for (const device of t.devices) {
          const byteLength = someBytes(t, device)
          const { mapped, range, bytes } = mapNew(t, device, byteLength)
          assert.equal(mapped.address, range.address)
          assert.equal(range.mappedBytes, byteLength)
          assert.deepEqual(mapped[memoryProtocol], {
            version: 0,
            address: mapped.address,
            byteLength,
            device: device.ordinal,
            context: device.primaryContext.handle,
          })
          const data = t.random.bytes(byteLength)
          bytes.copyFromSync(data)
          assertSameBits(bytes.toArraySync(), data, 'all of it')
          const stream = t.own(device.createStream({ nonBlocking: true }))
          for (let round = 0; round < 5; round += 1) {
            const part = oddPart(t, bytes)
            const start = Number(part.address - bytes.address)
            const value = t.random.integer(0, 255)
            part.fill(value, { stream })
            data.fill(value, start, start + part.length)
          }
          assertSameBits(await bytes.toArray({ stream }), data, 'after the fills')
          const copy = t.own(DeviceBuffer.allocate(device, 'u8', byteLength))
          copy.copyFromSync(bytes)
          assertSameBits(copy.toArraySync(), data, 'copied on the device')
        }
      },
    },
    {
      name: 'fresh physical memory reads as zeros',
      run(t) {
        const byteLength = someBytes(t, t.device)
        mapNew(t, t.device, byteLength).bytes.fillSync(0xa5)
        const { bytes } = mapNew(t, t.device, byteLength)
        const isZero = bytes.toArraySync().every((byte) => byte === 0)
        // The documentation of CUDA promises nothing; it is worth knowing.
        t.note(`fresh memory is ${isZero ? '' : 'not '}all zeros`)
        if (t.isSoftware) assert.ok(isZero)
      },
    },
    {
      name: 'several pieces of memory side by side are one piece of memory',
      run(t) {
        const unit = allocationGranularity(t.device)
        const sizes = Array.from({ length: t.random.integer(2, 5) }, () => unit * t.random.integer(1, 3))
        const total = sizes.reduce((sum, size) => sum + size, 0)
        const range = t.own(AddressRange.reserve(total + unit))
        let offset = unit
        for (const size of sizes) {
          const physical = t.own(PhysicalMemory.create(t.device, size))
          const mapped = t.own(range.map(physical, { offset }))
          assert.equal(mapped.offset, offset)
          assert.equal(mapped.address, range.address + BigInt(offset))
          offset += size
        }
        assert.equal(range.mappedBytes, total)
        const all = DeviceBuffer.fromAddress(t.device, range.address + BigInt(unit), 'u8', total)
        const data = t.random.bytes(total)
        all.copyFromSync(data)
        assertSameBits(all.toArraySync(), data, 'across the borders')
        all.slice(1, -1).fillSync(9)
        data.fill(9, 1, -1)
        assertSameBits(all.toArraySync(), data, 'filled across the borders')
      },
    },
    {
      name: 'two mappings of one memory see each other’s writes',
      async run(t) {
        const byteLength = someBytes(t, t.device)
        const { physical, range, bytes } = mapNew(t, t.device, byteLength)
        const other = mapAgain(t, t.device, physical)
        const wide = t.own(AddressRange.reserve(byteLength * 3))
        const third = DeviceBuffer.view(t.device, t.own(wide.map(physical, { offset: byteLength })), 'u8')
        assert.equal(range.mappedBytes, byteLength)
        const data = t.random.bytes(byteLength)
        bytes.copyFromSync(data)
        assertSameBits(other.toArraySync(), data, 'seen through the second')
        assertSameBits(third.toArraySync(), data, 'seen through the third')
        const part = oddPart(t, third)
        const start = Number(part.address - third.address)
        const patch = t.random.bytes(part.length)
        part.copyFromSync(patch)
        data.set(patch, start)
        assertSameBits(bytes.toArraySync(), data, 'written through the third')
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        other.fill(7, { stream })
        assertSameBits(await bytes.toArray({ stream }), new Uint8Array(byteLength).fill(7), 'filled through the second')
      },
    },
    {
      name: 'a part of physical memory is mapped where the driver can, and refused with nothing kept where it cannot',
      run(t) {
        const unit = allocationGranularity(t.device)
        const { physical, bytes } = mapNew(t, t.device, unit * 4)
        const data = t.random.bytes(unit * 4)
        bytes.copyFromSync(data)
        const range = t.own(AddressRange.reserve(unit * 4))
        for (const options of [
          { memoryOffset: unit },
          { byteLength: unit * 2 },
          { memoryOffset: unit * 2, byteLength: unit, offset: unit * 3 },
        ]) {
          // No driver so far does.
          assert.throws(() => range.map(physical, options), harmless(801, 'cuMemMap'))
          assert.equal(range.mappedBytes, 0)
        }
        const mapped = t.own(range.map(physical))
        assertSameBits(DeviceBuffer.view(t.device, mapped, 'u8').toArraySync(), data, 'the whole')
      },
    },
    {
      name: 'a mapping that does not fit, overlaps or is no memory is refused, and nothing is mapped',
      run(t) {
        const unit = allocationGranularity(t.device)
        const range = t.own(AddressRange.reserve(unit * 4))
        const one = t.own(PhysicalMemory.create(t.device, unit))
        const three = t.own(PhysicalMemory.create(t.device, unit * 3))
        const taken = t.own(range.map(one, { offset: unit }))
        const refuse = (options: object, ...words: (string | number)[]): void => {
          assert.throws(() => range.map(three, options), outOfRange(...words))
          assert.equal(range.mappedBytes, unit)
        }
        refuse({ offset: 1 }, 'offset', 'multiple', unit, 1)
        refuse({ offset: unit + 4096 }, 'offset', unit + 4096)
        refuse({ offset: -unit }, 'offset', -unit)
        refuse({ offset: unit * 2 }, 'beyond the range', unit * 2, unit * 3, unit * 4)
        refuse({ offset: unit * 4 }, 'beyond the range', unit * 4)
        refuse({ offset: 2 ** 50 }, 'beyond the range', 2 ** 50)
        refuse({}, 'overlap', unit)
        refuse({ memoryOffset: unit * 3 }, 'memoryOffset', 'beyond the memory', unit * 3)
        refuse({ memoryOffset: 5 }, 'memoryOffset', 'multiple', 5)
        refuse({ byteLength: unit * 4 }, 'beyond the memory', unit * 4, unit * 3)
        refuse({ byteLength: unit - 1 }, 'byteLength', 'multiple', unit - 1)
        refuse({ byteLength: 0 }, 'byteLength', 0)
        assert.throws(() => range.map(three, { offset: Number.NaN }), TypeError)
        assert.throws(() => range.map(three, 5 as unknown as object), TypeError)
        for (const bad of [undefined, 5, {}, t.device, taken, DeviceBuffer.allocate(t.device, 'u8', 0)]) {
          assert.throws(() => range.map(bad as unknown as PhysicalMemory, { offset: unit * 2 }), TypeError)
        }
        assert.throws(() => range.map(one, { access: { place: t.device } as never }), TypeError)
        assert.throws(() => range.map(one, { access: [{ place: t.device, access: 'write' as 'read' }] }), TypeError)
        assert.throws(() => range.map(one, { access: [{ place: 3 as never, access: 'read' }] }), TypeError)
        const gone = PhysicalMemory.create(t.device, unit)
        gone.dispose()
        gone.dispose()
        assert.throws(() => range.map(gone, { offset: unit * 2 }), DisposedError)
        assert.throws(() => gone.properties, DisposedError)
        assert.throws(() => gone.export(), DisposedError)
        const closed = AddressRange.reserve(unit)
        closed.dispose()
        assert.throws(() => closed.map(one), DisposedError)
        assert.equal(range.mappedBytes, unit)
        const fits = t.own(range.map(one, { offset: unit * 2 }))
        DeviceBuffer.view(t.device, fits, 'u8').fillSync(1)
      },
    },
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
        // Memory of a device is nothing that the host can be let into.
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
        if (!second.canAccessPeer(first)) return t.note('the devices cannot reach each other: not tried')
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
        if (!first.canAccessPeer(second)) return t.note('the devices cannot reach each other: no more was tried')
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
          assert.equal(mapped[memoryProtocol].device, -1)
          const bytes = DeviceBuffer.view(t.device, mapped, 'u8')
          const data = t.random.bytes(byteLength)
          bytes.copyFromSync(data)
          assertSameBits(await bytes.toArray(), data, 'memory of the host')
          mapped.setAccess(place, 'readWrite')
          assert.equal(mapped.getAccess(place), 'readWrite')
        }
      },
    },
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
        const residents: number[] = []
        await assertNothingLeft(t, () => {
          for (let round = 0; round < times; round += 1) {
            const range = AddressRange.reserve(unit * 4)
            const physical = PhysicalMemory.create(t.device, unit)
            const mapped = range.map(physical, { offset: unit * (round % 4) })
            const objects = [range, physical, mapped]
            for (let index = 0; index < 3; index += 1) objects[(index + round) % 3]?.dispose()
          }
          residents.push(process.memoryUsage.rss())
        })
        const [first = 0, second = 0] = residents
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
        const retained = t.own(PhysicalMemory.retain(mapped.address, byteLength, t.device))
        assert.deepEqual(retained.properties, physical.properties)
        const inside = mapped.address + BigInt(t.random.integer(1, byteLength - 1))
        t.own(PhysicalMemory.retain(inside, byteLength, t.device))
        mapped.dispose()
        physical.dispose()
        assert.throws(() => PhysicalMemory.retain(inside, byteLength, t.device), harmless(invalidValue))
        const again = t.own(range.map(retained))
        assertSameBits(DeviceBuffer.view(t.device, again, 'u8').toArraySync(), data, 'mapped again')
        const at = again.address
        assert.throws(() => PhysicalMemory.retain(at, byteLength + 1, t.device), outOfRange('multiple', byteLength + 1))
        assert.throws(() => PhysicalMemory.retain(at, 0, t.device), RangeError)
        assert.throws(() => PhysicalMemory.retain(5 as unknown as bigint, byteLength, t.device), TypeError)
        assert.throws(() => PhysicalMemory.retain(-5n, byteLength, t.device), RangeError)
        assert.throws(() => PhysicalMemory.retain(at, byteLength, 'host'), outOfRange('lies on device 0', 'the host'))
        const second = t.devices[1]
        if (second === undefined) return
        assert.throws(() => PhysicalMemory.retain(at, byteLength, second), outOfRange('device 0', 'device 1'))
      },
    },
    {
      name: 'dispose() waits for the work that uses the memory',
      requires: { delay: true },
      async run(t) {
        const byteLength = someBytes(t, t.device)
        const { physical, mapped, bytes } = mapNew(t, t.device, byteLength)
        const other = mapAgain(t, t.device, physical)
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        await queueDelay(stream, 80)
        bytes.fill(5, { stream })
        const start = performance.now()
        mapped.dispose()
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
  ],
}
