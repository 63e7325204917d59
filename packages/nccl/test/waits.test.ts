import { withContext } from '@shoal/cuda-sys'
import { Communicator, CommunicatorAbortedError, group, groupOffThread, UniqueId } from '@shoal/nccl'
import { type ncclComm_t, ncclCommAbort, ncclCommInitRank } from '@shoal/nccl-sys'
import { AbortedError, DisposedError, StatusError, TimeoutError } from '@shoal/types'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { connected } from './fixtures/connected.js'
import { contextOf, errorOf, rejection, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

beforeAll(startSoftwareDevice)

let communicators: [Communicator, Communicator]
let memory: [TestMemory, TestMemory]
let streams: [TestStream, TestStream]

beforeEach(async () => {
  communicators = await connected((await Communicator.initAll([0, 1])) as typeof communicators)
  memory = [TestMemory.from(0, new Float32Array([1])), TestMemory.from(1, new Float32Array([2]))]
  streams = [new TestStream(0), new TestStream(1)]
})

afterEach(async () => {
  await Promise.all(communicators.map((communicator) => communicator.abort()))
  for (const one of [...memory, ...streams]) one.dispose()
})

/** An all-reduce that rank 1 never joins. */
function allReduceAlone(): void {
  communicators[0].allReduce(memory[0], memory[0], { stream: streams[0] })
}

function allReduceTogether(): void {
  group(() => {
    for (const rank of [0, 1] as const) {
      communicators[rank].allReduce(memory[rank], memory[rank], { stream: streams[rank] })
    }
  })
}

test('synchronize resolves after the work completes, without blocking the event loop', async () => {
  allReduceAlone()
  let isDone = false
  const done = communicators[0].synchronize(streams[0]).then(() => (isDone = true))
  let turns = 0
  const timer = setInterval(() => (turns += 1), 1)
  await new Promise((resolve) => setTimeout(resolve, 150))
  expect(isDone).toBe(false)
  expect(turns).toBeGreaterThan(3)
  clearInterval(timer)
  communicators[1].allReduce(memory[1], memory[1], { stream: streams[1] })
  await done
  await communicators[1].synchronize(streams[1], { timeout: 10_000 })
  expect(memory.flatMap((one) => one.floats())).toEqual([3, 3])
})

test("ranks that disagree get NCCL's description of the mismatch", async () => {
  communicators[0].allReduce(memory[0], memory[0], { stream: streams[0] })
  memory[1].dispose()
  memory[1] = TestMemory.zeros(1, 'i32', 1)
  communicators[1].allReduce(memory[1], memory[1], { stream: streams[1] })
  const errors = await Promise.all(
    ([0, 1] as const).map((rank) => rejection(communicators[rank].synchronize(streams[rank], { timeout: 10_000 }))),
  )
  for (const error of errors) {
    expect(error).toMatchObject({ code: 'SHOAL_COMMUNICATOR_ABORTED', reason: 'async-error' })
    expect((error as Error).message).toContain('NCCL says: ranks 0 and 1 disagree on the data type')
  }
})

test('a stream, and the default stream, can have many waits', async () => {
  allReduceTogether()
  await Promise.all([streams[0], streams[0], null].map((stream) => communicators[0].synchronize(stream)))
  expect(memory[0].floats()).toEqual([3])
})

describe.each(['destroy', 'finalize'] as const)('%s called a second time', (end) => {
  test('has a separate timeout', async () => {
    allReduceAlone()
    const [first, second] = [rejection(communicators[0][end]()), rejection(communicators[0][end]({ timeout: 20 }))]
    for (const error of await Promise.all([first, second])) {
      expect(error).toMatchObject({ code: 'SHOAL_COMMUNICATOR_ABORTED', reason: 'timeout', operation: end })
      expect((error as Error).cause).toMatchObject({ operation: `Communicator.${end}`, timeout: 20 })
    }
  })

  test('has a separate signal', async () => {
    allReduceAlone()
    const controller = new AbortController()
    const ends = [communicators[0][end](), communicators[0][end]({ signal: controller.signal })].map(rejection)
    controller.abort('enough')
    for (const error of await Promise.all(ends)) expect(error).toMatchObject({ reason: 'signal', cause: 'enough' })
  })

  test('refuses wrong options, and without options joins the first call', async () => {
    const first = Promise.all(communicators.map((communicator) => communicator[end]()))
    await expect(communicators[0][end]({ timeout: -1 })).rejects.toThrow(`Communicator.${end}: timeout must be`)
    await expect(communicators[0][end]('now' as never)).rejects.toThrow(`Communicator.${end}: options must be`)
    await Promise.all([first, communicators[0][end](), communicators[1][end]({ timeout: 30_000 })])
    if (end === 'finalize') await Promise.all(communicators.map((communicator) => communicator.destroy()))
    // The end is complete, so no limit can end it.
    await communicators[0].destroy({ signal: AbortSignal.abort(), timeout: 0 })
  })
})

test.each([
  ['without a text', Object.create(null)],
  [
    'that throws',
    {
      toString: throwing,
      get ranks() {
        return throwing()
      },
    },
  ],
  ['that is an error without a message', Object.assign(new Error('mine'), { message: undefined })],
  ['that is a symbol', Symbol('mine')],
])('a signal with a reason %s aborts the communicator', async (_, reason) => {
  allReduceAlone()
  const controller = new AbortController()
  const waiting = rejection(communicators[0].synchronize(streams[0], { signal: controller.signal }))
  controller.abort(reason)
  const error = await waiting
  expect(error).toBeInstanceOf(CommunicatorAbortedError)
  expect(error).toMatchObject({ reason: 'signal', operation: 'synchronize' })
  expect((error as Error).cause).toBe(reason)
})

function throwing(): never {
  throw new Error('not to be asked')
}

test('one signal may serve many waits and communicators', async () => {
  const warnings: Error[] = []
  const note = (warning: Error): void => void warnings.push(warning)
  process.on('warning', note)
  const abort = new AbortController()
  const id = UniqueId.create()
  const more = await Promise.all(
    [0, 1].map((rank) => Communicator.initRank({ device: rank, rank, worldSize: 2, id, signal: abort.signal })),
  )
  allReduceAlone()
  const waits = Array.from({ length: 30 }, () =>
    rejection(communicators[0].synchronize(streams[0], { signal: abort.signal })),
  )
  await new Promise((resolve) => setTimeout(resolve, 20))
  abort.abort()
  for (const error of await Promise.all(waits)) expect(error).toMatchObject({ reason: 'signal' })
  expect(more.every(({ disposed }) => disposed)).toBe(true)
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  expect(warnings).toEqual([])
})

test('a timeout aborts the communicator and names the awaited operation', async () => {
  allReduceAlone()
  const others = [rejection(communicators[0].synchronize(streams[0])), rejection(communicators[0].ready())]
  await others[1]?.catch(() => undefined)
  const start = performance.now()
  const error = await rejection(communicators[0].synchronize(streams[0], { timeout: 100 }))
  expect(performance.now() - start).toBeLessThan(30_000)
  expect(error).toBeInstanceOf(CommunicatorAbortedError)
  expect(error).toMatchObject({
    code: 'SHOAL_COMMUNICATOR_ABORTED',
    operation: 'synchronize',
    reason: 'timeout',
    rank: 0,
    worldSize: 2,
    deviceOrdinal: 0,
    lastOperation: 'ncclAllReduce',
    cause: { code: 'SHOAL_TIMEOUT', timeout: 100 },
  })
  expect((error as Error).message).toMatch(/rank 0 of 2 .*ncclAllReduce.*depends on rank 1/)
  // Another wait of the same communicator ends too, and its work has ended.
  expect(await others[0]).toMatchObject({ operation: 'synchronize', reason: 'timeout' })
  await expect.poll(() => streams[0].isIdle()).toBe(true)
  // Every later call reports the reason.
  expect(communicators[0].disposed).toBe(true)
  expect(errorOf(() => allReduceAlone())).toMatchObject({ operation: 'allReduce', reason: 'timeout' })
  expect(await rejection(communicators[0].synchronize(streams[0]))).toBeInstanceOf(CommunicatorAbortedError)
  await communicators[0].destroy()
  await communicators[0].abort()
})

test('the signal of a wait aborts the communicator', async () => {
  allReduceAlone()
  const abort = new AbortController()
  const waiting = rejection(communicators[0].synchronize(streams[0], { signal: abort.signal }))
  const lost = Object.assign(new Error('rank 1 was lost'), { ranks: [1] })
  setTimeout(() => abort.abort(lost), 50)
  const error = await waiting
  expect(error).toMatchObject({ reason: 'signal', cause: lost, lostRanks: [1] })
  expect((error as Error).message).toContain('Lost: rank 1.')
  expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code: 'SHOAL_COMMUNICATOR_ABORTED', lostRanks: [1] })
})

