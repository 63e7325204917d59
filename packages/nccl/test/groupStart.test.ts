import { Communicator, GroupStateError, group, groupEnd, groupOffThread, groupStart } from '@shoal/nccl'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

let communicators: Communicator[]
let streams: TestStream[]
let memory: TestMemory[]

beforeAll(async () => {
  startSoftwareDevice()
  communicators = await Communicator.initAll([0, 1])
  streams = [0, 1].map((device) => new TestStream(device))
  memory = [0, 1].map((device) => TestMemory.zeros(device, 'f32', 1))
})

beforeEach(() => {
  for (const one of memory) one.write(Float32Array.of(1))
})

afterAll(async () => {
  for (const communicator of communicators) await communicator.destroy()
  for (const one of [...streams, ...memory]) one.dispose()
})

function allReduce(rank: number, options: object = {}): void {
  const one = memory[rank] as TestMemory
  communicators[rank]?.allReduce(one, one, { stream: streams[rank] as TestStream, ...options })
}

function values(): number[] {
  for (const stream of streams) stream.wait()
  return memory.flatMap((one) => one.floats())
}

/** Checks that later groups work. */
function expectWorking(): void {
  const [before] = values()
  group(() => {
    for (const rank of [0, 1]) allReduce(rank)
  })
  expect(values()).toEqual([2 * (before as number), 2 * (before as number)])
}

test('operations between groupStart and groupEnd start together', () => {
  groupStart()
  allReduce(0)
  allReduce(1)
  expect(values()).toEqual([1, 1])
  groupEnd()
  expect(values()).toEqual([2, 2])
})

test('groups nest, also with group(); the outermost group starts the operations', () => {
  groupStart()
  groupStart()
  allReduce(0)
  groupEnd()
  group(() => allReduce(1))
  expect(values()).toEqual([1, 1])
  groupEnd()
  expect(values()).toEqual([2, 2])
  group(() => {
    groupStart()
    allReduce(0)
    groupEnd()
    allReduce(1)
  })
  expect(values()).toEqual([4, 4])
})

test('groupStart belongs to the group that groupOffThread collects', async () => {
  await groupOffThread(() => {
    groupStart()
    allReduce(0)
    groupEnd()
    allReduce(1)
  })
  expect(values()).toEqual([2, 2])
})

test('groupEnd without groupStart is refused, also inside group(), which ends itself', () => {
  expect(errorOf(groupEnd)).toMatchObject({ name: 'GroupStateError', code: 'SHOAL_GROUP_STATE', api: 'groupEnd' })
  let inside: unknown
  group(() => {
    inside = errorOf(groupEnd)
    allReduce(0)
    allReduce(1)
  })
  expect(inside).toBeInstanceOf(GroupStateError)
  expect(values()).toEqual([2, 2])
  groupStart()
  group(() => {
    inside = errorOf(groupEnd)
  })
  groupEnd()
  expect(inside).toBeInstanceOf(GroupStateError)
})

test('a function that leaves groupStart open fails its group, and nothing starts', async () => {
  const leaving = () => {
    allReduce(0)
    allReduce(1)
    groupStart()
    groupStart()
  }
  expect(errorOf(() => group(leaving))).toMatchObject({ code: 'SHOAL_GROUP_STATE', api: 'group' })
  expect(errorOf(groupEnd)).toBeInstanceOf(GroupStateError)
  expect(values()).toEqual([1, 1])
  await expect(groupOffThread(leaving)).rejects.toMatchObject({ code: 'SHOAL_GROUP_STATE', api: 'groupOffThread' })
  expect(values()).toEqual([1, 1])
  expectWorking()
})

test.each([
  ['a wrong argument', () => allReduce(1, { count: 2 })],
  ['an unknown option', () => allReduce(1, { ops: 'max' })],
  [
    'a root that is no rank',
    () => communicators[1]?.broadcast(null, memory[1] as TestMemory, { root: 2, stream: null }),
  ],
  ['a peer that is no rank', () => communicators[1]?.send(memory[1] as TestMemory, { peer: 2, stream: null })],
])('an operation refused for %s drops the whole group', (_, refused) => {
  groupStart()
  allReduce(0)
  expect(errorOf(refused)).toBeInstanceOf(Error)
  expect(errorOf(groupEnd)).toMatchObject({ code: 'SHOAL_GROUP_STATE', message: /was refused/ })
  expect(values()).toEqual([1, 1])
  expectWorking()
})

test('an operation on an ended communicator drops the group', async () => {
  const [ended] = (await Communicator.initAll([0])) as [Communicator]
  await ended.destroy()
  const one = memory[0] as TestMemory
  groupStart()
  allReduce(0)
  expect(errorOf(() => ended.allReduce(one, one, { stream: null }))).toMatchObject({ code: 'SHOAL_DISPOSED' })
  expect(errorOf(groupEnd)).toBeInstanceOf(GroupStateError)
  expect(values()).toEqual([1, 1])
  expectWorking()
})

test('an operation refused before groupStart does not affect the group', () => {
  expect(errorOf(() => allReduce(0, { count: 2 }))).toBeInstanceOf(RangeError)
  groupStart()
  allReduce(0)
  allReduce(1)
  groupEnd()
  expect(values()).toEqual([2, 2])
})

test('a communicator destroyed inside an open group ends after it', async () => {
  const pair = (await Communicator.initAll([0, 1])) as [Communicator, Communicator]
  groupStart()
  for (const [rank, one] of pair.entries()) {
    one.allReduce(memory[rank] as TestMemory, memory[rank] as TestMemory, { stream: streams[rank] as TestStream })
  }
  const ends = pair.map((one) => one.destroy())
  await new Promise((resolve) => setTimeout(resolve, 20))
  groupEnd()
  await Promise.all(ends)
  expect(values()).toEqual([2, 2])
})

test('waiting for a stream is refused while a group is open', async () => {
  groupStart()
  await expect(communicators[0]?.synchronize(streams[0] as TestStream)).rejects.toMatchObject({ code: 'SHOAL_BUSY' })
  groupEnd()
})
