import { Communicator, group, groupOffThread, UniqueId } from '@shoal/nccl'
import { StatusError } from '@shoal/types'
import { expect, test } from 'vitest'
import { errorOf, TestMemory, TestStream } from './fixtures/device.js'
import { twoRanks } from './fixtures/twoRanks.js'

const { communicators, streams, memory, allReduce } = twoRanks()

/** Whether a stream is idle after a moment. An incomplete group would wait there for the other rank. */
function isIdle(rank: number): boolean {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  return (streams[rank] as TestStream).isIdle()
}

/** Sums over both ranks again. This works only if the previous group has ended and left nothing behind. */
function expectNext(expected: number): void {
  group(() => {
    for (const rank of [0, 1]) allReduce(rank)
  })
  for (const stream of streams) stream.wait()
  for (const one of memory) expect(one.floats()).toEqual([expected])
}

test('group() returns the result of fn, also nested', () => {
  expect(group(() => 5)).toBe(5)
  expect(group(() => group(() => group(() => 'deep')))).toBe('deep')
  expectNext(2)
})

test('group() ends when fn throws, and starts nothing', () => {
  for (const thrown of [new Error('mine'), 'text', undefined, Object.freeze(new Error('frozen'))]) {
    const error = errorOf(() =>
      group(() => {
        allReduce(0)
        throw thrown
      }),
    )
    expect(error).toBe(thrown)
  }
  for (const stream of streams) stream.wait()
  for (const one of memory) expect(one.floats()).toEqual([2])
  expectNext(4)
})

test('group() ends when a nested group throws, also if no code in between catches', () => {
  const error = errorOf(() =>
    group(() => {
      allReduce(0)
      group(() => {
        allReduce(1)
        throw new RangeError('inner')
      })
    }),
  )
  expect(error).toEqual(new RangeError('inner'))
  expectNext(8)
})

test('an error caught between nested groups still fails the outer group', () => {
  const inner = new Error('inner')
  const error = errorOf(() =>
    group(() => {
      try {
        group(() => {
          allReduce(0)
          throw inner
        })
      } catch {}
      allReduce(1)
    }),
  )
  expect(error).toBe(inner)
  expectNext(16)
})

test('of two errors in nested groups the first is thrown, with the second attached', () => {
  const error = errorOf(() =>
    group(() => {
      try {
        group(() => {
          throw new Error('first')
        })
      } catch {
        throw new Error('second')
      }
    }),
  )
  expect(error).toMatchObject({ message: 'first', suppressed: { message: 'second' } })
  expectNext(32)
})

test('an NCCL error from outside the group is not reported as a refused call', () => {
  const foreign = new StatusError({
    library: 'NCCL',
    api: 'ncclCommGetAsyncError',
    status: 6,
    code: 'ncclRemoteError',
    description: 'from somewhere else',
    isSticky: true,
  })
  const error = errorOf(() =>
    group(() => {
      allReduce(0)
      throw foreign
    }),
  )
  expect(error).toBe(foreign)
  expect(isIdle(0)).toBe(true)
  expectNext(64)
})

test('a failed nested group also drops later operations, even if nothing was recorded before', () => {
  const inner = new Error('inner')
  const error = errorOf(() =>
    group(() => {
      try {
        group(() => {
          throw inner
        })
      } catch {}
      allReduce(0)
    }),
  )
  expect(error).toBe(inner)
  expect(isIdle(0)).toBe(true)
  expectNext(128)
})

test('group() refuses other values than functions, and asynchronous functions', async () => {
  expect(() => group(undefined as unknown as () => void)).toThrow(TypeError)
  expect(() => group(async () => allReduce(0))).toThrow('synchronous')
  expect(() =>
    group(async () => {
      throw new Error('nobody hears this')
    }),
  ).toThrow(TypeError)
  await new Promise((resolve) => setImmediate(resolve))
  expectNext(256)
})

test('ranks with different operations are refused, and nothing is started', async () => {
  const [first, second] = communicators as [Communicator, Communicator]
  const [one, other] = memory as [TestMemory, TestMemory]
  const [stream, otherStream] = streams as [TestStream, TestStream]
  const doubles = TestMemory.from(1, new Float64Array([1]))
  const integers = TestMemory.from(1, new Int32Array([1]))
  const cases: [name: string, words: RegExp, call: () => void][] = [
    [
      'dtype',
      /rank 0 calls ncclAllReduce of 1 of ncclFloat32, ncclSum, rank 1 .* of ncclFloat64, ncclSum;/,
      () => second.allReduce(doubles, doubles, { stream: otherStream }),
    ],
    ['size', /ncclInt32/, () => second.allReduce(integers, integers, { stream: otherStream })],
    ['op', /the same operation/, () => second.allReduce(other, other, { op: 'max', stream: otherStream })],
    ['count', /0 of ncclFloat32/, () => second.allReduce(other, other, { count: 0, stream: otherStream })],
    [
      'operation',
      /ncclBroadcast of 4 bytes with root 1/,
      () => second.broadcast(other, other, { root: 1, stream: otherStream }),
    ],
  ]
  for (const [name, words, call] of cases) {
    const both = () => {
      first.allReduce(one, one, { stream })
      call()
    }
    expect(
      errorOf(() => group(both)),
      name,
    ).toMatchObject({ name: 'TypeError', message: expect.stringMatching(words) })
    await expect(groupOffThread(both), name).rejects.toThrow(words)
    expect(isIdle(0), name).toBe(true)
  }
  const broadcasts = () => {
    first.broadcast(one, one, { root: 0, stream })
    second.broadcast(other, other, { root: 1, stream: otherStream })
  }
  expect(errorOf(() => group(broadcasts))).toMatchObject({ message: expect.stringContaining('root 0, rank 1') })
  for (const one of [doubles, integers]) one.dispose()
  expectNext(512)
})

