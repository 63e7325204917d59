import assert from 'node:assert/strict'
import { type Device, DeviceBuffer, PinnedBuffer, prepareCopies, type Stream } from '@shoal/driver'
import type { CaseContext, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { queueDelay } from '../../support/delay.js'

async function checkPeerCopy(t: CaseContext, source: Device, target: Device): Promise<void> {
  const data = t.random.array('f32', 100_003)
  const from = t.own(DeviceBuffer.from(source, data))
  const to = t.own(DeviceBuffer.zeros(target, 'f32', data.length))
  const stream: Stream = t.own(target.createStream())
  to.copyFrom(from, { stream })
  assertSameBits(await to.toArray({ stream }), data, `device ${source.ordinal} to ${target.ordinal}`)
  to.fillSync(0)
  to.copyFromSync(from)
  assertSameBits(to.toArraySync(), data, `device ${source.ordinal} to ${target.ordinal}, blocking`)
}

export const copySuite: Suite = {
  name: 'driver copy',
  cases: [
    {
      name: 'queued copies there, across and back keep every bit',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (const length of [0, 1, 7, 65_537, 3_000_001]) {
          const data = t.random.array('u8', length)
          const first = t.own(DeviceBuffer.allocate(t.device, 'u8', length))
          const second = t.own(DeviceBuffer.allocate(t.device, 'u8', length))
          assert.equal(first.copyFrom(data, { stream }), first)
          second.copyFrom(first, { stream })
          const result = new Uint8Array(length)
          assert.equal(await second.copyTo(result, { stream }), result)
          assertSameBits(result, data, `${length} bytes`)
        }
      },
    },
    {
      name: 'blocking copies there, across and back keep every bit',
      run(t) {
        const data = t.random.array('i16', 12_345)
        const first = t.own(DeviceBuffer.allocate(t.device, 'i16', data.length))
        const second = t.own(DeviceBuffer.allocate(t.device, 'i16', data.length))
        first.copyFromSync(data)
        second.copyFromSync(first)
        assertSameBits(second.copyToSync(new Int16Array(data.length)), data, 'blocking')
      },
    },
    {
      name: 'a queued copy takes what the array holds when it is queued',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const data = t.random.array('u32', 50_001)
        const before = data.slice()
        const buffer = t.own(DeviceBuffer.allocate(t.device, 'u32', data.length))
        await queueDelay(stream, 50)
        buffer.copyFrom(data, { stream })
        data.fill(0)
        assertSameBits(await buffer.toArray({ stream }), before, 'the array as it was')
      },
    },
    {
      name: 'a queued copy to the host gives what the memory holds when the stream gets there',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u32', 10_001))
        await queueDelay(stream, 50)
        buffer.fill(1, { stream })
        const start = performance.now()
        const first = buffer.toArray({ stream })
        buffer.fill(2, { stream })
        const second = buffer.toArray({ stream })
        assert.ok(performance.now() - start < 45, 'queueing must not wait for the stream')
        assertSameBits(await first, new Uint32Array(10_001).fill(1), 'between the two')
        assertSameBits(await second, new Uint32Array(10_001).fill(2), 'after both')
      },
    },
    {
      name: 'copies go through views on both sides',
      async run(t) {
        const data = t.random.array('f64', 1000)
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'f64', 1000))
        buffer.slice(10, 20).copyFromSync(data.subarray(500, 510))
        const expected = new Float64Array(1000)
        expected.set(data.subarray(500, 510), 10)
        const host = new Float64Array(1002)
        await buffer.copyTo(host.subarray(1, 1001))
        assertSameBits(host.subarray(1, 1001), expected, 'the middle')
        assert.equal(host[0], 0)
        assert.equal(host[1001], 0)
      },
    },
    {
      name: 'a length or type that does not fit is refused before the call',
      async run(t) {
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'f32', 10))
        const other = t.own(DeviceBuffer.zeros(t.device, 'i32', 10))
        for (const length of [0, 9, 11]) {
          assert.throws(() => buffer.copyFrom(new Float32Array(length)), RangeError)
          assert.throws(() => buffer.copyToSync(new Float32Array(length)), RangeError)
          await assert.rejects(buffer.copyTo(new Float32Array(length)), RangeError)
        }
        const wrong = [
          new Float64Array(10),
          new Uint8Array(40),
          new DataView(new ArrayBuffer(40)),
          [1, 2],
          null,
          'text',
        ]
        for (const source of wrong) {
          assert.throws(() => buffer.copyFrom(source as unknown as Float32Array), TypeError)
          assert.throws(() => buffer.copyFromSync(source as unknown as Float32Array), TypeError)
          await assert.rejects(buffer.copyTo(source as unknown as Float32Array), TypeError)
        }
        assert.throws(() => buffer.copyFrom(other as unknown as DeviceBuffer<'f32'>), TypeError)
        buffer.copyFromSync(other.reinterpret('f32'))
      },
    },
    {
      name: 'several large copies at once do not mix',
      async run(t) {
        const streams = Array.from({ length: 4 }, () => t.own(t.device.createStream({ nonBlocking: true })))
        const arrays = streams.map(() => t.random.array('u32', 1_000_003))
        const results = await Promise.all(
          streams.map((stream, index) => {
            const data = arrays[index] as Uint32Array
            const buffer = t.own(DeviceBuffer.allocate(t.device, 'u32', data.length))
            return buffer.copyFrom(data, { stream }).toArray({ stream })
          }),
        )
        for (const [index, result] of results.entries())
          assertSameBits(result, arrays[index] as Uint32Array, `${index}`)
      },
    },
    {
      name: 'between devices without peer access',
      requires: { devices: 2 },
      async run(t) {
        const [first, second] = t.devices as [Device, Device]
        await checkPeerCopy(t, first, second)
        await checkPeerCopy(t, second, first)
      },
    },
    {
      name: 'between devices with peer access',
      requires: { devices: 2 },
      async run(t) {
        const [first, second] = t.devices as [Device, Device]
        if (!first.canAccessPeer(second)) t.skip('these devices have no peer access')
        first.enablePeerAccess(second)
        second.enablePeerAccess(first)
        t.defer(() => {
          first.disablePeerAccess(second)
          second.disablePeerAccess(first)
        })
        await checkPeerCopy(t, first, second)
        await checkPeerCopy(t, second, first)
      },
    },
    {
      name: 'many copies at once, of host and device memory, keep every bit',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const lengths = Array.from({ length: 200 }, () => t.random.integer(1, 5000))
        const total = lengths.reduce((sum, length) => sum + length, 0)
        const data = t.random.array('u8', total)
        const host = t.own(PinnedBuffer.from(t.device, data))
        const from = DeviceBuffer.view(t.device, host, 'u8')
        const middle = t.own(DeviceBuffer.zeros(t.device, 'u8', total))
        const to = t.own(DeviceBuffer.zeros(t.device, 'u8', total))
        let end = 0
        const parts = lengths.map((length) => {
          end += length
          return [end - length, end] as const
        })
        const both = [
          [middle, from],
          [to, middle],
        ] as const
        for (const [target, source] of both) {
          const copies = parts.map((part) => ({ target: target.slice(...part), source: source.slice(...part) }))
          prepareCopies(t.device, copies).launch({ stream })
        }
        await stream.synchronize()
        assertSameBits(await to.toArray(), data, '200 copies up and across')
      },
    },
  ],
}
