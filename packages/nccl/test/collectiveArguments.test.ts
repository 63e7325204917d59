import { type Communicator, group } from '@shoal/nccl'
import { DisposedError, type StreamHandle, streamProtocol } from '@shoal/types'
import { beforeAll, describe, expect, test } from 'vitest'
import { communicators, everywhere, ranks, streams } from './fixtures/allRanks.js'
import { connected } from './fixtures/connected.js'
import { deviceCount, errorOf, TestMemory, TestStream } from './fixtures/device.js'

describe('wrong arguments of collectives are refused before NCCL is called', () => {
  let a: TestMemory
  let b: TestMemory
  let other: TestMemory
  let doubles: TestMemory

  beforeAll(async () => {
    await connected(communicators)
    a = TestMemory.zeros(0, 'f32', 8)
    b = TestMemory.zeros(0, 'f32', 8)
    other = TestMemory.zeros(1, 'f32', 8)
    doubles = TestMemory.zeros(0, 'f64', 8)
  })

  const reduce = (send: unknown, recv: unknown, options: unknown) => () =>
    (communicators[0] as Communicator).allReduce(send as TestMemory, recv as TestMemory, options as never)

  test.each([
    ['count beyond the buffers', { count: 9 }, RangeError],
    ['negative count', { count: -1 }, RangeError],
    ['count NaN', { count: Number.NaN }, TypeError],
    ['count Infinity', { count: Number.POSITIVE_INFINITY }, RangeError],
    ['fraction of an element', { count: 1.5 }, TypeError],
    ['count as text', { count: '4' }, TypeError],
    ['unknown op', { op: 'xor' }, TypeError],
    ['op from the prototype', { op: 'constructor' }, TypeError],
    ['unknown dtype', { dtype: 'f128' }, TypeError],
    ['dtype from the prototype', { dtype: 'toString' }, TypeError],
    ['another dtype than the buffers have', { dtype: 'f64' }, TypeError],
    ['an invalid stream', { stream: {} }, TypeError],
    ['a number as stream', { stream: 0 }, TypeError],
    [
      'a stream whose handle is no word',
      { stream: { [streamProtocol]: { version: 0, handle: -1n, deviceOrdinal: 0, context: 0n } } },
      RangeError,
    ],
  ])('%s', (_, wrong, kind) => {
    expect(errorOf(reduce(a, b, { stream: streams[0], ...wrong }))).toBeInstanceOf(kind)
  })

  test('values without text are described in the error', () => {
    const nothing = Object.create(null)
    expect(reduce(a, b, { stream: streams[0], op: nothing })).toThrow(
      "op must be 'sum', 'prod', 'max', 'min' or 'avg', not a plain object",
    )
    expect(reduce(a, b, { stream: streams[0], dtype: nothing })).toThrow(/dtype must be .*'f32'/)
    expect(reduce(a, b, { stream: streams[0], count: nothing })).toThrow(
      'count must be an integer from 0 to 2^53 - 1, not a plain object',
    )
  })

  test('null as options is refused', () => {
    expect(reduce(a, b, null)).toThrow(TypeError)
  })

  test('values other than memory are refused', () => {
    const stream = streams[0]
    for (const wrong of [undefined, null, 5, 5n, new Float32Array(8), {}]) {
      expect(reduce(wrong, b, { stream })).toThrow(TypeError)
      expect(reduce(a, wrong, { stream })).toThrow(TypeError)
    }
    expect(reduce(new Float32Array(8), b, { stream })).toThrow('send')
  })

  test('memory and streams of another device or context, and host memory, are refused', () => {
    expect(reduce(other, b, { stream: streams[0] })).toThrow('send belongs to device 1')
    expect(reduce(a, other, { stream: streams[0] })).toThrow('recv belongs to device 1')
    expect(reduce(a, b, { stream: streams[1] })).toThrow('stream belongs to device 1')
    b.override = { deviceOrdinal: -1 }
    expect(reduce(a, b, { stream: streams[0] })).toThrow('recv is host memory')
    b.override = { context: 12345n }
    expect(reduce(a, b, { stream: streams[0] })).toThrow('primary context')
    b.override = {}
  })

  test('memory with forged properties is refused', () => {
    const stream = streams[0]
    for (const lie of [
      { address: 5 },
      { version: 2 },
      { shape: [1, 2], strides: [64, 2], dtype: undefined },
      { byteLength: Number.NaN, dtype: undefined },
      { deviceOrdinal: 'x' },
    ]) {
      b.override = lie
      expect(reduce(a, b, { stream, count: 2 })).toThrow()
    }
    b.override = { address: -1n }
    expect(reduce(a, b, { stream, count: 2 })).toThrow(RangeError)
    // The memory's own dtype does not change this.
    b.override = { address: b.address + 2n, dtype: 'f32' }
    expect(reduce(a, b, { stream, count: 2 })).toThrow('not aligned for f32')
    expect(reduce(a, b, { stream, count: 2 })).toThrow(RangeError)
    b.override = { shape: [2, 4], strides: [1, 2], length: undefined }
    expect(reduce(a, b, { stream, count: 2 })).toThrow('recv must be contiguous, not with strides [1,2]')
    b.override = { readOnly: true }
    expect(reduce(a, b, { stream })).toThrow('read-only')
    expect(reduce(b, a, { stream, count: 0 })).not.toThrow()
    b.override = {}
  })

  test('streams with forged properties and revoked proxies are refused', () => {
    const handle = streams[0]?.[streamProtocol] as StreamHandle
    const described = (lie: object) => ({ [streamProtocol]: { ...handle, ...lie } })
    for (const [lie, words] of [
      [{ version: 1 }, "stream[Symbol.for('cuda.stream')].version must be 0"],
      [{ handle: 5 }, 'stream.handle must be a bigint'],
      [{ handle: -1n }, 'stream must have a handle of 64 bits, not -1'],
      [{ handle: 2n ** 64n }, 'stream must have a handle of 64 bits, not 18446744073709551616'],
      [{ deviceOrdinal: 1 }, 'stream belongs to device 1, the communicator to device 0'],
      [{ context: 12345n }, 'stream belongs to another context of device 0'],
    ] as const) {
      expect(reduce(a, b, { stream: described(lie) }), words).toThrow(words)
    }
    for (const answer of [undefined, null]) {
      expect(reduce(a, b, { stream: { [streamProtocol]: answer } })).toThrow(TypeError)
    }
    // Memory without a device or context may belong to this one.
    const anywhere = { deviceOrdinal: -1, context: 0n }
    const mine = new Error('mine')
    const dropped = () =>
      group(() => {
        reduce(a, b, { stream: described(anywhere) })()
        throw mine
      })
    expect(dropped).toThrow(mine)
    b.override = { address: 2n ** 64n }
    expect(reduce(a, b, { stream: streams[0], count: 2 })).toThrow(
      'recv must have an address of 64 bits, not 18446744073709551616',
    )
    b.override = {}
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    expect(reduce(a, b, { stream: revoked.proxy })).toThrow('stream must be')
    const throwing = {
      get [streamProtocol](): never {
        throw mine
      },
    }
    expect(reduce(a, b, { stream: throwing })).toThrow(mine)
  })

  describe('position of buffers on rank 1', () => {
    const inPlace: { readonly [name: string]: readonly [send: number, recv: number, allowed: number | undefined] } = {
      allReduce: [1, 1, 0],
      allGather: [1, 3, -1],
      reduceScatter: [3, 1, 1],
      allToAll: [3, 3, undefined],
      broadcast: [1, 1, 0],
      reduce: [1, 1, 0],
      gather: [1, 3, -1],
      scatter: [3, 1, 1],
    }

    test.each(Object.keys(inPlace))('%s', (name) => {
      const [sendParts, recvParts, allowed] = inPlace[name] as (typeof inPlace)[string]
      const [length, from] = [2, 8]
      const room = TestMemory.zeros(1, 'f32', 24)
      const communicator = communicators[1] as Communicator
      const rooted = /cast|reduce$|gather$|^scatter/.test(name) ? { root: 1 } : {}
      const at = (parts: number, element: number) => room.part(4 * element, 4 * length * parts)
      const done = new Error('dropped')
      // Nothing is started: the error drops the group.
      const placed = (recv: number) => () =>
        group(() => {
          const call = communicator[name as 'allReduce'].bind(communicator)
          call(at(sendParts, from), at(recvParts, recv), { stream: streams[1], count: length, ...rooted } as never)
          throw done
        })
      const [before, behind] = [from - recvParts * length, from + sendParts * length]
      for (const free of [before, behind]) expect(placed(free)).toThrow(done)
      for (let recv = before + 1; recv < behind; recv += 1) {
        const isAllowed = allowed !== undefined && recv - from === allowed * length
        expect(placed(recv), `${recv}`).toThrow(isAllowed ? done : 'overlap without being in place')
      }
      room.dispose()
    })
  })

  test('different dtypes, and dtypes that NCCL cannot reduce, are refused', () => {
    const stream = streams[0]
    expect(reduce(a, doubles, { stream })).toThrow('same dtype')
    const shorts = TestMemory.zeros(0, 'i16', 4)
    expect(reduce(shorts, shorts, { stream })).toThrow('cannot reduce elements of i16')
    const bare = new TestMemory(0, 16)
    expect(reduce(bare, bare, { stream })).toThrow('dtype must be given')
    expect(reduce(bare.part(2, 8), bare.part(2, 8), { stream, dtype: 'f32' })).toThrow('not aligned')
    shorts.dispose()
    bare.dispose()
  })

  test('different sizes require a count', () => {
    const short = TestMemory.zeros(0, 'f32', 7)
    expect(reduce(a, short, { stream: streams[0] })).toThrow(RangeError)
    expect(reduce(a, short, { stream: streams[0], count: 8 })).toThrow('recv has 28')
    short.dispose()
  })

  test('buffers that overlap but are not in place are refused', () => {
    expect(reduce(a.part(0, 16), a.part(4, 16), { stream: streams[0] })).toThrow('overlap')
    expect(reduce(a.part(4, 16), a.part(0, 16), { stream: streams[0] })).toThrow('overlap')
    expect(reduce(a.part(0, 16), a.part(16, 16), { stream: streams[0], count: 0 })).not.toThrow()
  })

  test('disposed memory and streams are refused', () => {
    const gone = TestMemory.zeros(0, 'f32', 8)
    gone.dispose()
    const ended = new TestStream(0)
    ended.dispose()
    expect(reduce(gone, b, { stream: streams[0] })).toThrow(DisposedError)
    expect(reduce(a, gone, { stream: streams[0] })).toThrow(DisposedError)
    expect(reduce(a, b, { stream: ended })).toThrow(DisposedError)
  })

  test('a root outside the ranks is refused', () => {
    const [communicator] = communicators as [Communicator]
    const stream = streams[0] as TestStream
    for (const [root, kind] of [
      [deviceCount, RangeError],
      [-1, RangeError],
      [0.5, TypeError],
      [Number.NaN, TypeError],
      [undefined, TypeError],
    ] as const) {
      const options = { stream, root: root as number }
      expect(errorOf(() => communicator.broadcast(a, a, options))).toBeInstanceOf(kind)
      expect(errorOf(() => communicator.reduce(a, a, options))).toBeInstanceOf(kind)
    }
    expect(() => communicator.broadcast(null, a, { root: 0, stream })).toThrow(TypeError)
    expect(() => communicator.reduce(a, null, { root: 0, stream })).toThrow(TypeError)
  })

  test('a gather whose buffers do not fit the number of ranks is refused', () => {
    const [communicator] = communicators as [Communicator]
    const stream = streams[0] as TestStream
    expect(() => communicator.allGather(a, b, { stream })).toThrow(RangeError)
    expect(() => communicator.allGather(a, b, { stream, count: 3 })).toThrow(RangeError)
    expect(() => communicator.reduceScatter(a, b, { stream })).toThrow(RangeError)
  })

  test('the communicators still work after all refusals', () => {
    const memory = ranks.map((rank) => TestMemory.from(rank, new Float32Array([1])))
    everywhere((communicator, rank, stream) => {
      communicator.allReduce(memory[rank] as TestMemory, memory[rank] as TestMemory, { stream })
    })
    for (const one of memory) expect(one.floats()).toEqual([deviceCount])
    for (const one of memory) one.dispose()
  })
})
