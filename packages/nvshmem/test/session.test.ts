import { inspect } from 'node:util'
import { type InitOptions, nvshmemStatus, Session, type SymmetricBuffer, UniqueId } from '@shoal/nvshmem'
import { BusyError, streamProtocol } from '@shoal/types'
import { beforeAll, describe, expect, test } from 'vitest'
import { resultsOf, runJob } from './fixtures/job.js'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
let floats: SymmetricBuffer<'f32'>
let longs: SymmetricBuffer<'u64'>
const array = new Float32Array(8)

beforeAll(async () => {
  floats = await pe.session.allocate('f32', 8)
  longs = await pe.session.allocate('u64', 4, { zeroed: true })
})

describe('Session', () => {
  test('has a PE, a number of PEs, a device, a thread level and teams, and prints one line', () => {
    const { session } = pe
    expect(session).toMatchObject({ pe: 0, peCount: 1, deviceOrdinal: 0, threadLevel: 'serialized', disposed: false })
    expect([session.world.peCount, session.waitingFor, session.stuckIn]).toEqual([1, undefined, undefined])
    expect(inspect(session)).toBe('Session { pe: 0, peCount: 1, deviceOrdinal: 0 }')
    expect(nvshmemStatus()).toBe('initialized')
  })

  test('refuses blocking calls with BusyError while busy, and stays usable', async () => {
    const { session } = pe
    const barrier = session.barrierAll()
    expect(session.waitingFor).toBe('Session.barrierAll')
    const busy = (): void => session.putSync(floats, array, { pe: 0 })
    expect(busy).toThrow(BusyError)
    expect(busy).toThrow(
      'Session.putSync: the NVSHMEM session is busy with Session.barrierAll; await Session.barrierAll first.',
    )
    await barrier
    expect(busy).not.toThrow()
  })

  test('makes no call if its signal had already fired', async () => {
    const wait = { signal: AbortSignal.abort(new Error('enough')) }
    await expect(pe.session.barrierAll(wait)).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
    expect(pe.session.waitingFor).toBeUndefined()
  })

  test('accepts undefined options and options without a prototype, and rethrows errors of getters', async () => {
    const { session } = pe
    await session.barrierAll(undefined)
    await session.barrierAll({ timeout: undefined, signal: undefined })
    await session.barrierAll(Object.assign(Object.create(null) as object, { timeout: 2 ** 31 - 1 }))
    const failing = {
      get pe(): number {
        throw new Error('no PE today')
      },
    }
    await expect(session.put(floats, array, failing)).rejects.toThrow('no PE today')
    expect(() => session.putSync(floats, array, failing)).toThrow('no PE today')
    await session.barrierAll()
  })
})

