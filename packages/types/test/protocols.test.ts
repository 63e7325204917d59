import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import {
  type DeviceLike,
  DisposedError,
  describeMemory,
  describeStream,
  deviceProtocol,
  isDeviceLike,
  isMemoryLike,
  isStreamLike,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StreamHandle,
  type StreamLike,
  streamProtocol,
  toDeviceOrdinal,
  toMemoryRange,
  toStreamHandle,
} from '@shoal/types'
import { describe, expect, it } from 'vitest'

// As another package writes it: with Symbol.for and without an import.
const handle: StreamHandle = { version: 0, handle: 0x5555_0000n, deviceOrdinal: 1, context: 0x7777_0000n }
const stream = { [Symbol.for('cuda.stream')]: handle } as unknown as StreamLike
const range: MemoryRange = {
  version: 0,
  address: 0x7f00_0000_0000n,
  byteLength: 64,
  deviceOrdinal: 0,
  context: 1n,
  dtype: 'f32',
  length: 16,
  readOnly: true,
}
// In TypeScript only the type of the symbol is needed.
const typedKey: typeof streamProtocol = Symbol.for('cuda.stream') as never
const typedStream: StreamLike = { [typedKey]: handle }
// @ts-expect-error the answer of another protocol
const mistyped: StreamLike = { [typedKey]: range }
const memory = { [Symbol.for('cuda.memory')]: range } as unknown as MemoryLike
const device = { [Symbol.for('cuda.device')]: { version: 0, ordinal: 3 } } as unknown as DeviceLike

function gone(): never {
  throw new DisposedError('Stream')
}

function throughPort<T>(value: T): T {
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(value)
  const received = receiveMessageOnPort(port2) as { message: T }
  port1.close()
  return received.message
}

it('the protocols use registered symbols', () => {
  expect([streamProtocol, memoryProtocol, deviceProtocol]).toEqual([
    Symbol.for('cuda.stream'),
    Symbol.for('cuda.memory'),
    Symbol.for('cuda.device'),
  ])
})

describe('the stream protocol', () => {
  it('returns the handle of objects, raw handles and the default stream', () => {
    expect(toStreamHandle(stream)).toBe(handle)
    expect(toStreamHandle(typedStream)).toBe(handle)
    expect(() => toStreamHandle(mistyped)).toThrow(TypeError)
    expect(toStreamHandle(0x1234n)).toEqual({ version: 0, handle: 0x1234n, deviceOrdinal: -1, context: 0n })
    expect(toStreamHandle(null)).toEqual({ version: 0, handle: 0n, deviceOrdinal: -1, context: 0n })
  })

  it('lets the owner report a disposed stream', () => {
    const disposed = {
      get [streamProtocol](): StreamHandle {
        return gone()
      },
    }
    expect(isStreamLike(disposed)).toBe(true)
    expect(() => toStreamHandle(disposed)).toThrow(DisposedError)
  })

  it.each([
    [undefined, TypeError, "toStreamHandle: stream must be an object with [Symbol.for('cuda.stream')]"],
    [0, TypeError, 'not 0'],
    ['0x10', TypeError, "not '0x10'"],
    [{}, TypeError, 'not a plain object'],
    [memory, TypeError, 'not a plain object'],
    [-1n, RangeError, 'toStreamHandle: stream must be a bigint of 64 bits'],
    [2n ** 64n, RangeError, 'toStreamHandle: stream must be a bigint of 64 bits'],
    [{ [streamProtocol]: () => handle }, TypeError, 'must be a property or getter that gives the data, not a function'],
    [{ [streamProtocol]: undefined }, TypeError, 'must be an object, not undefined'],
    [{ [streamProtocol]: { ...handle, version: 1 } }, TypeError, 'version must be 0, the only one known here, not 1'],
    [{ [streamProtocol]: { ...handle, handle: 5 } }, TypeError, 'stream.handle must be a bigint, not 5'],
    [
      { [streamProtocol]: { ...handle, deviceOrdinal: '0' } },
      TypeError,
      'stream.deviceOrdinal must be an integer from -1',
    ],
    [{ [streamProtocol]: { ...handle, deviceOrdinal: 0.5 } }, TypeError, 'stream.deviceOrdinal must be'],
    [{ [streamProtocol]: { ...handle, context: null } }, TypeError, 'stream.context must be a bigint, not null'],
  ])('refuses %o', (value, errorClass, message) => {
    expect(() => toStreamHandle(value as StreamLike)).toThrow(errorClass)
    expect(() => toStreamHandle(value as StreamLike)).toThrow(message)
  })

  it('has a description for another thread', () => {
    const descriptor = throughPort(describeStream(stream))
    expect(descriptor).toEqual({ kind: 'cuda.stream', process: process.pid, ...handle })
    expect(toStreamHandle(descriptor)).toMatchObject(handle)
    expect(describeStream(descriptor)).toEqual(descriptor)
  })

  it('refuses streams that cannot leave their process or thread', () => {
    expect(() => toStreamHandle({ ...describeStream(stream), process: process.pid + 1 })).toThrow('outside its process')
    expect(() => describeStream(2n)).toThrow('describeStream: stream must be a created stream')
  })
})