test('a signal that has already fired rejects a wait before it begins', async () => {
  allReduceAlone()
  const error = await rejection(communicators[0].synchronize(streams[0], { signal: AbortSignal.abort('no') }))
  expect(error).toMatchObject({ reason: 'signal', cause: 'no' })
})

test('a wait that completes in time releases its signal and timeout', async () => {
  const abort = new AbortController()
  allReduceTogether()
  await communicators[0].synchronize(streams[0], { signal: abort.signal, timeout: 50 })
  abort.abort()
  await new Promise((resolve) => setTimeout(resolve, 80))
  expect(communicators[0].disposed).toBe(false)
  allReduceTogether()
  await Promise.all([0, 1].map((rank) => communicators[rank as 0].synchronize(streams[rank as 0])))
})

test('abort() rejects pending waits', async () => {
  allReduceAlone()
  const waiting = rejection(communicators[0].synchronize(streams[0]))
  await communicators[0].abort()
  expect(await waiting).toMatchObject({ reason: 'abort', operation: 'synchronize' })
  // The caller of abort() has disposed of the communicator.
  expect(errorOf(() => allReduceAlone())).toBeInstanceOf(DisposedError)
})

test('an error reported by NCCL aborts the communicator and rejects pending waits', async () => {
  allReduceAlone()
  const waiting = rejection(communicators[0].synchronize(streams[0]))
  const start = performance.now()
  await communicators[1].abort()
  const error = await waiting
  expect(performance.now() - start).toBeLessThan(30_000)
  expect(error).toMatchObject({ reason: 'async-error', cause: { code: 'ncclRemoteError' } })
  expect((error as CommunicatorAbortedError).cause).toBeInstanceOf(StatusError)
})

