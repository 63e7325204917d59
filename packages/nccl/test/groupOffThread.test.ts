import { setImmediate as turn } from 'node:timers/promises'
import { Communicator, group, groupOffThread, simulateGroup } from '@shoal/nccl'
import { nccl, ncclRedOp_t, ncclRedOpDestroy } from '@shoal/nccl-sys'
import { DisposedError, ShoalError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { errorOf, rejection, TestMemory, TestStream } from './fixtures/device.js'
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

test('groupOffThread queues all calls of fn and resolves with its result', async () => {
  setTo(1)
  expect(await groupOffThread(allReduceBoth)).toBe('done')
  expect(values()).toEqual([2, 2])
  expect(await groupOffThread(() => 5)).toBe(5)
})

test('groupOffThread includes nested groups', async () => {
  setTo(1)
  await groupOffThread(() => {
    group(() => allReduce(0))
    group(() => group(() => allReduce(1)))
  })
  expect(values()).toEqual([2, 2])
})

test("groupOffThread starts nothing if fn throws, even if a nested group's error is caught", async () => {
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

test('groupOffThread is refused inside a group, because that group would end first', async () => {
  let inner: Promise<unknown> = Promise.resolve()
  group(() => {
    inner = groupOffThread(allReduceBoth)
    inner.catch(() => undefined)
  })
  expect(await rejection(inner)).toMatchObject({ code: 'SHOAL_BUSY', api: 'groupOffThread', underWay: 'a group' })
})

test('several groupOffThread calls run one after the other; a plain call in between is refused', async () => {
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

test('groupOffThread does not block the thread while a rank waits for its peer', async () => {
  setTo(1)
  // The software device would queue a plain call of one rank. Two groups with one rank each wait for each other on
  // separate threads.
  const both = Promise.all([groupOffThread(() => allReduce(0)), groupOffThread(() => allReduce(1))])
  await turn()
  await both
  expect(values()).toEqual([2, 2])
})

test('a reduction operator disposed in fn still works for the calls of fn', async () => {
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

test('groupOffThread reports all errors of NCCL, and starts nothing', async () => {
  setTo(1)
  // The stream belongs to another device. For a raw handle only NCCL can detect this.
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

test('groupOffThread rejects if its communicator ends before its turn', async () => {
  const [alone] = await Communicator.initAll([0])
  const one = memory[0] as TestMemory
  const stream = streams[0] as TestStream
  const call = () => alone?.allReduce(one, one, { stream })
  const [before, after] = [groupOffThread(call), groupOffThread(call)]
  const [ended] = await Promise.all([alone?.destroy(), before])
  expect(ended).toBeUndefined()
  // The order of the two is undefined: the work completes, or the communicator is gone.
  await after.catch((error: unknown) => expect(error).toBeInstanceOf(DisposedError))
  expect(() => call()).toThrow(DisposedError)
  stream.wait()
})

test('a failure to destroy an operator after the group is a warning', async () => {
  const [communicator] = communicators as [Communicator]
  const { handle } = communicator
  const op = communicator.createPreMulSum(2, { dtype: 'f32' })
  // Another user frees the operation. It is the only one, whatever its number is.
  const statuses = Array.from({ length: 64 }, (_, index) => ncclRedOpDestroy(ncclRedOp_t.ncclNumOps + index, handle))
  expect(statuses.filter((status) => status === 0)).toHaveLength(1)
  const warnings: string[] = []
  const note = ({ name, message }: Error): void => void warnings.push(`${name}: ${message}`)
  process.on('warning', note)
  const queued = groupOffThread(allReduceBoth)
  op.dispose()
  await queued
  await expect.poll(() => warnings.length).toBe(1)
  process.off('warning', note)
  expect(warnings[0]).toMatch(
    /^ShoalWarning: what was disposed of during groupOffThread: StatusError.*ncclRedOpDestroy/s,
  )
  for (const stream of streams) stream.wait()
  expect(communicators.map(({ disposed }) => disposed)).toEqual([false, false])
})

describe('groupOffThread with an object disposed right after the call, before NCCL is called', () => {
  test.each([
    [
      'the buffer of an all-reduce',
      (one: TestMemory, other: TestMemory, stream: TestStream) => {
        communicators[0]?.allReduce(one, other, { stream })
        allReduce(1)
      },
    ],
    [
      'the buffer of a broadcast',
      (one: TestMemory, other: TestMemory, stream: TestStream) => {
        communicators[0]?.broadcast(one, other, { root: 0, stream })
      },
    ],
    [
      'the buffer of a send',
      (one: TestMemory, other: TestMemory, stream: TestStream) => {
        communicators[0]?.send(one, { peer: 0, stream })
        communicators[0]?.recv(other, { peer: 0, stream })
      },
    ],
  ])(
    '%s or its stream: rejects with DisposedError, starts nothing, and the communicators stay usable',
    async (_, call) => {
      setTo(1)
      for (const gone of [0, 1, 2]) {
        const operands = [TestMemory.zeros(0, 'f32', 1), TestMemory.zeros(0, 'f32', 1), new TestStream(0)] as const
        const waiting = groupOffThread(() => {
          call(...operands)
        })
        operands[gone]?.dispose()
        expect(await rejection(waiting)).toBeInstanceOf(DisposedError)
        for (const [index, operand] of operands.entries()) if (index !== gone) operand.dispose()
        expect(communicators.map(({ disposed }) => disposed)).toEqual([false, false])
        expect(values()).toEqual([1, 1])
      }
      await groupOffThread(allReduceBoth)
      expect(values()).toEqual([2, 2])
    },
  )

  test('while the group is queued: rejects, and earlier groups still run', async () => {
    setTo(1)
    const memory = TestMemory.zeros(0, 'f32', 1)
    const first = groupOffThread(allReduceBoth)
    const second = rejection(
      groupOffThread(() => communicators[0]?.allReduce(memory, memory, { stream: streams[0] as TestStream })),
    )
    memory.dispose()
    await first
    expect(await second).toBeInstanceOf(DisposedError)
    expect(values()).toEqual([2, 2])
  })

  test('the stream of a synchronize that waits for the group', async () => {
    setTo(1)
    const stream = new TestStream(0)
    const group = groupOffThread(allReduceBoth)
    const waiting = rejection(communicators[0]?.synchronize(stream) as Promise<void>)
    stream.dispose()
    expect(await waiting).toBeInstanceOf(DisposedError)
    await group
    expect(values()).toEqual([2, 2])
  })
})

test('groupSimulate() starts nothing', (context) => {
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