describe('the memory protocol', () => {
  it('returns the range of objects', () => {
    expect(toMemoryRange(memory)).toBe(range)
    expect(isMemoryLike(memory)).toBe(true)
    expect(isMemoryLike(stream)).toBe(false)
  })

  it.each([
    [new Float32Array(4), TypeError, 'Copy host arrays to the device first'],
    [0x7f00n, TypeError, "toMemoryRange: memory must be an object with [Symbol.for('cuda.memory')], not 32512n"],
    [null, TypeError, 'not null'],
    [stream, TypeError, 'not a plain object'],
    [{ [memoryProtocol]: () => range }, TypeError, 'must be a property or getter that gives the data, not a function'],
    [{ [memoryProtocol]: { ...range, version: undefined } }, TypeError, 'version must be 0 or 1, not undefined'],
    [{ [memoryProtocol]: { ...range, address: 4096 } }, TypeError, 'memory.address must be a bigint, not 4096'],
    [
      { [memoryProtocol]: { ...range, byteLength: -1 } },
      RangeError,
      'memory.byteLength must be an integer from 0 to 2^53 - 1, not -1',
    ],
    [{ [memoryProtocol]: { ...range, byteLength: Number.NaN } }, TypeError, 'byteLength'],
    [{ [memoryProtocol]: { ...range, deviceOrdinal: -2 } }, RangeError, 'memory.deviceOrdinal must be'],
    [
      { [memoryProtocol]: { ...range, dtype: 'float' } },
      TypeError,
      "memory.dtype must be the name of a dtype, not 'float'",
    ],
    [
      { [memoryProtocol]: { ...range, length: 17 } },
      RangeError,
      'memory.length must be at most 16, as f32 in 64 bytes, not 17',
    ],
    [{ [memoryProtocol]: { ...range, length: 1.5 } }, TypeError, 'memory.length must be an integer'],
  ])('refuses %o', (value, errorClass, message) => {
    expect(() => toMemoryRange(value as MemoryLike)).toThrow(errorClass)
    expect(() => toMemoryRange(value as MemoryLike)).toThrow(message)
  })

  it('has a description for another thread, with only the given fields', () => {
    const descriptor = throughPort(describeMemory(memory))
    expect(descriptor).toEqual({ kind: 'cuda.memory', process: process.pid, ...range })
    expect(toMemoryRange(descriptor)).toMatchObject(range)
    const bare: MemoryLike = {
      [memoryProtocol]: { version: 0, address: 1n, byteLength: 0, deviceOrdinal: -1, context: 0n },
    }
    expect(Object.keys(describeMemory(bare)).sort()).toEqual(
      ['kind', 'version', 'process', 'address', 'byteLength', 'deviceOrdinal', 'context'].sort(),
    )
  })

  it('includes the handle with which another process opens the memory', () => {
    const ipc = { handle: new Uint8Array(64).fill(7), offset: 256 }
    const descriptor = throughPort(describeMemory(memory, ipc))
    ipc.handle.fill(0)
    expect(descriptor.ipc?.offset).toBe(256)
    expect(descriptor.ipc?.handle[63]).toBe(7)
    expect(() => toMemoryRange({ ...descriptor, process: process.pid + 1 })).toThrow('IPC handle')
    expect(() => describeMemory(memory, { handle: new Uint8Array(8), offset: 0 })).toThrow('64 bytes')
    expect(() => describeMemory(memory, { handle: new Uint8Array(64), offset: -1 })).toThrow(
      'describeMemory: ipc.offset must be',
    )
  })
})

describe('the device protocol', () => {
  it('returns the ordinal of objects and numbers', () => {
    expect(toDeviceOrdinal(device)).toBe(3)
    expect(toDeviceOrdinal(0)).toBe(0)
    expect(isDeviceLike(device)).toBe(true)
  })

  it.each([
    [-1, RangeError],
    [0.5, TypeError],
    [Number.NaN, TypeError],
    [2 ** 31, RangeError],
    ['0', TypeError],
    [0n, TypeError],
    [null, TypeError],
    [{}, TypeError],
    [{ [deviceProtocol]: { version: 0, ordinal: '1' } }, TypeError],
    [{ [deviceProtocol]: { version: 2, ordinal: 1 } }, TypeError],
    [{ [deviceProtocol]: { version: 0, ordinal: -1 } }, RangeError],
  ])('refuses %o', (value, errorClass) => {
    expect(() => toDeviceOrdinal(value as DeviceLike)).toThrow(errorClass)
  })
})

it('protocol errors name the function and the parameter of the caller', () => {
  const wrong = 'x' as never
  expect(() => toStreamHandle(wrong, 'Communicator.send', 'to')).toThrow(/^Communicator\.send: to must be /)
  expect(() => toMemoryRange(wrong, 'Communicator.send', 'source')).toThrow(/^Communicator\.send: source must be /)
  expect(() => toDeviceOrdinal(wrong, 'Session.init', 'device')).toThrow(/^Session\.init: device must be /)
  const old = { [memoryProtocol]: { ...range, address: 1 } } as never
  expect(() => toMemoryRange(old, 'Communicator.send', 'source')).toThrow(
    'Communicator.send: source.address must be a bigint, not 1',
  )
})
