import assert from 'node:assert/strict'
import { openSync } from 'node:fs'
import {
  AddressRange,
  allocationGranularity,
  DescriptorHandle,
  type Device,
  DeviceBuffer,
  DisposedError,
  FeatureNotSupportedError,
  MulticastObject,
  multicastGranularity,
  PhysicalMemory,
  StatusError,
} from '@shoal/driver'
import { memoryProtocol } from '@shoal/types'
import type { CaseContext, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { assertNothingLeft } from '../../support/leftovers.js'
import { type Mapped, mapNew, orders } from '../../support/mapping.js'
import { exportAs, hand, startPartner } from './sharing/partner.js'

/** Never create multicast objects on a GPU here: a failure can break the links of a shared host. */
const software = { only: 'software' } as const

interface Team {
  readonly object: MulticastObject
  readonly members: readonly Mapped[]
  /** A write here reaches every member. */
  readonly all: DeviceBuffer<'u8'>
}

/** Creates an object of all devices, binds memory of each device to it, and maps it for the first device. */
function makeTeam(t: CaseContext, granules = 2): Team {
  const count = t.devices.length
  const byteLength = multicastGranularity({ deviceCount: count, byteLength: 1 }) * granules
  const object = t.own(MulticastObject.create({ deviceCount: count, byteLength }))
  for (const device of t.devices) object.addDevice(device)
  const members = t.devices.map((device) => mapNew(t, device, byteLength))
  for (const { physical } of members) object.bindMemorySync(physical)
  const range = t.own(AddressRange.reserve(byteLength))
  const all = DeviceBuffer.view(t.device, t.own(range.map(object)), 'u8')
  return { object, members, all }
}

function outOfRange(...words: readonly (string | number)[]): (error: unknown) => boolean {
  return (error) => error instanceof RangeError && words.every((word) => error.message.includes(String(word)))
}

export const multicastSuite: Suite = {
  name: 'driver multicast',
  cases: [
    {
      name: 'the granularity is told where there is multicast, and what is missing where there is not',
      run(t) {
        const isSupported = t.device.attribute('MULTICAST_SUPPORTED') === 1
        t.note(`MULTICAST_SUPPORTED is ${isSupported ? 1 : 0}`)
        const properties = { deviceCount: t.devices.length, byteLength: 2 ** 21 }
        if (!isSupported) {
          assert.throws(
            () => multicastGranularity(properties),
            (error) => error instanceof FeatureNotSupportedError && error.message.includes('MULTICAST_SUPPORTED'),
          )
          return
        }
        const minimum = multicastGranularity(properties, 'minimum')
        const recommended = multicastGranularity(properties)
        assert.ok(minimum > 0 && recommended % minimum === 0, `${minimum}, ${recommended}`)
        t.note(`granularity: ${minimum} bytes at least, ${recommended} recommended`)
        assert.throws(() => multicastGranularity({ deviceCount: 0, byteLength: 1 }), outOfRange('deviceCount', 0))
        assert.throws(() => multicastGranularity(properties, 'best' as 'minimum'), TypeError)
        assert.throws(() => multicastGranularity(5 as never), TypeError)
      },
    },
    {
      name: 'one multicast write reaches the memory of every device',
      requires: software,
      async run(t) {
        const { object, members, all } = makeTeam(t)
        const { byteLength } = object
        const data = t.random.bytes(byteLength)
        all.copyFromSync(data)
        for (const [index, { bytes }] of members.entries()) {
          assertSameBits(bytes.toArraySync(), data, `copied to device ${index}`)
        }
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (let round = 0; round < 4; round += 1) {
          const start = t.random.integer(0, byteLength - 2)
          const end = t.random.integer(start + 1, byteLength)
          const value = t.random.integer(0, 255)
          all.slice(start, end).fill(value, { stream })
          data.fill(value, start, end)
        }
        await stream.synchronize()
        for (const [index, { bytes }] of members.entries()) {
          assertSameBits(bytes.toArraySync(), data, `filled on device ${index}`)
        }
        const own = t.random.bytes(100)
        members[0]?.bytes.slice(0, 100).copyFromSync(own)
        const others = members.slice(1)
        for (const { bytes } of others) {
          assertSameBits(bytes.slice(0, 100).toArraySync(), data.subarray(0, 100), 'a write of one device stays there')
        }
        assert.throws(() => all.toArraySync(), StatusError)
      },
    },
    {
      name: 'only devices of the team can write through a mapping of a multicast object',
      requires: { ...software, devices: 2 },
      run(t) {
        const { object, members } = makeTeam(t)
        const range = t.own(AddressRange.reserve(object.byteLength))
        const mapped = t.own(range.map(object))
        assert.equal(mapped[memoryProtocol].deviceOrdinal, t.device.ordinal)
        for (const [index, device] of t.devices.entries()) {
          assert.equal(mapped.getAccess(device), 'readWrite')
          DeviceBuffer.view(device, mapped, 'u8').fillSync(index + 1)
          for (const { bytes } of members) {
            assertSameBits(bytes.toArraySync(), new Uint8Array(object.byteLength).fill(index + 1), `device ${index}`)
          }
        }
        const [first, second] = t.devices as [Device, Device]
        const alone = t.own(MulticastObject.create({ deviceCount: 1, byteLength: object.byteLength }))
        alone.addDevice(first)
        const elsewhere = t.own(AddressRange.reserve(object.byteLength))
        assert.throws(() => elsewhere.map(alone, { access: [{ place: second, access: 'readWrite' }] }), StatusError)
        assert.equal(elsewhere.mappedBytes, 0)
        t.own(elsewhere.map(alone))
      },
    },
    {
      name: 'parts of memory are bound to a multicast object at offsets, by handle and by address, and unbound',
      requires: software,
      run(t) {
        const { device } = t
        const unit = multicastGranularity({ deviceCount: 1, byteLength: 1 }, 'minimum')
        const object = t.own(MulticastObject.create({ deviceCount: 1, byteLength: unit * 4 }))
        object.addDevice(device)
        assert.deepEqual(object.deviceOrdinals, [device.ordinal])
        const first = mapNew(t, device, unit * 2)
        const second = mapNew(t, device, unit * 2)
        object.bindMemorySync(first.physical, { offset: unit * 2, memoryOffset: unit, byteLength: unit })
        object.bindAddressSync(second.mapped, { offset: unit, memoryOffset: unit, byteLength: unit })
        const range = t.own(AddressRange.reserve(unit * 4))
        const all = DeviceBuffer.view(device, t.own(range.map(object)), 'u8')
        const data = t.random.bytes(unit * 4)
        all.copyFromSync(data)
        const check = (what: string, { bytes }: Mapped, expected: Uint8Array): void => {
          const whole = new Uint8Array(unit * 2)
          whole.set(expected, unit)
          assertSameBits(bytes.toArraySync(), whole, what)
        }
        check('bound by its handle', first, data.subarray(unit * 2, unit * 3))
        check('bound by its address', second, data.subarray(unit, unit * 2))
        object.unbind(device, { offset: unit * 2 })
        all.fillSync(9)
        check('not bound any more', first, data.subarray(unit * 2, unit * 3))
        check('still bound', second, new Uint8Array(unit).fill(9))
        const raw = first.physical.handle
        assert.throws(() => object.bindMemorySync(raw, { offset: unit * 2 }), TypeError)
        object.bindMemorySync(raw, { offset: unit * 2, byteLength: unit * 2 })
        all.fillSync(7)
        assertSameBits(
          first.bytes.toArraySync(),
          new Uint8Array(unit * 2).fill(7),
          'bound again, all of it, by its raw handle',
        )
      },
    },
    {
      name: 'memory stays bound after its handle, its mapping or the multicast object’s handle is released',
      requires: software,
      async run(t) {
        const { device } = t
        const unit = multicastGranularity({ deviceCount: 1, byteLength: 1 })
        await assertNothingLeft(t, () => {
          for (const order of orders(['object', 'physical', 'mapping', 'view'] as const)) {
            const object = MulticastObject.create({ deviceCount: 1, byteLength: unit }).addDevice(device)
            const physical = PhysicalMemory.create(device, unit)
            const range = AddressRange.reserve(unit * 2)
            const view = range.map(physical)
            const mapping = range.map(object.bindMemorySync(physical), { offset: unit })
            range.dispose()
            const all = { object, physical, mapping, view }
            for (const [index, name] of order.entries()) {
              all[name].dispose()
              all[name].dispose()
              if (mapping.disposed || view.disposed) continue
              assert.equal(mapping[memoryProtocol].deviceOrdinal, device.ordinal)
              DeviceBuffer.view(device, mapping, 'u8').fillSync(index + 1)
              const seen = DeviceBuffer.view(device, view, 'u8').toArraySync()
              assertSameBits(seen, new Uint8Array(unit).fill(index + 1), order.join())
            }
            assert.throws(() => object.handle, DisposedError)
            assert.throws(() => object.bindMemorySync(physical), DisposedError)
            assert.throws(() => object.addDevice(device), DisposedError)
            assert.throws(() => object.export(), DisposedError)
          }
        })
      },
    },
    {
      name: 'a multicast binding that does not fit is refused with the rule and the value, and binds nothing',
      requires: software,
      run(t) {
        const { device } = t
        const unit = multicastGranularity({ deviceCount: 1, byteLength: 1 }, 'minimum')
        const create = (deviceCount: number, byteLength: number) => () =>
          MulticastObject.create({ deviceCount, byteLength })
        assert.throws(create(1, unit + 1), outOfRange('multiple', unit, unit + 1))
        assert.throws(create(1, 0), outOfRange('byteLength', 0))
        assert.throws(create(0, unit), outOfRange('deviceCount', 0))
        assert.throws(create(t.devices.length + 1, unit), StatusError)
        assert.throws(() => MulticastObject.create({} as never), TypeError)
        assert.throws(
          () => MulticastObject.create({ deviceCount: 1, byteLength: unit, handleTypes: 'fd' as 'fabric' }),
          TypeError,
        )
        const object = t.own(MulticastObject.create({ deviceCount: 1, byteLength: unit * 2 }))
        const { physical, mapped } = mapNew(t, device, unit * 4)
        const range = t.own(AddressRange.reserve(unit * 2))
        // The devices have not been added yet.
        const incomplete = outOfRange('all 1 devices', '0 are')
        assert.throws(() => object.bindMemorySync(physical, { byteLength: unit }), incomplete)
        assert.throws(() => object.bindAddressSync(mapped, { byteLength: unit }), incomplete)
        assert.throws(() => range.map(object), incomplete)
        assert.equal(range.mappedBytes, 0)
        object.addDevice(device)
        assert.throws(() => object.addDevice(device), outOfRange('added already', device.ordinal))
        assert.throws(() => object.addDevice(0 as never), TypeError)
        const refuse = (options: object, ...words: (string | number)[]): void => {
          assert.throws(() => object.bindMemorySync(physical, options), outOfRange(...words))
          assert.throws(() => object.bindAddressSync(mapped, options), outOfRange(...words))
        }
        refuse({}, 'within the multicast object', unit * 4, unit * 2)
        refuse({ offset: unit * 2, byteLength: unit }, 'within the multicast object', unit * 2)
        refuse({ memoryOffset: unit * 4, byteLength: unit }, 'within the memory', unit * 4)
        refuse({ offset: 5, byteLength: unit }, 'offset', 'multiple', 5)
        refuse({ memoryOffset: 5, byteLength: unit }, 'memoryOffset', 'multiple', 5)
        refuse({ byteLength: unit - 1 }, 'byteLength', 'multiple', unit - 1)
        assert.throws(() => object.bindMemorySync(mapped as never), TypeError)
        assert.throws(() => object.bindAddressSync(5 as never), TypeError)
        assert.throws(() => object.bindMemorySync(physical, 5 as never), TypeError)
        object.bindMemorySync(physical, { offset: unit, byteLength: unit })
        refuse({ byteLength: unit * 2 }, 'overlap', unit)
        assert.throws(() => object.unbind(device), outOfRange(`device ${device.ordinal} has memory bound at`, 0))
        assert.throws(() => object.unbind(device, { offset: unit, byteLength: unit * 2 }), outOfRange(unit * 2))
        object.unbind(device, { offset: unit, byteLength: unit })
        assert.throws(
          () => object.unbind(device, { offset: unit }),
          outOfRange(`device ${device.ordinal} has memory bound at`, unit),
        )
        const gone = PhysicalMemory.create(device, unit)
        gone.dispose()
        assert.throws(() => object.bindMemorySync(gone), DisposedError)
        const second = t.devices[1]
        if (second === undefined) return
        const foreign = mapNew(t, second, unit)
        assert.throws(
          () => object.bindMemorySync(foreign.physical),
          outOfRange(`not on device ${second.ordinal}`, 'was added'),
        )
        assert.throws(() => object.addDevice(second), outOfRange('1 devices'))
        assert.throws(() => object.unbind(second), RangeError)
      },
    },
    {
      name: 'a multicast write reaches memory of another process in the team',
      requires: { ...software, devices: 2 },
      async run(t) {
        const [first] = t.devices as [Device, Device]
        const byteLength = multicastGranularity({ deviceCount: 2, byteLength: 1 }) * 2
        const object = t.own(MulticastObject.create({ deviceCount: 2, byteLength, handleTypes: 'posix-fd' }))
        object.addDevice(first)
        const { child, socket } = startPartner(t)
        const ready = child.run('receiveMulticast', { device: 1 })
        await hand(socket, object.export())
        await ready
        const mine = mapNew(t, first, byteLength, { isShared: true })
        await Promise.all([child.run('bindMulticast', { device: 1 }), object.bindMemory(mine.physical)])
        const range = t.own(AddressRange.reserve(byteLength))
        const all = DeviceBuffer.view(first, t.own(range.map(object)), 'u8')
        const data = t.random.bytes(byteLength)
        all.copyFromSync(data)
        assertSameBits(mine.bytes.toArraySync(), data, 'here')
        assertSameBits((await child.run('read')) as Uint8Array, data, 'there')
        assert.equal((await child.kill()).signal, 'SIGKILL')
        all.fillSync(3)
        assertSameBits(mine.bytes.toArraySync(), data.fill(3), 'here, when the other is gone')
      },
    },
    {
      name: 'a handle of memory is refused as one of a multicast object, and the reverse',
      requires: software,
      async run(t) {
        const unit = multicastGranularity({ deviceCount: 1, byteLength: 1 })
        await assertNothingLeft(t, async () => {
          const object = MulticastObject.create({ deviceCount: 1, byteLength: unit, handleTypes: 'posix-fd' })
          const handle = object.export()
          assert.deepEqual(handle.toJSON(), { type: 'posix-fd', content: 'multicast', byteLength: unit })
          assert.throws(() => PhysicalMemory.import(t.device, handle as never), TypeError)
          const other = MulticastObject.import(handle)
          assert.equal(other.byteLength, unit)
          assert.equal(other.deviceCount, undefined)
          other.dispose()
          const physical = PhysicalMemory.create(t.device, unit, { handleTypes: 'posix-fd' })
          const memory = physical.export()
          assert.throws(() => MulticastObject.import(memory as never), TypeError)
          // A descriptor of another kind than its handle says.
          const lie = await exportAs(memory, { content: 'multicast' })
          const wrong = importOrError(lie)
          if (wrong instanceof MulticastObject) {
            assert.throws(() => wrong.addDevice(t.device), StatusError)
            wrong.dispose()
          } else {
            assert.ok(wrong instanceof StatusError)
          }
          lie.dispose()
          memory.dispose()
          handle.dispose()
          physical.dispose()
          object.dispose()
          const closed = MulticastObject.create({ deviceCount: 1, byteLength: unit })
          assert.throws(() => closed.export(), StatusError)
          closed.dispose()
          const size = allocationGranularity(t.device)
          const odd = new DescriptorHandle(openSync('/dev/null', 'r'), { content: 'multicast', byteLength: size + 1 })
          assert.throws(() => MulticastObject.import(odd), outOfRange('multiple', size + 1))
          odd.dispose()
        })
      },
    },
  ],
}

function importOrError(handle: DescriptorHandle<'multicast'>): unknown {
  try {
    return MulticastObject.import(handle)
  } catch (error) {
    return error
  }
}
