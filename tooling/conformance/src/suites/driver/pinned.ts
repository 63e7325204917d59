import assert from 'node:assert/strict'
import { DeviceBuffer, DisposedError, PinnedBuffer, RegisteredBuffer } from '@shoal/driver'
import { dtypes, memoryProtocol } from '@shoal/types'
import type { Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { queueDelay } from '../../support/delay.js'

export const pinnedSuite: Suite = {
  name: 'driver pinned memory',
  cases: [
    {
      name: 'every dtype goes through page-locked memory and back',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (const dtype of dtypes) {
          for (const length of [0, 1, 1003]) {
            const data = t.random.array(dtype, length)
            const source = t.own(PinnedBuffer.from(t.device, data, { dtype }))
            const target = t.own(PinnedBuffer.allocate(t.device, dtype, length))
            const buffer = t.own(DeviceBuffer.allocate(t.device, dtype, length))
            buffer.copyFrom(source, { stream })
            assert.equal(await buffer.copyTo(target, { stream }), target)
            assertSameBits(target.array, data, `${dtype} x ${length}`)
          }
        }
      },
    },
    {
      name: 'its arrays are a real ArrayBuffer: writes reach the memory without a copy',
      async run(t) {
        const pinned = t.own(PinnedBuffer.allocate(t.device, 'i32', 100))
        assert.ok(pinned.buffer instanceof ArrayBuffer)
        assert.equal(pinned.buffer.byteLength, 400)
        const second = new Int32Array(pinned.buffer, 200, 50)
        second.fill(9)
        const buffer = t.own(DeviceBuffer.allocate(t.device, 'i32', 50))
        buffer.copyFromSync(pinned.array.subarray(50))
        assertSameBits(buffer.toArraySync(), new Int32Array(50).fill(9), 'the second half')
      },
    },
    {
      name: 'dispose() detaches the arrays',
      run(t) {
        const pinned = PinnedBuffer.allocate(t.device, 'f32', 16)
        const { array, buffer } = pinned
        pinned.dispose()
        pinned.dispose()
        assert.equal(array.length, 0)
        assert.equal(buffer.byteLength, 0)
        assert.throws(() => pinned.array, DisposedError)
        assert.throws(() => pinned.address, DisposedError)
        assert.throws(() => pinned[memoryProtocol], DisposedError)
      },
    },
    {
      name: 'memory disposed of during a copy is freed when the copy has ended',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const data = t.random.array('u8', 100_001)
        const source = PinnedBuffer.from(t.device, data)
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', data.length))
        await queueDelay(stream, 60)
        buffer.copyFrom(source, { stream })
        source.dispose()
        assertSameBits(await buffer.toArray({ stream }), data, 'the copy')
      },
    },
    {
      name: 'copies with page-locked memory do not block while the stream is busy',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const pinned = t.own(PinnedBuffer.allocate(t.device, 'u8', 4_000_001))
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', pinned.length))
        await queueDelay(stream, 80)
        const start = performance.now()
        buffer.copyFrom(pinned, { stream })
        const back = buffer.copyTo(pinned, { stream })
        assert.ok(performance.now() - start < 50, 'queueing must not wait')
        await back
      },
    },
    {
      name: 'mapped memory has an address for kernels, other memory has not',
      run(t) {
        const mapped = t.own(PinnedBuffer.allocate(t.device, 'u8', 100, { mapped: true, portable: false }))
        const plain = t.own(PinnedBuffer.allocate(t.device, 'u8', 100, { writeCombined: true }))
        assert.ok(mapped.deviceAddress > 0n)
        assert.throws(() => plain.deviceAddress, TypeError)
        assert.throws(
          () => PinnedBuffer.allocate(t.device, 'u8', 1, { mapped: 'yes' as unknown as boolean }),
          TypeError,
        )
        assert.throws(() => PinnedBuffer.allocate(t.device, 'u8', -1), RangeError)
      },
    },
    {
      name: 'an array of the program is page-locked where it lies, and as before afterwards',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (const length of [1, 1001, 1_000_003]) {
          const values = t.random.array('f32', length)
          const expected = values.slice()
          const memory = t.own(DeviceBuffer.zeros(t.device, 'f32', length))
          const registered = t.own(RegisteredBuffer.register(t.device, values.buffer as ArrayBuffer))
          memory.copyFrom(values, { stream })
          await stream.synchronize()
          values.fill(0)
          await memory.copyTo(values, { stream })
          assertSameBits(values, expected, `${length} floats there and back`)
          registered.dispose()
          memory.copyFrom(values, { stream })
          assertSameBits(await memory.toArray({ stream }), expected, `${length} floats, as an ordinary array`)
        }
      },
    },
  ],
}