describe('Session.init', () => {
  const id = UniqueId.fromBytes(Uint8Array.from({ length: 128 }, (_, at) => [128, 0, 1, 0][at] ?? 9))
  const good = { device: 0, rank: 0, worldSize: 1, id }
  const init =
    (override: object, base: object = good): (() => unknown) =>
    () =>
      Session.init({ ...base, ...override } as InitOptions)
  const timeout = 'must be a number of milliseconds from 0 to 2147483647, not'
  refuses(pe, [
    [
      'no options',
      () => Session.init(anything(undefined)),
      'Session.init: options must be a plain object such as { device,',
    ],
    ['an unknown option', init({ size: 2 }), /options must have only the keys device, rank, .*, not 'size'/],
    ['options that are an instance of a class', () => Session.init(anything(new URL('file:///'))), TypeError],
    ['an invalid device', init({ device: 'gpu' }), /Session.init: device must be an object with/],
    ['a negative device', init({ device: -1 }), RangeError],
    ['a rank beyond the size', init({ rank: 1 }), 'Session.init: rank must be an integer from 0 to 0, not 1'],
    ['a negative rank', init({ rank: -1 }), RangeError],
    ['a rank that is no number', init({ rank: '0' }), TypeError],
    ['a size of zero', init({ worldSize: 0 }), 'worldSize must be an integer from 1'],
    ['no id', init({ id: undefined }), 'Session.init: id must be a UniqueId, not undefined'],
    [
      'bytes instead of an id',
      init({ id: new Uint8Array(128) }),
      'id must be a UniqueId, not an object of class Uint8Array',
    ],
    ['a negative timeout', init({ timeout: -1 }), `Session.init: timeout ${timeout} -1`],
    ['a timeout that timers do not have', init({ timeout: 2 ** 31 }), `Session.init: timeout ${timeout} 2147483648`],
    [
      'a default timeout that is no number',
      init({ defaultTimeout: 'long' }),
      `Session.init: defaultTimeout ${timeout} 'long'`,
    ],
    ['an invalid signal', init({ signal: {} }), /signal must be an AbortSignal/],
    [
      'an invalid thread level',
      init({ threadLevel: 'all' }),
      /threadLevel must be 'single', .* or 'multiple', not 'all'/,
    ],
    ['an invalid launcher', init({ launcher: 'torchrun' }), /launcher must be 'mpi', 'pmi'.* not 'torchrun'/],
    ['a communicator for PMI', init({ launcher: 'pmi', mpiCommunicator: 1n }), /needs the launcher 'mpi'/],
    ['a communicator without a launcher', init({ mpiCommunicator: 1n }, { device: 0 }), /needs the launcher 'mpi'/],
    ['a communicator that is no address', init({ launcher: 'mpi', mpiCommunicator: 1 }), TypeError],
    ['a communicator at no address', init({ launcher: 'mpi', mpiCommunicator: 0n }), /address of an MPI_Comm/],
    ['a second session', init({}), /is running; a process has one session/],
    ['a second session by the environment', init({}, { device: 0 }), /is running; a process has one session/],
  ])

  test('aborted before it began does not block another init', async () => {
    expect(await resultsOf('session.abortedBefore', 1)).toEqual([{ error: 'SHOAL_ABORTED', pe: 0 }])
  })

  test('without id and launcher uses the environment, and leaves the environment unchanged', async () => {
    const results = await resultsOf('session.byEnvironment', 2, { options: { job: `${process.pid}-${Date.now()}` } })
    expect(results).toEqual([
      { place: [0, 2], got: [1], variables: [] },
      { place: [1, 2], got: [0], variables: [] },
    ])
  })
})