test('NCCL is not polled, and no timer runs, without a pending wait', async () => {
  allReduceAlone()
  await communicators[1].abort()
  await new Promise((resolve) => setTimeout(resolve, 250))
  expect(communicators[0].disposed).toBe(false)
  expect(communicators[0].asyncError()).toMatchObject({ code: 'ncclRemoteError' })
})

describe('groupOffThread', () => {
  const both = (): void => {
    for (const rank of [0, 1] as const) {
      communicators[rank].allReduce(memory[rank], memory[rank], { stream: streams[rank] })
    }
  }

  test('accepts a signal and a timeout', async () => {
    await groupOffThread(both, { timeout: 10_000, signal: new AbortController().signal })
    await Promise.all([0, 1].map((rank) => communicators[rank as 0].synchronize(streams[rank as 0])))
    expect(memory.flatMap((one) => one.floats())).toEqual([3, 3])
    await expect(groupOffThread(both, { timeout: -1 })).rejects.toThrow(RangeError)
    expect(await rejection(groupOffThread(both, { signal: AbortSignal.abort('no') }))).toMatchObject({
      operation: 'groupOffThread',
      reason: 'signal',
      cause: 'no',
    })
    expect(communicators.map(({ disposed }) => disposed)).toEqual([true, true])
  })

  test('is waited for by synchronize, even if not queued yet', async () => {
    const queued = groupOffThread(both)
    await Promise.all([0, 1].map((rank) => communicators[rank as 0].synchronize(streams[rank as 0])))
    expect(memory.flatMap((one) => one.floats())).toEqual([3, 3])
    await queued
  })
})

describe('destroy and finalize with a missing rank', () => {
  test('end by timeout', async () => {
    allReduceAlone()
    const start = performance.now()
    const error = await rejection(communicators[0].destroy({ timeout: 100 }))
    expect(performance.now() - start).toBeLessThan(30_000)
    expect(error).toMatchObject({ operation: 'destroy', reason: 'timeout' })
    await communicators[0].abort()
  })

  test('finalize ends by timeout', async () => {
    allReduceAlone()
    const error = await rejection(communicators[0].finalize({ timeout: 100 }))
    expect(error).toMatchObject({ operation: 'finalize', reason: 'timeout' })
  })

  test('end when a rank is lost', async () => {
    allReduceAlone()
    const ends = Promise.allSettled([communicators[0].destroy(), communicators[1].abort()])
    const late = new Promise((resolve) => setTimeout(resolve, 5000, 'late'))
    expect(await Promise.race([ends, late])).not.toBe('late')
  })
})

