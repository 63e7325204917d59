import assert from 'node:assert/strict'
import {
  allocationGranularity,
  type Device,
  DeviceBuffer,
  DisposedError,
  GrowableBuffer,
  GrowableRange,
  StatusError,
} from '@shoal/driver'
import { type DType, dtypeInfo, memoryProtocol } from '@shoal/types'
import type { Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { queueDelay } from '../../support/delay.js'
import { assertNothingLeft } from '../../support/leftovers.js'

export const growableSuite: Suite = {
  name: 'driver growable memory',
  cases: [
    {
      name: 'it grows and shrinks in place: the address stays, and so does what it holds',
      async run(t) {
        const unit = allocationGranularity(t.device)
        for (const dtype of ['u8', 'f32', 'f64'] as const) {
          const { bytes } = dtypeInfo(dtype)
          const maximumLength = Math.floor((unit * 12) / bytes) - 1
          const buffer = t.own(GrowableBuffer.reserve(t.device, dtype, { maximumLength, stepBytes: 1 }))
          const { address } = buffer
          const data = t.random.array(dtype as DType, maximumLength + 1)
          assert.deepEqual([buffer.length, buffer.byteLength, buffer.capacity], [0, 0, 0])
          assert.ok(buffer.maximumLength >= maximumLength)
          let held = 0
          for (let round = 0; round < 8; round += 1) {
            const length = t.random.integer(0, maximumLength)
            buffer.resize(length)
            assert.equal(buffer.address, address)
            assert.equal(buffer.buffer.address, address)
            assert.deepEqual([buffer.length, buffer.buffer.length, buffer.byteLength], [length, length, length * bytes])
            assert.ok(buffer.capacity >= length && (buffer.capacity - length) * bytes <= unit * 12)
            const kept = Math.min(held, length)
            assertSameBits(
              await buffer.buffer.slice(0, kept).toArray(),
              (data as Uint8Array).subarray(0, kept),
              `${dtype}, ${kept} elements kept`,
            )
            if (length > held) {
              buffer.buffer.slice(held).copyFromSync((data as Float32Array).subarray(held, length) as never)
            }
            held = length
          }
        }
      },
    },
    {
      name: 'it is a device buffer wherever one is meant',
      async run(t) {
        const buffer = t.own(GrowableBuffer.reserve(t.device, 'i32', { maximumLength: 2 ** 20, length: 1001 }))
        assert.equal(buffer.length, 1001)
        const data = t.random.array('i32', 1001)
        const plain = t.own(DeviceBuffer.from(t.device, data))
        buffer.buffer.copyFromSync(plain)
        const copy = t.own(DeviceBuffer.allocate(t.device, 'i32', 1001))
        copy.copyFromSync(buffer)
        assertSameBits(await copy.toArray(), data, 'through the buffer itself')
        assert.equal(buffer[memoryProtocol].address, buffer.address)
        assert.equal(buffer[memoryProtocol].dtype, 'i32')
        assert.equal(buffer[memoryProtocol].deviceOrdinal, t.device.ordinal)
      },
    },
    {
      name: 'a view taken before it shrank refuses to be used, one within it goes on',
      run(t) {
        const unit = allocationGranularity(t.device)
        const buffer = t.own(GrowableBuffer.reserve(t.device, 'u8', { maximumLength: unit * 4, stepBytes: unit }))
        buffer
          .resize(unit)
          .resize(unit * 2)
          .resize(unit * 3)
        const all = buffer.buffer
        const start = all.slice(0, 100)
        start.fillSync(3)
        buffer.resize(unit + 5)
        assert.throws(() => all.fillSync(1), RangeError)
        assert.throws(() => all.address, RangeError)
        assertSameBits(start.toArraySync(), new Uint8Array(100).fill(3), 'the start')
        assert.equal(buffer.capacity, unit * 2)
        buffer.resize(0)
        assert.throws(() => start.toArraySync(), RangeError)
        assert.equal(buffer.capacity, 0)
        buffer.resize(unit)
        buffer.buffer.fillSync(1)
      },
    },
    {
      name: 'shrinking waits for the work that uses what goes',
      requires: { delay: true },
      async run(t) {
        const unit = allocationGranularity(t.device)
        const buffer = t.own(GrowableBuffer.reserve(t.device, 'u8', { maximumLength: unit * 2, stepBytes: unit }))
        buffer.resize(1).resize(unit * 2)
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        await queueDelay(stream, 60)
        buffer.buffer.fill(9, { stream })
        buffer.resize(unit)
        await stream.synchronize()
        assertSameBits(buffer.buffer.toArraySync(), new Uint8Array(unit).fill(9), 'the work was done')
      },
    },
    {
      name: 'wrong sizes are refused; too little memory changes nothing; nothing is left',
      async run(t) {
        const unit = allocationGranularity(t.device)
        await assertNothingLeft(t, () => {
          const reserve = (options: object): unknown => GrowableBuffer.reserve(t.device, 'f32', options as never)
          assert.throws(() => reserve({ maximumLength: -1 }), RangeError)
          assert.throws(() => reserve({ maximumLength: 0.5 }), TypeError)
          assert.throws(() => reserve({ maximumLength: 2 ** 52 }), RangeError)
          assert.throws(() => reserve({ maximumLength: 10, length: unit }), RangeError)
          assert.throws(() => reserve({ maximumLength: 10, stepBytes: 0 }), RangeError)
          assert.throws(() => reserve({ maximumLength: 10, sharedWith: [5] }), TypeError)
          assert.throws(() => reserve({}), TypeError)
          assert.throws(() => GrowableBuffer.reserve(t.device, 'f33' as 'f32', { maximumLength: 1 }), TypeError)
          assert.throws(() => GrowableRange.reserve('x' as unknown as Device, { maximumBytes: 1 }), TypeError)
          const { total } = t.device.memoryInfo()
          const most = Math.ceil((total * 2) / unit) * unit
          const range = GrowableRange.reserve(t.device, { maximumBytes: most, stepBytes: unit })
          assert.equal(range.maximumBytes, most)
          range.resize(unit + 1)
          assert.equal(range.capacity, unit * 2)
          const tooMuch = (error: unknown): boolean =>
            error instanceof StatusError && error.status === 2 && !error.isSticky
          assert.throws(() => range.resize(most), tooMuch)
          assert.deepEqual([range.byteLength, range.capacity], [unit + 1, unit * 2])
          assert.throws(() => range.resize(most + 1), RangeError)
          assert.throws(() => range.resize(Number.NaN), TypeError)
          DeviceBuffer.view(t.device, range, 'u8').fillSync(1)
          range.dispose()
          range.dispose()
          assert.throws(() => range.resize(1), DisposedError)
          assert.throws(() => range.address, DisposedError)
        })
      },
    },
    {
      name: 'asynchronous disposal gives everything back without blocking',
      requires: { delay: true },
      async run(t) {
        await assertNothingLeft(t, async () => {
          const unit = allocationGranularity(t.device)
          const buffer = GrowableBuffer.reserve(t.device, 'u8', { maximumLength: unit * 3, stepBytes: unit })
          buffer.resize(1)
          buffer.resize(unit * 2)
          buffer.resize(unit * 3)
          const view = buffer.buffer
          const stream = t.device.createStream({ nonBlocking: true })
          await queueDelay(stream, 80)
          view.fill(1, { stream })
          const start = performance.now()
          const gone = buffer[Symbol.asyncDispose]()
          assert.ok(performance.now() - start < 50, 'it must not block')
          assert.throws(() => view.fill(1), DisposedError)
          assert.throws(() => buffer.resize(1), DisposedError)
          assert.throws(() => buffer.buffer, DisposedError)
          await gone
          await stream.synchronize()
          stream.dispose()
        })
      },
    },
    {
      name: 'another device uses it too',
      requires: { devices: 2 },
      run(t) {
        const [first, second] = t.devices as [Device, Device]
        if (!second.canAccessPeer(first)) t.skip('the devices cannot reach each other')
        const unit = allocationGranularity(first)
        const options = { maximumLength: unit * 4, stepBytes: unit, sharedWith: [second] }
        const buffer = t.own(GrowableBuffer.reserve(first, 'u8', options))
        for (const granules of [1, 3]) {
          buffer.resize(granules * unit)
          DeviceBuffer.view(second, buffer, 'u8').fillSync(granules)
          assertSameBits(buffer.buffer.toArraySync(), new Uint8Array(granules * unit).fill(granules), 'seen here')
        }
      },
    },
  ],
}