describe('put and get of a Session', () => {
  const put = (target: unknown, source: unknown, options: unknown): (() => unknown) => {
    return () => pe.session.put(anything(target), anything(source), anything(options))
  }
  const on = (options: object, source?: unknown): (() => unknown) => {
    return () => pe.session.put(floats, anything(source ?? array), anything({ pe: 0, ...options }))
  }
  const host = (override: object): object => pe.memory({ byteLength: 32, ...override })
  refuses(pe, [
    [
      'no options',
      () => put(floats, array, undefined)(),
      'Session.put: options must be a plain object such as { pe, count',
    ],
    ['an unknown option', on({ cuont: 3 }), "options must have only the keys pe, count, signal, timeout, not 'cuont'"],
    [
      'a stream where none is taken',
      () => pe.session.putNonBlocking(floats, floats, anything({ pe: 0, stream: null })),
      "Session.putNonBlocking: options must have only the keys pe, count, not 'stream'",
    ],
    ['a PE that is not there', on({ pe: 1 }), 'Session.put: pe must be an integer from 0 to 0, not 1'],
    ['a negative PE', on({ pe: -1 }), RangeError],
    ['half a PE', on({ pe: 0.5 }), TypeError],
    ['a PE that is no number', on({ pe: '0' }), TypeError],
    ['a target that is not symmetric', () => put(pe.memory(), array, { pe: 0 })(), /target must be symmetric memory/],
    ['no target', put(undefined, array, { pe: 0 }), /target must be symmetric memory/],
    [
      'a source that is not symmetric',
      () => pe.session.get(array, anything(pe.memory()), { pe: 0 }),
      /source must be symmetric/,
    ],
    [
      'an array of another type',
      on({}, new Float64Array(8)),
      'Session.put: source must be a Float32Array (elements of f32)',
    ],
    ['an array of another length', on({}, array.subarray(1)), /target has 32 bytes, source 28/],
    [
      'a range beyond the memory of the peer',
      on({ count: 9 }, new Float32Array(9)),
      /9 elements of f32 are 36 bytes, target has 32/,
    ],
    ['a range beyond the local memory', on({ count: 4 }, array.subarray(5)), /source has 12/],
    ['a negative count', on({ count: -1 }), RangeError],
    ['half a count', on({ count: 1.5 }), TypeError],
    ['memory of another dtype', () => on({}, host({ dtype: 'i32' }))(), /elements of i32, target of f32/],
    ['memory of another device', () => on({}, host({ deviceOrdinal: 1 }))(), /belongs to device 1/],
    ['memory of another context', () => on({}, host({ context: 5n }))(), /another context/],
    ['memory that is not aligned', () => on({}, host({ address: 6n }))(), /not aligned/],
    [
      'memory that may only be read',
      () => pe.session.get(anything(host({ readOnly: true })), floats, { pe: 0 }),
      /read-only/,
    ],
    [
      'an array without an awaited call',
      () => pe.session.putNonBlocking(floats, anything(array), { pe: 0 }),
      /stays in place/,
    ],
    [
      'an array on a stream',
      () => pe.session.getOnStream(anything(array), floats, { pe: 0, stream: null }),
      /stays in place/,
    ],
    [
      'a stream with an invalid handle',
      () => {
        const stream = { [streamProtocol]: { version: 0, handle: 5, deviceOrdinal: 0, context: 0n } }
        return pe.session.putOnStream(floats, floats, { pe: 0, stream: anything(stream) })
      },
      'Session.putOnStream: stream.handle must be a bigint, not 5',
    ],
    ['an invalid stream', () => pe.session.putOnStream(floats, floats, { pe: 0, stream: anything(7) }), TypeError],
    ['an invalid timeout', on({ timeout: '1' }), TypeError],
    ['an invalid signal', on({ signal: 1 }), TypeError],
    ['a stride of zero', () => pe.session.putStrided(floats, array, { pe: 0, count: 2, targetStride: 0 }), RangeError],
    [
      'strides beyond the target',
      () => pe.session.putStrided(floats, array, { pe: 0, count: 4, targetStride: 3 }),
      /reach over 10 elements, target has 8/,
    ],
    [
      'strides beyond the source',
      () => pe.session.getStrided(array, floats, { pe: 0, count: 4, sourceStride: 3 }),
      /source has 8/,
    ],
    ['strides without a count', () => pe.session.putStrided(floats, array, anything({ pe: 0 })), TypeError],
    [
      'an element that is not there',
      () => pe.session.getElement(floats, { pe: 0, index: 8 }),
      'index must be an integer from 0 to 7, not 8',
    ],
    ['a negative element', () => pe.session.putElement(floats, 1, { pe: 0, index: -1 }), RangeError],
    ['a value of another type', () => pe.session.putElement(floats, anything('1'), { pe: 0 }), TypeError],
    ['a value that does not fit', () => pe.session.putElement(longs, -1n, { pe: 0 }), RangeError],
  ])

  test('refuse the same arguments when blocking', () => {
    const { session } = pe
    expect(() => session.putSync(floats, array, { pe: 1 })).toThrow(RangeError)
    expect(() => session.putSync(floats, array, anything({ pe: 0, timeout: 1 }))).toThrow("pe, count, not 'timeout'")
    expect(() => session.getSync(array.subarray(1), floats, { pe: 0 })).toThrow(RangeError)
    expect(() => session.getElementSync(floats, { pe: 1 })).toThrow(RangeError)
  })

  test('on a stream refuse an unknown option even if the rest is repeated', async () => {
    const options = { pe: 0, stream: null }
    await pe.session.putOnStream(floats, floats, options)
    const wrong = pe.session.putOnStream(floats, floats, anything({ ...options, cuont: 1 }))
    await expect(wrong).rejects.toThrow(
      "Session.putOnStream: options must have only the keys pe, count, stream, not 'cuont'",
    )
  })
})

