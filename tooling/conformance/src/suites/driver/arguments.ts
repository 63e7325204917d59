import assert from 'node:assert/strict'
import {
  type Context,
  type Device,
  type DeviceAttribute,
  DeviceBuffer,
  DisposedError,
  Event,
  Module,
  type PeerAttribute,
  PinnedBuffer,
  Stream,
} from '@shoal/driver'
import type { DType } from '@shoal/types'
import type { Suite } from '../../suite.js'

export const argumentSuite: Suite = {
  name: 'driver bad input',
  cases: [
    {
      name: 'lengths that are no lengths',
      run(t) {
        for (const length of [Number.NaN, 1.5, '3', null, undefined, 3n]) {
          assert.throws(() => DeviceBuffer.allocate(t.device, 'f32', length as number), TypeError)
          assert.throws(() => DeviceBuffer.zeros(t.device, 'f32', length as number), TypeError)
          assert.throws(() => PinnedBuffer.allocate(t.device, 'f32', length as number), TypeError)
        }
        for (const length of [-1, Number.POSITIVE_INFINITY, 2 ** 53, Number.MAX_SAFE_INTEGER]) {
          assert.throws(() => DeviceBuffer.allocate(t.device, 'f32', length), RangeError)
          assert.throws(() => PinnedBuffer.allocate(t.device, 'f32', length), RangeError)
        }
      },
    },
    {
      name: 'dtypes, devices and arrays that are none',
      run(t) {
        assert.throws(() => DeviceBuffer.allocate(t.device, 'float' as DType, 3), TypeError)
        assert.throws(() => DeviceBuffer.allocate(0 as unknown as Device, 'f32', 3), TypeError)
        assert.throws(() => DeviceBuffer.allocate(undefined as unknown as Device, 'f32', 3), TypeError)
        assert.throws(() => DeviceBuffer.from(t.device, [1, 2, 3] as unknown as Float32Array), TypeError)
        assert.throws(() => DeviceBuffer.from(t.device, new Float32Array(3), { dtype: 'f64' as 'f32' }), TypeError)
        assert.throws(() => DeviceBuffer.from(t.device, new Float32Array(3), { dtype: 'complex64' }), RangeError)
        assert.throws(() => DeviceBuffer.fromAddress(t.device, 5 as unknown as bigint, 'u8', 1), TypeError)
        assert.throws(() => DeviceBuffer.fromAddress(t.device, -1n, 'u8', 1), RangeError)
        assert.throws(() => DeviceBuffer.allocateOn({} as Stream, 'u8', 1), TypeError)
      },
    },
    {
      name: 'values that do not fit the dtype',
      run(t) {
        const bytes = t.own(DeviceBuffer.zeros(t.device, 'u8', 3))
        const wide = t.own(DeviceBuffer.zeros(t.device, 'i64', 3))
        const flags = t.own(DeviceBuffer.zeros(t.device, 'bool', 3))
        const pairs = t.own(DeviceBuffer.zeros(t.device, 'complex64', 3))
        for (const value of [-1, 256]) assert.throws(() => bytes.fill(value), RangeError)
        for (const value of [1.5, Number.NaN, '1', 1n]) assert.throws(() => bytes.fill(value as number), TypeError)
        assert.throws(() => wide.fill(2n ** 63n), RangeError)
        assert.throws(() => wide.fill(2 ** 60), RangeError)
        assert.throws(() => flags.fill(1 as unknown as boolean), TypeError)
        assert.throws(() => pairs.fill(1 as unknown as [number, number]), TypeError)
        assert.throws(() => pairs.fill([1] as unknown as [number, number]), TypeError)
      },
    },
    {
      name: 'streams and events that are none',
      async run(t) {
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 3))
        const stream = t.own(t.device.createStream())
        for (const wrong of [{}, 'stream', 5]) {
          assert.throws(() => buffer.fill(1, { stream: wrong as unknown as Stream }), TypeError)
          assert.throws(() => stream.waitEvent(wrong as Event), TypeError)
        }
      },
    },
    {
      name: 'options that are no plain object, such as a stream where { stream } is meant',
      async run(t) {
        const stream = t.own(t.device.createStream())
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 3))
        const event = t.own(stream.record())
        const array = new Uint8Array(3)
        const { primaryContext } = t.device
        for (const wrong of [stream, null, 500, 'stream', [], () => undefined]) {
          const options = wrong as object
          const refusal = {
            name: 'TypeError',
            message: /^[A-Za-z]+\.[A-Za-z]+: options must be a plain object such as \{/,
          }
          assert.throws(() => buffer.fill(1, options), refusal)
          assert.throws(() => buffer.fillSync(1, options), refusal)
          assert.throws(() => buffer.copyFrom(array, options), refusal)
          assert.throws(() => buffer.copyFromSync(array, options), refusal)
          await assert.rejects(buffer.copyTo(array, options), refusal)
          assert.throws(() => buffer.copyToSync(array, options), refusal)
          await assert.rejects(buffer.toArray(options), refusal)
          assert.throws(() => buffer.toArraySync(options), refusal)
          await assert.rejects(stream.synchronize(options), refusal)
          await assert.rejects(event.synchronize(options), refusal)
          assert.throws(() => t.device.createStream(options), refusal)
          assert.throws(() => t.device.createEvent(options), refusal)
          assert.throws(() => Stream.create(primaryContext, options), refusal)
          assert.throws(() => DeviceBuffer.from(t.device, array, options as { dtype: 'u8' }), refusal)
          assert.throws(() => PinnedBuffer.allocate(t.device, 'u8', 1, options), refusal)
          assert.throws(() => PinnedBuffer.from(t.device, array, options), refusal)
          const refusalOf = (api: string) => ({
            name: 'TypeError',
            message: new RegExp(`^${api}: options must be a plain object`),
          })
          assert.throws(() => Module.loadSync(t.device, '.version 8.0', options), refusalOf('Module.loadSync'))
          await assert.rejects(Module.load(t.device, '.version 8.0', options), refusalOf('Module.load'))
        }
        const unknown = {
          name: 'TypeError',
          message: /options must have only the keys .*, not 'registers'; did you mean 'maxRegisters'\?$/,
        }
        assert.throws(() => Module.loadSync(t.device, '.version 8.0', { registers: 32 } as object), unknown)
        assert.deepEqual([...buffer.toArraySync(Object.create(null))], [0, 0, 0])
        assert.deepEqual([...buffer.toArraySync(undefined)], [0, 0, 0])
      },
    },
    {
      name: 'contexts, handles, peers and names that are none',
      run(t) {
        const { primaryContext } = t.device
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 3))
        for (const wrong of [5, undefined, null, {}]) {
          const context = wrong as unknown as Context
          const refusal = { name: 'TypeError', message: /: owner must be a Device or a Context/ }
          assert.throws(() => Stream.borrow(context, 0n), refusal)
          assert.throws(() => Stream.adopt(context, 16n), refusal)
          assert.throws(() => Stream.create(context), refusal)
          assert.throws(() => Event.create(context), refusal)
        }
        for (const handle of [-1n, 2n ** 64n]) {
          assert.throws(
            () => Stream.borrow(primaryContext, handle),
            /^RangeError: Stream\.[a-z]+: handle must be a bigint of 64 bits/,
          )
          assert.throws(
            () => Stream.adopt(primaryContext, handle),
            /^RangeError: Stream\.[a-z]+: handle must be a bigint of 64 bits/,
          )
        }
        for (const wrong of [undefined, null, 'gpu', {}]) {
          const refusal = { name: 'TypeError', message: /PeerAccess: peer must be / }
          assert.throws(() => t.device.enablePeerAccess(wrong as Device), refusal)
          assert.throws(() => primaryContext.enablePeerAccess(wrong as Device), refusal)
          assert.throws(() => primaryContext.disablePeerAccess(wrong as Device), refusal)
          const noStream = { name: 'TypeError', message: /disposeOn: stream must be a Stream/ }
          assert.throws(() => buffer.disposeOn(wrong as Stream), noStream)
        }
        assert.equal(buffer.disposed, false)
        const symbol = Symbol('WARP_SIZE') as unknown as DeviceAttribute
        assert.throws(
          () => t.device.attribute(symbol),
          /^TypeError: Device\.attribute: attribute must be .* not Symbol\(WARP_SIZE\)/,
        )
        for (const name of [symbol, 'NONE', 'toString']) {
          const attribute = name as unknown as PeerAttribute
          assert.throws(
            () => t.device.peerAttribute(attribute, t.device),
            /^TypeError: Device\.peerAttribute: attribute must be/,
          )
        }
      },
    },
    {
      name: 'a disposed buffer, and the views of it',
      async run(t) {
        const buffer = DeviceBuffer.zeros(t.device, 'u8', 10)
        const other = t.own(DeviceBuffer.zeros(t.device, 'u8', 10))
        const view = buffer.slice(2, 5)
        buffer.dispose()
        buffer.dispose()
        for (const gone of [buffer, view]) {
          assert.equal(gone.disposed, true)
          assert.throws(() => gone.address, DisposedError)
          assert.throws(() => gone.slice(), DisposedError)
          assert.throws(() => gone.reinterpret('i8'), DisposedError)
          assert.throws(() => gone.fill(1), DisposedError)
          assert.throws(() => gone.copyFrom(new Uint8Array(gone.length)), DisposedError)
          assert.throws(() => gone.toArraySync(), DisposedError)
          await assert.rejects(gone.toArray(), DisposedError)
        }
        assert.throws(() => other.copyFrom(buffer), DisposedError)
      },
    },
    {
      name: 'disposing of a view leaves the memory',
      run(t) {
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 10))
        const view = buffer.slice(2, 5)
        view.dispose()
        assert.throws(() => view.address, DisposedError)
        assert.equal(buffer.disposed, false)
        assert.equal(buffer.slice(2, 5).fillSync(1).toArraySync()[0], 1)
      },
    },
    {
      name: 'a disposed stream is refused wherever a stream is taken',
      async run(t) {
        const stream = t.device.createStream()
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 3))
        stream.dispose()
        assert.throws(() => buffer.fill(1, { stream }), DisposedError)
        assert.throws(() => buffer.copyFrom(new Uint8Array(3), { stream }), DisposedError)
        await assert.rejects(buffer.toArray({ stream }), DisposedError)
        assert.throws(() => DeviceBuffer.allocateOn(stream, 'u8', 3), DisposedError)
        assert.throws(() => stream.id, DisposedError)
      },
    },
  ],
}