describe("the signal of a communicator's init", () => {
  async function pair(signal: AbortSignal): Promise<[Communicator, Communicator]> {
    const id = UniqueId.create()
    const made = await Promise.all(
      [0, 1].map((rank) => Communicator.initRank({ device: rank, rank, worldSize: 2, id, signal })),
    )
    return connected(made as [Communicator, Communicator])
  }

  test('aborts the communicators later too, even without a pending wait', async () => {
    const abort = new AbortController()
    await Promise.all(communicators.map((one) => one.destroy()))
    communicators = await pair(abort.signal)
    allReduceAlone()
    const waiting = rejection(communicators[0].synchronize(streams[0]))
    const lost = new Error('a rank was lost')
    abort.abort(lost)
    expect(communicators.map(({ disposed }) => disposed)).toEqual([true, true])
    expect(await waiting).toMatchObject({ reason: 'signal', cause: lost })
    expect(errorOf(() => communicators[1].asyncError())).toMatchObject({ reason: 'signal', cause: lost })
    // A new communicator of the remaining ranks works.
    const [survivor] = (await Communicator.initAll([0])) as [Communicator]
    survivor.allReduce(memory[0], memory[0], { stream: streams[0] })
    await survivor.synchronize(streams[0])
    await survivor.destroy()
  })

  test('does not affect an ended communicator', async () => {
    const abort = new AbortController()
    const made = await pair(abort.signal)
    await Promise.all(made.map((one) => one.destroy()))
    abort.abort()
    expect(errorOf(() => made[0].asyncError())).toBeInstanceOf(DisposedError)
  })

  test('is independent of a timeout, which limits only the init', async () => {
    const id = UniqueId.create()
    const start = performance.now()
    const error = await rejection(
      Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id, timeout: 100, config: { blocking: true } }),
    )
    expect(performance.now() - start).toBeLessThan(30_000)
    expect(error).toBeInstanceOf(TimeoutError)
    expect(error).toMatchObject({ timeout: 100, operation: 'Communicator.initRank of rank 0 of 2 on device 0' })
    // Ends the wait of the init's thread. This thread aborts that thread's communicator: it waits inside NCCL until
    // both ranks have joined.
    const late = new BigUint64Array(1)
    expect(withContext(contextOf(1), () => ncclCommInitRank(late, 2, id.toBytes(), 1))).toBe(0)
    expect(ncclCommAbort(late[0] as ncclComm_t)).toBe(0)
    const inTime = await Communicator.initAll([0], { timeout: 60_000 })
    await inTime[0]?.destroy()
  })

  test('ends initAll too', async () => {
    await expect(Communicator.initAll([0, 1], { signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
  })
})

test.each([
  ['an invalid signal', { signal: {} }, TypeError],
  ['a negative limit', { timeout: -1 }, RangeError],
  ['a limit that is NaN', { timeout: Number.NaN }, TypeError],
  ['a limit that is a text', { timeout: '1' }, TypeError],
  ['an endless limit', { timeout: Number.POSITIVE_INFINITY }, RangeError],
  ['no object', 5, TypeError],
])('waits refuse %s', async (_, options, kind) => {
  await expect(communicators[0].synchronize(streams[0], options as never)).rejects.toThrow(kind)
  await expect(communicators[0].ready(options as never)).rejects.toThrow(kind)
  await expect(communicators[0].destroy(options as never)).rejects.toThrow(kind)
  expect(communicators[0].disposed).toBe(false)
})

test('synchronize refuses a stream of another device, other values, and an open group', async () => {
  await expect(communicators[0].synchronize(streams[1])).rejects.toThrow('belongs to device 1')
  await expect(communicators[0].synchronize(undefined as never)).rejects.toThrow(TypeError)
  const inside = group(() => ({ promise: rejection(communicators[0].synchronize(streams[0])) }))
  expect(await inside.promise).toMatchObject({ code: 'SHOAL_BUSY', api: 'Communicator.synchronize' })
})
