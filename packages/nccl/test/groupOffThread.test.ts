import { setImmediate as turn } from 'node:timers/promises'
import { Communicator, group, groupOffThread, simulateGroup } from '@shoal/nccl'
import { nccl } from '@shoal/nccl-sys'
import { DisposedError, ShoalError } from '@shoal/types'
import { expect, test } from 'vitest'
import { errorOf, type TestMemory, type TestStream } from './fixtures/device.js'
import { twoRanks } from './fixtures/twoRanks.js'

const { communicators, streams, memory, allReduce } = twoRanks()

function allReduceBoth(): string {
  for (const rank of [0, 1]) allReduce(rank)
  return 'done'
}

function values(): number[] {
  for (const stream of streams) stream.wait()
  return memory.flatMap((one) => one.floats())
}

function setTo(value: number): void {
  for (const one of memory) one.write(Float32Array.of(value))
}

/** The error with which a promise is rejected. */
async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('nothing was thrown')
    },
    (error: unknown) => error,
  )
}

test('queues all calls of fn and gives what it returns', async () => {
  setTo(1)
  expect(await groupOffThread(allReduceBoth)).toBe('done')
  expect(values()).toEqual([2, 2])
  expect(await groupOffThread(() => 5)).toBe(5)
})

test('nested groups belong to it', async () => {
  setTo(1)
  await groupOffThread(() => {
    group(() => allReduce(0))
    group(() => group(() => allReduce(1)))
  })
  expect(values()).toEqual([2, 2])
})

test('fn that throws starts nothing, also in a nested group whose error is caught', async () => {
  setTo(1)
  const mine = new Error('mine')
  const throwing = () => {
    allReduce(0)
    throw mine
  }
  expect(await rejection(groupOffThread(throwing))).toBe(mine)
  const caught = groupOffThread(() => {
    expect(errorOf(() => group(throwing))).toBe(mine)
    allReduce(1)
  })
  expect(await rejection(caught)).toBe(mine)
  expect(await rejection(groupOffThread(async () => allReduce(0)))).toBeInstanceOf(TypeError)
  expect(await rejection(groupOffThread(undefined as never))).toBeInstanceOf(TypeError)
  expect(values()).toEqual([1, 1])
  await groupOffThread(allReduceBoth)
  expect(values()).toEqual([2, 2])
})

test('is refused in a group, which would end before it', async () => {
  let inner: Promise<unknown> = Promise.resolve()
  group(() => {
    inner = groupOffThread(allReduceBoth)
    inner.catch(() => undefined)
  })
  expect(await rejection(inner)).toMatchObject({ code: 'SHOAL_BUSY', api: 'groupOffThread', underWay: 'a group' })
})

test('several take their turn; a plain call in between is refused', async () => {
  setTo(1)
  const all = [groupOffThread(allReduceBoth), groupOffThread(allReduceBoth), groupOffThread(allReduceBoth)]
  expect(errorOf(() => allReduce(0))).toMatchObject({
    code: 'SHOAL_BUSY',
    underWay: 'groupOffThread',
  })
  expect(errorOf(() => communicators[0]?.createPreMulSum(1, { dtype: 'f32' }))).toBeInstanceOf(Error)
  await Promise.all(all)
  expect(values()).toEqual([8, 8])
  group(allReduceBoth)
  expect(values()).toEqual([16, 16])
})

test('the thread goes on while a rank waits for its peer', async () => {
  setTo(1)
  // A plain call of one rank alone would be queued on sim; two groups of one rank each meet on threads of their own.
  const both = Promise.all([groupOffThread(() => allReduce(0)), groupOffThread(() => allReduce(1))])
  await turn()
  await both
  expect(values()).toEqual([2, 2])
})

test('a reduction that is disposed of in fn still serves the calls of fn', async () => {
  setTo(1)
  await groupOffThread(() => {
    for (const [rank, communicator] of communicators.entries()) {
      const op = communicator.createPreMulSum(5, { dtype: 'f32' })
      const one = memory[rank] as TestMemory
      communicator.allReduce(one, one, { op, stream: streams[rank] as TestStream })
      op.dispose()
    }
  })
  expect(values()).toEqual([10, 10])
})

test('all errors of NCCL are told, and nothing is started', async () => {
  setTo(1)
  // The stream is of another device, which only NCCL can know of a bare handle.
  const foreign = (streams[1] as TestStream).handle
  const error = await rejection(
    groupOffThread(() => {
      const one = memory[0] as TestMemory
      communicators[0]?.allReduce(one, one, { stream: foreign })
      communicators[0]?.broadcast(one, one, { root: 0, stream: foreign })
      allReduce(1)
    }),
  )
  expect(error).toMatchObject({
    api: 'ncclAllReduce',
    suppressed: { api: 'ncclBroadcast', suppressed: { api: 'ncclGroupEnd' } },
  })
  expect(values()).toEqual([1, 1])
  await groupOffThread(allReduceBoth)
  expect(values()).toEqual([2, 2])
})

test('a group whose communicator has ended before its turn is refused', async () => {
  const [alone] = await Communicator.initAll([0])
  const one = memory[0] as TestMemory
  const stream = streams[0] as TestStream
  const call = () => alone?.allReduce(one, one, { stream })
  const [before, after] = [groupOffThread(call), groupOffThread(call)]
  const [ended] = await Promise.all([alone?.destroy(), before])
  expect(ended).toBeUndefined()
  // Which of the two comes first is not promised: the work is done, or the communicator is gone.
  await after.catch((error: unknown) => expect(error).toBeInstanceOf(DisposedError))
  expect(() => call()).toThrow(DisposedError)
  stream.wait()
})

test('simulates a group: nothing is started', (context) => {
  if (!nccl.has('ncclGroupSimulateEnd')) {
    setTo(1)
    expect(errorOf(() => simulateGroup(allReduceBoth))).toBeInstanceOf(ShoalError)
    group(allReduceBoth)
    expect(values()).toEqual([2, 2])
    context.skip('this libnccl has no ncclGroupSimulateEnd')
  }
  setTo(1)
  const { microseconds } = simulateGroup(allReduceBoth)
  if (microseconds !== undefined) expect(microseconds).toBeGreaterThan(0)
  expect(values()).toEqual([1, 1])
  const mine = new Error('mine')
  const throwing = () => {
    allReduce(0)
    throw mine
  }
  expect(errorOf(() => simulateGroup(throwing))).toBe(mine)
  expect(errorOf(() => group(() => simulateGroup(allReduceBoth)))).toMatchObject({
    code: 'SHOAL_BUSY',
    api: 'simulateGroup',
  })
  expect(() => simulateGroup(1 as never)).toThrow(TypeError)
  group(allReduceBoth)
  expect(values()).toEqual([2, 2])
})
