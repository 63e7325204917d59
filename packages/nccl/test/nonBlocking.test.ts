import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { putI32, putPointer } from '@shoal/ffi/calls'
import { Communicator, CommunicatorAbortedError, groupOffThread, UniqueId } from '@shoal/nccl'
import { nccl } from '@shoal/nccl-sys'
import { AbortedError, StatusError, TimeoutError } from '@shoal/types'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { errorOf, rejection, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

// Simulates NCCL on a slow network: every call takes some time and completes in the background.

const folder = mkdtempSync(join(tmpdir(), 'shoal-slow-nccl-'))
const remoteError = 6
const config = { blocking: false }

beforeAll(() => {
  const library = join(folder, 'libnccl.so.2')
  const source = fileURLToPath(new URL('fixtures/slowNccl.cc', import.meta.url))
  execFileSync('g++', ['-std=c++17', '-shared', '-fPIC', '-pthread', '-o', library, source])
  startSoftwareDevice()
  process.env['SHOAL_NCCL_LIBRARY'] = library
})

afterAll(() => rmSync(folder, { recursive: true }))

const living = (): number => nccl.bind('slow_living', 0, 0)()

/** Sets the duration of the next calls in milliseconds, and the result of the next one. */
function setNext(duration: number, result = 0): void {
  const call = nccl.bind('slow_set', 0, 2, 'void')
  putI32(0, duration, 'slow_set', 'duration')
  putI32(1, result, 'slow_set', 'result')
  call()
}

/** Returns the calls of NCCL since the last query. */
function asked(): string {
  const text = new Uint8Array(4096)
  const call = nccl.bind('slow_calls', 0, 2, 'void')
  putPointer(0, text, 'slow_calls', 'out')
  putI32(1, text.length, 'slow_calls', 'room')
  call()
  return new TextDecoder().decode(text.subarray(0, text.indexOf(0)))
}

beforeEach(() => {
  setNext(40)
  asked()
})

const one = () => ({ device: 0, rank: 0, worldSize: 2, id: UniqueId.create(), config })
const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

async function eventually(condition: () => boolean): Promise<void> {
  const end = performance.now() + 300_000
  while (!condition()) {
    if (performance.now() > end) throw new Error('it did not come true')
    await pause(5)
  }
}

describe('init of a non-blocking communicator', () => {
  test('resolves when NCCL is ready', async () => {
    const start = performance.now()
    const communicator = await Communicator.initRank(one())
    expect(performance.now() - start).toBeGreaterThan(35)
    expect(communicator.isBlocking).toBe(false)
    await communicator.destroy()
    expect(asked()).toBe('init finalize destroy')
    expect(living()).toBe(0)
  })

  test('resolves also with fake timers of a test framework', async () => {
    const { setImmediate, setTimeout } = globalThis
    const never = (() => ({ unref: () => undefined })) as never
    Object.assign(globalThis, { setImmediate: never, setTimeout: never })
    try {
      await (await Communicator.initRank(one())).destroy()
    } finally {
      Object.assign(globalThis, { setImmediate, setTimeout })
    }
    expect(asked()).toBe('init finalize destroy')
  })

  test('frees the communicator if it fails', async () => {
    setNext(20, remoteError)
    const error = await rejection(Communicator.initRank(one()))
    expect(error).toBeInstanceOf(StatusError)
    expect(error).toMatchObject({ code: 'ncclRemoteError', api: 'ncclCommInitRankConfig' })
    expect(asked()).toBe('init abort')
    expect(living()).toBe(0)
  })

  test('aborts the communicator at once on timeout or signal', async () => {
    setNext(60_000)
    expect(await rejection(Communicator.initRank({ ...one(), timeout: 50 }))).toBeInstanceOf(TimeoutError)
    await eventually(() => living() === 0)
    const abort = new AbortController()
    const waiting = rejection(Communicator.initRank({ ...one(), signal: abort.signal }))
    await pause(30)
    abort.abort('no')
    expect(await waiting).toBeInstanceOf(AbortedError)
    await eventually(() => living() === 0)
    expect(asked()).toBe('init abort init abort')
  })

  test('works for all devices at once if the environment requests non-blocking communicators', async () => {
    const all = await Communicator.initAll([0, 1])
    expect(all.map(({ isBlocking }) => isBlocking)).toEqual([false, false])
    await Promise.all(all.map((communicator) => communicator.abort()))
    setNext(20, remoteError)
    expect(await rejection(Communicator.initAll([0, 1]))).toMatchObject({
      code: 'ncclRemoteError',
      api: 'ncclCommInitAll',
    })
    expect(living()).toBe(0)
    setNext(60_000)
    expect(await rejection(Communicator.initAll([0, 1], { timeout: 50 }))).toBeInstanceOf(TimeoutError)
    await eventually(() => living() === 0)
    expect(asked()).toBe('initAll abort abort initAll abort abort initAll abort abort')
  })

  test('rejects for several ranks if one of them fails', async () => {
    setNext(60_000, remoteError)
    const error = await rejection(Communicator.initAll([0, 1], { config, timeout: 50 }))
    expect(error).toBeInstanceOf(TimeoutError)
    await eventually(() => living() === 0)
  })
})

describe('a non-blocking communicator', () => {
  let communicator: Communicator

  beforeEach(async () => {
    communicator = await Communicator.initRank(one())
    asked()
  })

  test('delays an operation until the previous one is ready', async () => {
    const memory = TestMemory.zeros(0, 'f32', 4)
    const stream = new TestStream(0)
    // Long enough for a busy machine to reach the second call in time.
    setNext(500)
    const start = performance.now()
    communicator.allReduce(memory, memory, { stream })
    expect(communicator.asyncError()).toBeUndefined()
    expect(errorOf(() => communicator.allReduce(memory, memory, { stream }))).toMatchObject({
      code: 'ncclInvalidArgument',
    })
    await communicator.ready()
    expect(performance.now() - start).toBeGreaterThan(450)
    communicator.allReduce(memory, memory, { stream })
    // The wait for the stream starts after the operation is queued on it.
    const again = performance.now()
    await communicator.synchronize(stream)
    expect(performance.now() - again).toBeGreaterThan(30)
    setNext(40)
    await communicator.destroy()
    expect(asked()).toBe('allReduce allReduce allReduce finalize destroy')
    expect(living()).toBe(0)
    for (const it of [memory, stream]) it.dispose()
  })

  test('is aborted if an operation fails later, and pending waits reject', async () => {
    const memory = TestMemory.zeros(0, 'f32', 4)
    setNext(40, remoteError)
    communicator.allReduce(memory, memory, { stream: null })
    const errors = await Promise.all([rejection(communicator.ready()), rejection(communicator.synchronize(null))])
    for (const error of errors) {
      expect(error).toBeInstanceOf(CommunicatorAbortedError)
      expect(error).toMatchObject({ reason: 'async-error', cause: { code: 'ncclRemoteError' } })
    }
    expect(asked()).toBe('allReduce abort')
    expect(living()).toBe(0)
    memory.dispose()
  })

  test('makes calls wait for an operation in progress', async () => {
    const memory = TestMemory.zeros(0, 'f32', 4)
    communicator.allReduce(memory, memory, { stream: null })
    const part = await communicator.split({ color: 0 })
    expect(part).toMatchObject({ rank: 0, worldSize: 2, isBlocking: false })
    communicator.allReduce(memory, memory, { stream: null })
    await Promise.all([communicator.destroy(), part?.destroy()])
    expect(living()).toBe(0)
    memory.dispose()
  })

  test('makes groups and windows wait for an operation in progress', async () => {
    const memory = TestMemory.zeros(0, 'u8', 4096)
    const reduce = (): void => communicator.allReduce(memory, memory, { stream: null })
    reduce()
    const window = await communicator.registerWindow(memory, { symmetric: false })
    reduce()
    await groupOffThread(reduce)
    await window.dispose()
    reduce()
    const second = await communicator.registerWindow(memory, { symmetric: false })
    reduce()
    await communicator.destroy()
    expect(second.disposed).toBe(true)
    expect(asked()).toBe(
      'allReduce register allReduce allReduce deregister allReduce register allReduce deregister finalize destroy',
    )
    expect(living()).toBe(0)
    memory.dispose()
  })

  test('splits with a late handle, none without color, and frees everything on failure', async () => {
    expect(await communicator.split({ color: null })).toBeUndefined()
    setNext(20, remoteError)
    expect(await rejection(communicator.split({ color: 0 }))).toMatchObject({
      operation: 'split',
      reason: 'async-error',
    })
    expect(asked()).toBe('split split abort')
    expect(living()).toBe(0)
  })

  test.each(['timeout', 'signal', 'abort'])('leaves nothing behind if a split is ended by %s', async (how) => {
    setNext(60_000)
    const abort = new AbortController()
    const start = performance.now()
    const options = how === 'timeout' ? { timeout: 50 } : how === 'signal' ? { signal: abort.signal } : {}
    const waiting = rejection(communicator.split({ color: 0, ...options }))
    setTimeout(() => (how === 'signal' ? abort.abort() : how === 'abort' ? void communicator.abort() : undefined), 50)
    expect(await waiting).toMatchObject({ operation: 'split', reason: how })
    // It does not wait for NCCL's pending work.
    expect(performance.now() - start).toBeLessThan(30_000)
    await communicator.abort()
    await eventually(() => living() === 0)
    // The late communicator of the split is aborted too.
    expect(asked()).toBe('split abort abort')
  })

  test('waits in finalize and destroy, which can be aborted', async () => {
    const start = performance.now()
    await communicator.finalize()
    expect(performance.now() - start).toBeGreaterThan(35)
    await communicator.destroy()
    expect(asked()).toBe('finalize destroy')
    const other = await Communicator.initRank(one())
    setNext(60_000)
    const error = await rejection(other.destroy({ timeout: 50 }))
    expect(error).toMatchObject({ operation: 'destroy', reason: 'timeout' })
    expect(asked()).toBe('init finalize abort')
    expect(living()).toBe(0)
  })

  test('rejects all waits on abort()', async () => {
    const memory = TestMemory.zeros(0, 'f32', 4)
    setNext(60_000)
    communicator.allReduce(memory, memory, { stream: null })
    const waits = [
      communicator.ready(),
      communicator.synchronize(null),
      communicator.split({ color: 0 }),
      communicator.suspend(),
    ].map(rejection)
    await communicator.abort()
    for (const error of await Promise.all(waits)) expect(error).toMatchObject({ reason: 'abort' })
    expect(asked()).toBe('allReduce abort')
    expect(living()).toBe(0)
    memory.dispose()
  })

  test('can grow and be joined', async () => {
    const id = UniqueId.create()
    const [grown, joined] = await Promise.all([
      communicator.grow({ worldSize: 3, id }),
      Communicator.joinGrown({ device: 1, rank: 2, worldSize: 3, id, config }),
    ])
    expect([grown, joined].map(({ rank, worldSize }) => [rank, worldSize])).toEqual([
      [0, 3],
      [2, 3],
    ])
    await Promise.all([communicator, grown, joined].map((it) => it.destroy()))
    expect(living()).toBe(0)
  })
})
