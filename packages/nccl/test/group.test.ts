import { Communicator, group } from '@shoal/nccl'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

let communicators: Communicator[]
let streams: TestStream[]
let memory: TestMemory[]

beforeAll(async () => {
  startSoftwareDevice()
  communicators = await Communicator.initAll([0, 1])
  streams = communicators.map(({ device }) => new TestStream(device))
  memory = communicators.map(({ device }) => TestMemory.from(device, new Float32Array([1])))
})

afterAll(async () => {
  for (const communicator of communicators) await communicator.destroy()
})

function allReduce(rank: number): void {
  const [communicator, buffer, stream] = [communicators[rank], memory[rank], streams[rank]]
  communicator?.allReduce(buffer as TestMemory, buffer as TestMemory, { op: 'sum', stream: stream as TestStream })
}

/** Sums once more over both ranks: works only when the group before has ended, and with nothing left in it. */
function expectNext(expected: number): void {
  group(() => {
    for (const rank of [0, 1]) allReduce(rank)
  })
  for (const stream of streams) stream.wait()
  for (const one of memory) expect(one.floats()).toEqual([expected])
}

test('returns what fn returns, also nested', () => {
  expect(group(() => 5)).toBe(5)
  expect(group(() => group(() => group(() => 'deep')))).toBe('deep')
  expectNext(2)
})

test('ends when fn throws, and starts nothing', () => {
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

test('ends when a nested group throws, also when nobody catches at once', () => {
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

test('an error that is caught between the groups fails the outer one all the same', () => {
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

test('of two errors in nested groups the first is told', () => {
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
  expect(error).toEqual(new Error('first'))
  expectNext(32)
})

test('refuses what is not a function, and functions that are asynchronous', async () => {
  expect(() => group(undefined as unknown as () => void)).toThrow(TypeError)
  expect(() => group(async () => allReduce(0))).toThrow('synchronous')
  expect(() =>
    group(async () => {
      throw new Error('nobody hears this')
    }),
  ).toThrow(TypeError)
  await new Promise((resolve) => setImmediate(resolve))
  expectNext(64)
})
