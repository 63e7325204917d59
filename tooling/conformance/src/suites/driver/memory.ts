import assert from 'node:assert/strict'
import {
  type Device,
  DeviceBuffer,
  DisposedError,
  type ElementValue,
  PinnedBuffer,
  pointerInfo,
  StatusError,
} from '@shoal/driver'
import { type DType, dtypeInfo, dtypes, encodeArray, memoryProtocol, type TypedArrayOf } from '@shoal/types'
import type { CaseContext, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { queueDelay } from '../../support/delay.js'

/** Lengths that are no multiple of anything, and zero. */
function lengths(t: CaseContext): readonly number[] {
  return [0, 1, 3, 257, t.random.integer(1000, 9999)]
}

/** Returns a random value of a dtype, and an array that holds it `length` times. */
function filled<D extends DType>(t: CaseContext, dtype: D, length: number): [ElementValue<D>, TypedArrayOf<D>] {
  const info = dtypeInfo(dtype)
  const parts = [Math.fround(t.random.signed() * 100), Math.fround(t.random.signed() * 100)] as const
  let value: unknown = parts[0]
  let one: ArrayLike<number | bigint>
  if (info.kind === 'complex') {
    value = parts
    one = parts
  } else if (info.kind === 'bool') {
    value = t.random.word() % 2 === 1
    one = [value === true ? 1 : 0]
  } else if (info.kind === 'float') {
    one = [parts[0]]
  } else {
    const array = t.random.array(dtype, 1)
    value = array[0]
    one = [...array]
  }
  const narrow = ['f16', 'bf16', 'f8e4m3', 'f8e5m2'].includes(dtype)
  const encode = encodeArray as (dtype: DType, values: ArrayLike<unknown>) => ArrayLike<number>
  const pattern = narrow ? encode(dtype, one) : (one as ArrayLike<number>)
  const expected = new info.typedArray(length * info.arrayEntries)
  for (let index = 0; index < expected.length; index += 1) {
    ;(expected as Float64Array)[index] = pattern[index % pattern.length] as number
  }
  return [value as ElementValue<D>, expected]
}

export const memorySuite: Suite = {
  name: 'driver memory',
  cases: [
    ...dtypes.map((dtype) => ({
      name: `${dtype}: to the device and back, every bit the same`,
      async run(t: CaseContext) {
        for (const length of lengths(t)) {
          const data = t.random.array(dtype, length)
          const buffer = t.own(DeviceBuffer.from(t.device, data, { dtype }))
          assert.equal(buffer.dtype, dtype)
          assert.equal(buffer.length, length)
          assert.equal(buffer.byteLength, length * dtypeInfo(dtype).bytes)
          assertSameBits(buffer.toArraySync(), data, `${dtype} x ${length}, blocking`)
          assertSameBits(await buffer.toArray(), data, `${dtype} x ${length}`)
        }
      },
    })),
    ...dtypes.map((dtype) => ({
      name: `${dtype}: fill writes one value everywhere`,
      async run(t: CaseContext) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (const length of lengths(t)) {
          const [value, expected] = filled(t, dtype, length)
          const buffer = t.own(DeviceBuffer.zeros(t.device, dtype, length))
          buffer.fill(value, { stream })
          assertSameBits(await buffer.toArray({ stream }), expected, `${dtype} x ${length}`)
        }
      },
    })),
    {
      name: 'zeros() is all zeros on every stream at once',
      async run(t) {
        const dirty = DeviceBuffer.from(t.device, t.random.array('u8', 1_000_003))
        dirty.dispose()
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 1_000_003))
        assertSameBits(await buffer.toArray({ stream }), new Uint8Array(1_000_003), 'zeros')
      },
    },
    {
      name: 'slices are views: what is written through one is seen in all',
      run(t) {
        const data = t.random.array('i32', 1001)
        const buffer = t.own(DeviceBuffer.from(t.device, data))
        const middle = buffer.slice(100, 900)
        const inner = middle.subarray(50, -50)
        assert.equal(inner.length, 700)
        assert.equal(inner.address, buffer.address + 600n)
        assertSameBits(inner.toArraySync(), data.subarray(150, 850), 'a slice of a slice')
        inner.fillSync(-5)
        data.fill(-5, 150, 850)
        assertSameBits(buffer.toArraySync(), data, 'the whole buffer')
        assert.equal(buffer.slice(1001).length, 0)
        assert.equal(buffer.slice(-1).length, 1)
      },
    },
    {
      name: 'a range outside of the buffer is refused',
      run(t) {
        const buffer = t.own(DeviceBuffer.allocate(t.device, 'f32', 10))
        for (const [start, end] of [
          [0, 11],
          [11, 11],
          [-11, 5],
          [5, 4],
        ] as const) {
          assert.throws(() => buffer.slice(start, end), RangeError)
        }
        for (const bad of [Number.NaN, 0.5, '1', null]) assert.throws(() => buffer.slice(bad as number), TypeError)
        assert.throws(() => buffer.slice(Number.POSITIVE_INFINITY), RangeError)
      },
    },
    {
      name: 'reinterpret() shows the same bytes as another dtype',
      run(t) {
        const data = t.random.array('f64', 33)
        const buffer = t.own(DeviceBuffer.from(t.device, data))
        const words = buffer.reinterpret('u32')
        assert.equal(words.length, 66)
        assertSameBits(words.toArraySync(), new Uint32Array(data.buffer), 'as u32')
        assertSameBits(words.slice(2, 4).reinterpret('f64').toArraySync(), data.subarray(1, 2), 'and back')
        assert.throws(() => words.slice(1, 3).reinterpret('f64'), RangeError)
        assert.throws(() => words.slice(0, 1).reinterpret('f64'), RangeError)
        assert.throws(() => buffer.reinterpret('f31' as DType), TypeError)
      },
    },
    {
      name: 'the memory protocol tells where the memory is',
      run(t) {
        const buffer = t.own(DeviceBuffer.allocate(t.device, 'f16', 7))
        assert.deepEqual(buffer[memoryProtocol], {
          version: 0,
          address: buffer.address,
          byteLength: 14,
          deviceOrdinal: t.device.ordinal,
          context: t.device.primaryContext.handle,
          dtype: 'f16',
          length: 7,
        })
      },
    },
    {
      name: 'CUDA tells what lies at an address',
      run(t) {
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 1000))
        const pinned = t.own(PinnedBuffer.allocate(t.device, 'u8', 1000))
        const onDevice = pointerInfo(t.device, buffer.slice(10).address)
        assert.equal(onDevice.type, 'device')
        assert.equal(onDevice.deviceOrdinal, t.device.ordinal)
        assert.equal(onDevice.devicePointer, buffer.slice(10).address)
        assert.equal(onDevice.hostPointer, undefined)
        assert.equal(onDevice.rangeStart, buffer.address)
        assert.ok(onDevice.rangeLength >= 1000)
        assert.equal(pointerInfo(t.device, pinned.address).type, 'host')
        assert.deepEqual(pointerInfo(t.device, 0n), {
          type: 'unregistered',
          deviceOrdinal: undefined,
          devicePointer: undefined,
          hostPointer: undefined,
          rangeStart: 0n,
          rangeLength: 0,
        })
        assert.throws(() => pointerInfo(t.device, 5 as unknown as bigint), TypeError)
      },
    },
    {
      name: 'memory allocated on a stream is used and freed in its order',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (const length of lengths(t)) {
          const data = t.random.array('u16', length)
          const buffer = DeviceBuffer.allocateOn(stream, 'u16', length)
          buffer.copyFrom(data, { stream })
          const result = buffer.toArray({ stream })
          buffer.dispose()
          assertSameBits(await result, data, `u16 x ${length}`)
          assert.throws(() => buffer.address, DisposedError)
        }
        await stream.synchronize()
      },
    },
    {
      name: 'memory allocated on a stream outlives the stream',
      async run(t) {
        const stream = t.device.createStream()
        const buffer = DeviceBuffer.allocateOn(stream, 'f32', 100)
        buffer.fill(2, { stream })
        await stream.synchronize()
        stream.dispose()
        assertSameBits(buffer.toArraySync(), new Float32Array(100).fill(2), 'after the stream')
        buffer.dispose()
      },
    },
    {
      name: 'memory can be freed on a stream that still uses it',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const buffer = DeviceBuffer.allocateOn(stream, 'u8', 4096)
        await queueDelay(stream, 50)
        buffer.fill(3, { stream })
        const start = performance.now()
        buffer.disposeOn(stream)
        buffer.disposeOn(stream)
        assert.ok(performance.now() - start < 40, 'freeing must not wait')
        await stream.synchronize()
      },
    },
    {
      name: 'asynchronous disposal frees without blocking the thread',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        const buffer = DeviceBuffer.allocate(t.device, 'u8', 4096)
        await queueDelay(stream, 100)
        buffer.fill(3, { stream })
        const start = performance.now()
        const gone = buffer[Symbol.asyncDispose]()
        assert.ok(performance.now() - start < 60, 'it must not wait here')
        await gone
        assert.equal(buffer.disposed, true)
      },
    },
    {
      name: 'freed memory can be allocated again',
      run(t) {
        const { free } = t.device.memoryInfo()
        const byteLength = Math.floor(free * 0.4)
        for (let round = 0; round < 5; round += 1) DeviceBuffer.allocate(t.device, 'u8', byteLength).dispose()
      },
    },
    {
      name: 'asking for more memory than there is fails, and nothing else',
      run(t) {
        const { total } = t.device.memoryInfo()
        assert.throws(
          () => DeviceBuffer.allocate(t.device, 'u8', total * 4),
          (error) =>
            error instanceof StatusError &&
            error.code === 'CUDA_ERROR_OUT_OF_MEMORY' &&
            error.status === 2 &&
            error.api === 'cuMemAlloc' &&
            error.description.length > 0 &&
            !error.isSticky,
        )
        t.own(DeviceBuffer.zeros(t.device, 'u8', 100))
      },
    },
    {
      name: 'each device has memory of its own',
      requires: { devices: 2 },
      async run(t) {
        const buffers = t.devices.map((device) => t.own(DeviceBuffer.zeros(device, 'i32', 99)))
        for (const [index, buffer] of buffers.entries()) buffer.fillSync(index + 1)
        for (const [index, buffer] of buffers.entries()) {
          assertSameBits(await buffer.toArray(), new Int32Array(99).fill(index + 1), `device ${index}`)
        }
        assert.equal(new Set(buffers.map((buffer) => buffer.address)).size, buffers.length)
        const [first, second] = t.devices as [Device, Device]
        const foreign = t.own(second.createStream())
        const own = t.own(DeviceBuffer.zeros(first, 'i32', 3))
        assert.throws(() => own.fill(1, { stream: foreign }), TypeError)
        assert.throws(() => own.copyFrom(new Int32Array(3), { stream: foreign }), TypeError)
        await assert.rejects(own.toArray({ stream: foreign }), TypeError)
        assert.throws(() => own.disposeOn(foreign), TypeError)
      },
    },
  ],
}