test('a pre-multiplied sum on each rank counts as the same operation', () => {
  const ops = communicators.map((communicator, rank) => communicator.createPreMulSum(rank + 1, { dtype: 'f32' }))
  group(() => {
    for (const [rank, communicator] of communicators.entries()) {
      const one = memory[rank] as TestMemory
      communicator.allReduce(one, one, { op: ops[rank] as (typeof ops)[number], stream: streams[rank] as TestStream })
    }
  })
  for (const stream of streams) stream.wait()
  for (const one of memory) expect(one.floats()).toEqual([3 * 512])
})

test('separately joined ranks are compared call by call, in any order', async () => {
  const bytes = UniqueId.create().toBytes()
  const three = await Promise.all(
    [0, 1, 2].map((rank) => Communicator.initRank({ device: rank, rank, worldSize: 3, id: UniqueId.fromBytes(bytes) })),
  )
  const places = three.map((communicator, rank) => {
    const buffer = TestMemory.from(rank, new Float32Array([1, 1]))
    const stream = new TestStream(rank)
    return {
      sum: () => communicator.allReduce(buffer, buffer, { stream }),
      greatest: () => communicator.allReduce(buffer, buffer, { op: 'max', stream }),
      first: () => communicator.allReduce(buffer, buffer, { count: 1, stream }),
      buffer,
      stream,
    }
  })
  const [zero, one, two] = places as [(typeof places)[0], (typeof places)[0], (typeof places)[0]]
  const values = (): number[][] => {
    for (const { stream } of places) stream.wait()
    return places.map(({ buffer }) => buffer.floats())
  }
  // The ranks' calls in sequence, and interleaved.
  group(() => {
    for (const { sum, greatest } of places) {
      sum()
      greatest()
    }
  })
  group(() => {
    for (const call of [one.sum, two.sum, one.first, zero.sum, zero.first, two.first]) call()
  })
  expect(values()).toEqual([
    [27, 9],
    [27, 9],
    [27, 9],
  ])
  // The second call differs on two ranks, and the error reports both.
  const differing = errorOf(() =>
    group(() => {
      two.sum()
      two.greatest()
      for (const { sum, first } of [zero, one]) {
        sum()
        first()
        first()
      }
    }),
  ) as TypeError & { readonly suppressed: TypeError }
  const expected = (rank: number) =>
    new RegExp(`rank 2 calls ncclAllReduce of 2 .*, ncclMax, rank ${rank} ncclAllReduce of 1 .*, ncclSum;`)
  expect(differing.message).toMatch(expected(0))
  expect(differing.suppressed.message).toMatch(expected(1))
  expect(differing.suppressed).not.toHaveProperty('suppressed')
  group(() => {
    for (const { first } of places) first()
  })
  expect(values()[0]).toEqual([81, 9])
  await Promise.all(three.map((communicator) => communicator.destroy()))
  for (const { buffer, stream } of places) for (const thing of [buffer, stream]) thing.dispose()
})

test('a first operation that would wait for a rank of the same thread is refused outside a group', async () => {
  const [first, second] = (await Communicator.initAll([0, 1])) as [Communicator, Communicator]
  const reduce = (communicator: Communicator): void => {
    const buffer = memory[communicator.rank] as TestMemory
    communicator.allReduce(buffer, buffer, { stream: streams[communicator.rank] as TestStream })
  }
  expect(errorOf(() => reduce(first))).toMatchObject({
    code: 'SHOAL_COMMUNICATOR_STATE',
    state: 'unconnected',
    operation: 'ncclAllReduce',
    rank: 0,
    message: expect.stringContaining('group()'),
  })
  expect(
    errorOf(() => second.send(memory[1] as TestMemory, { peer: 0, stream: streams[1] as TestStream })),
  ).toMatchObject({
    state: 'unconnected',
    operation: 'ncclSend',
  })
  group(() => {
    reduce(first)
    reduce(second)
  })
  // From now on NCCL only queues the call.
  reduce(first)
  reduce(second)
  for (const stream of streams) stream.wait()
  await Promise.all([first.destroy(), second.destroy()])
})

test('a first operation starts at once on a non-blocking communicator, and if the other ranks are elsewhere', async () => {
  const config = { blocking: false }
  const pair = (await Communicator.initAll([0, 1], { config })) as [Communicator, Communicator]
  for (const communicator of pair) {
    const buffer = memory[communicator.rank] as TestMemory
    communicator.allReduce(buffer, buffer, { stream: streams[communicator.rank] as TestStream })
  }
  await Promise.all(pair.map((one) => one.synchronize(streams[one.rank] as TestStream, { timeout: 10_000 })))
  await Promise.all(pair.map((one) => one.destroy()))
  const [alone] = (await Communicator.initAll([0])) as [Communicator]
  alone.allReduce(memory[0] as TestMemory, memory[0] as TestMemory, { stream: streams[0] as TestStream })
  await alone.synchronize(streams[0] as TestStream)
  await alone.destroy()
})