describe('waiting and ending of a Session', () => {
  const aborted = { signal: AbortSignal.abort(new Error('enough')) }
  refuses(pe, [
    [
      'a number of milliseconds alone',
      () => pe.session.barrierAll(anything(1000)),
      'Session.barrierAll: options must be a plain object such as { signal, timeout }, not 1000',
    ],
    ['a stream for a barrier of the host', () => pe.session.barrierAll(anything({ stream: null })), /not 'stream'/],
    ['finalize with an invalid timeout', () => pe.session.finalize({ timeout: -1 }), RangeError],
    ['finalize with invalid options', () => pe.session.finalize(anything('now')), /Session.finalize: options must/],
    ['finalize with a signal that has fired', () => pe.session.finalize(aborted), /Session.finalize was aborted/],
    ['a status that no process ends with', () => pe.session.globalExit(anything(256)), RangeError],
  ])
})

describe('a Session of several PEs', () => {
  test.for([1, 2, 4])('starts %i PEs, which put to and get from each other', async (worldSize) => {
    const results = await resultsOf('session.ring', worldSize)
    for (const [rank, result] of results.entries()) {
      const [before, after] = [(rank + worldSize - 1) % worldSize, (rank + 1) % worldSize]
      expect(result).toEqual({
        place: [rank, worldSize, 'serialized', rank, worldSize],
        status: 'initialized',
        mine: [before, before, before, before],
        theirs: [(after + worldSize - 1) % worldSize, rank, rank, rank].map(() => rank),
      })
    }
  })

  test('keeps the order of unawaited calls', async () => {
    for (const result of await resultsOf('session.order', 2)) {
      expect(result).toEqual({ result: [1, 2, 3], waitingFor: 'Session.barrierAll' })
    }
  })

  test('does not block the event loop while a PE waits for another', async () => {
    const [waiting] = await resultsOf<{ waited: number; ticks: number; longest: number }>('session.eventLoop', 2, {
      options: { late: 1500 },
    })
    expect(waiting?.waited).toBeGreaterThan(800)
    // A blocked event loop would have no turns during the wait.
    expect(waiting?.ticks).toBeGreaterThan(10)
    expect(waiting?.longest).toBeLessThan((waiting?.waited ?? 0) / 2)
  })

  test('is refused while another session exists, and after one with another id', async () => {
    for (const result of await resultsOf('session.second', 2)) {
      expect(result).toMatchObject({
        live: { error: 'SHOAL_NVSHMEM_SESSION_EXISTS' },
        ended: { error: 'SHOAL_NVSHMEM_SESSION_EXISTS' },
        use: [{ error: 'SHOAL_DISPOSED' }, { error: 'SHOAL_DISPOSED' }],
        disposed: true,
      })
    }
  })

  test('cannot follow another session, even with the same id', async () => {
    for (const result of await resultsOf('session.again', 2)) {
      expect(result).toMatchObject({ error: 'SHOAL_NVSHMEM_SESSION_EXISTS' })
    }
  })

  test('whose signal has fired makes no waiting call, blocking or not, and can be abandoned', async () => {
    const [result] = await resultsOf('session.signal', 1)
    const aborted = { error: 'SHOAL_ABORTED' }
    expect(result).toMatchObject({
      refused: Array.from({ length: 16 }, () => aborted),
      looked: ['nothing', 'nothing'],
      disposed: [false, false],
      after: [true, 'nothing', 'nothing'],
    })
  })

  test('ends all processes by globalExit, without their exit handlers', async () => {
    const said: string[] = []
    const ends = await runJob('session.globalExit', 2, { onSaid: (_, text) => said.push(text) })
    expect(ends.map(({ code }) => code)).toEqual([3, 3])
    expect(said).toEqual([])
  })
})
