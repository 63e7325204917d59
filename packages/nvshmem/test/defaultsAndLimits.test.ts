import { withContext } from '@shoal/cuda-sys'
import {
  type CUdeviceptr,
  type CUstream,
  cuMemsetD8Async,
  cuStreamCreate,
  cuStreamDestroy,
} from '@shoal/cuda-sys/driver'
import { Device, Stream } from '@shoal/driver'
import { nvshmemStatusText, Session, type SymmetricBuffer, UniqueId } from '@shoal/nvshmem'
import { memoryProtocol, streamProtocol, TimeoutError } from '@shoal/types'
import { beforeAll, describe, expect, test } from 'vitest'
import { nativeMemoryKept } from '../../ffi/test/support/nativeMemoryKept.js'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const nonBlocking = 1
const pe = onePe()
let target: SymmetricBuffer<'f32'>
let word: SymmetricBuffer<'u64'>

beforeAll(async () => {
  target = await pe.session.allocate('f32', 4, { zeroed: true })
  word = await pe.session.allocate('u64', 1, { zeroed: true })
})

test('a signal without an operation is set instead of added', async () => {
  const { session } = pe
  using stream = Stream.create(Device.get(0))
  const value = async (): Promise<bigint | undefined> => {
    await stream.synchronize()
    return (await word.toArray())[0]
  }
  for (const name of ['putSignalOnStream', 'putSignalNonBlockingOnStream'] as const) {
    await session[name](target, target, { pe: 0, count: 0, signal: word, value: 5, op: 'add', stream })
    await session[name](target, target, { pe: 0, count: 0, signal: word, value: 7, stream })
    expect(await value()).toBe(7n)
  }
  await session.signals.signalOnStream(word, { pe: 0, value: 9, op: 'add', stream })
  expect(await value()).toBe(16n)
  await session.signals.signalOnStream(word, { pe: 0, value: 3, stream })
  expect(await value()).toBe(3n)
})

test('the timeout of a queued call ends only that wait, and does not mark the session as stuck', async () => {
  const { session } = pe
  const { handle } = Device.get(0).primaryContext
  const out = new BigUint64Array(1)
  withContext(handle, () => cuStreamCreate(out, nonBlocking))
  const stream = out[0] as CUstream
  word.fillSync(0)
  // The session's thread copies in order with the default stream, which waits for a signal.
  await session.signals.waitForSignalOnStream(word, { comparison: '==', value: 1, stream: null })
  const underWay = target.toArray()
  const limited = { timeout: 20 }
  const barrier = session.barrierAll(limited).catch((error: unknown) => error)
  const put = session.put(target, Float32Array.of(1, 2, 3, 4), { pe: 0, ...limited }).catch((error: unknown) => error)
  const error = await barrier
  expect(error).toBeInstanceOf(TimeoutError)
  expect(error).toMatchObject({ operation: 'Session.barrierAll', timeout: 20 })
  expect(await put).toMatchObject({ name: 'TimeoutError', operation: 'Session.put', timeout: 20 })
  // The copy is in progress, and later calls still wait for their turn.
  const last = session.barrierAll()
  withContext(handle, () => cuMemsetD8Async(word.address as CUdeviceptr, 1, 1, stream))
  expect([...(await underWay)]).toEqual([0, 0, 0, 0])
  await last
  // A call that was cancelled before its turn still runs in its turn, because other PEs may depend on it.
  expect([...(await target.toArray())]).toEqual([1, 2, 3, 4])
  withContext(handle, () => cuStreamDestroy(stream))
})

const int = 2 ** 31 - 1
const exact = '2^53 - 1'
const floats = Float32Array.of(1, 2, 3, 4)
const transfers = ['put', 'get', 'putSync', 'getSync', 'putStrided', 'getStrided', 'putElement', 'getElement'] as const
const onStreams = ['putOnStream', 'getOnStream', 'putNonBlockingOnStream', 'putStridedOnStream'] as const
const element = { pe: 0, signal: anything(undefined), value: 1n, stream: null }

describe('number arguments have their limits and their names in errors', () => {
  refuses(pe, [
    ...[...transfers, ...onStreams].map((name): [string, () => unknown, string] => [
      `Session.${name} with another PE`,
      () => (pe.session[name] as (...words: unknown[]) => unknown)(...sidesOf(name), optionsOf(name, { pe: 1 })),
      `Session.${name}: pe must be an integer from 0 to 0, not 1`,
    ]),
    ...[...transfers.slice(0, 6), ...onStreams].map((name): [string, () => unknown, string] => [
      `Session.${name} with less than no elements`,
      () => (pe.session[name] as (...words: unknown[]) => unknown)(...sidesOf(name), optionsOf(name, { count: -1 })),
      `Session.${name}: count must be an integer from 0 to ${exact}, not -1`,
    ]),
    ...(['targetStride', 'sourceStride'] as const).map((stride): [string, () => unknown, string] => [
      `no ${stride}`,
      () => pe.session.putStrided(target, floats, { pe: 0, count: 1, [stride]: 0 }),
      `Session.putStrided: ${stride} must be an integer from 1 to ${exact}, not 0`,
    ]),
    [
      'a signal to another PE',
      () => pe.session.putSignalOnStream(target, target, { ...element, signal: word, pe: -1 }),
      'Session.putSignalOnStream: pe must be an integer from 0 to 0, not -1',
    ],
    [
      'an element that is not there',
      () => pe.session.putElement(target, 1, { pe: 0, index: 4 }),
      'Session.putElement: index must be an integer from 0 to 3, not 4',
    ],
    [
      'a signal alone to another PE',
      () => pe.session.signals.signalOnStream(word, { pe: 1, value: 1n, stream: null }),
      'Signals.signalOnStream: pe must be an integer from 0 to 0, not 1',
    ],
    [
      'fewer than no signals',
      () =>
        pe.session.signals.waitUntilAllOnStream(word, {
          ...{ comparison: '==', value: 1n, count: -1, stream: null },
        }),
      `Signals.waitUntilAllOnStream: count must be an integer from 0 to ${exact}, not -1`,
    ],
    [
      'an atomic of another PE',
      () => pe.session.atomics.fetch(word, { pe: 1 }),
      'Session.atomics.fetch: pe must be an integer from 0 to 0, not 1',
    ],
    [
      'a length below none',
      () => pe.session.allocate('f32', -1),
      `Session.allocate: length must be an integer from 0 to ${Math.floor(Number.MAX_SAFE_INTEGER / 4)}, not -1`,
    ],
    [
      'to resize to less than nothing',
      () => target.resize(-1),
      `SymmetricBuffer.resize: length must be an integer from 0 to ${Math.floor(Number.MAX_SAFE_INTEGER / 4)}, not -1`,
    ],
    [
      'no alignment',
      () => pe.session.allocate('f32', 1, { alignment: 0 }),
      `Session.allocate: alignment must be an integer from 1 to ${2 ** 30}, not 0`,
    ],
    ['another PE', () => target.peer(1), 'SymmetricBuffer.peer: pe must be an integer from 0 to 0, not 1'],
    [
      'a slice from before the start',
      () => target.slice(-5),
      'SymmetricBuffer.slice: start must be an integer from -4 to 4, not -5',
    ],
    [
      'a slice to before the start',
      () => target.subarray(0, -5),
      'SymmetricBuffer.subarray: end must be an integer from -4 to 4, not -5',
    ],
    ...['splitStrided', 'split2d'].map((name): [string, () => unknown, string] => [
      `Team.${name} with less than no contexts`,
      () => pe.session.world[name as 'split2d'](anything({ ...splits[name], contexts: -1 })),
      `Team.${name}: contexts must be an integer from 0 to ${int}, not -1`,
    ]),
    ...(
      [
        ['splitStrided', 'start', 1, '0 to 0'],
        ['splitStrided', 'size', 0, '1 to 1'],
        ['splitStrided', 'stride', -int - 1, `${-int} to ${int}`],
        ['split2d', 'xRange', 0, `1 to ${int}`],
      ] as const
    ).map(([name, option, value, limits]): [string, () => unknown, string] => [
      `Team.${name} with ${option} ${value}`,
      () => pe.session.world[name](anything({ ...splits[name], [option]: value })),
      `Team.${name}: ${option} must be an integer from ${limits}, not ${value}`,
    ]),
    [
      'a team of no PEs',
      () => pe.session.createTeam({ id: 1n, peCount: 0, pe: 0 }),
      'Session.createTeam: peCount must be an integer from 1 to 1, not 0',
    ],
    [
      'a number beyond its team',
      () => pe.session.createTeam({ id: 1n, peCount: 1, pe: 1 }),
      'Session.createTeam: pe must be an integer from 0 to 0, not 1',
    ],
    [
      'a number that the team has not',
      () => pe.session.world.translate(1, pe.session.world),
      'Team.translate: pe must be an integer from 0 to 0, not 1',
    ],
    [
      'a count below none of a collective',
      () => pe.session.world.fcollect(target, target, { count: -1 }),
      `Team.fcollect: count must be an integer from 0 to ${exact}, not -1`,
    ],
    ...(
      [
        [{ grid: 0 }, 'grid[0]', `1 to ${int}, not 0`],
        [{ grid: [1, 0] }, 'grid[1]', `1 to ${int}, not 0`],
        [{ block: [1, 1, 0] }, 'block[2]', '1 to 1024, not 0'],
        [{ sharedMemory: -1 }, 'sharedMemory', `0 to ${int}, not -1`],
      ] as const
    ).map(([options, name, limits]): [string, () => unknown, string] => [
      `a launch with ${JSON.stringify(options)}`,
      () => pe.session.deviceCode.launchCollectively(1n, { grid: 1, block: 1, stream: null, ...options }),
      `DeviceCode.launchCollectively: ${name} must be an integer from ${limits}`,
    ]),
    [
      'no threads',
      () => pe.session.deviceCode.blocksPerMultiprocessor(1n, 0),
      'DeviceCode.blocksPerMultiprocessor: threads must be an integer from 1 to 1024, not 0',
    ],
    [
      'less than no shared memory',
      () => pe.session.deviceCode.blocksPerMultiprocessor(1n, 1, -1),
      `DeviceCode.blocksPerMultiprocessor: sharedMemory must be an integer from 0 to ${int}, not -1`,
    ],
    [
      'no PEs',
      () => Session.init({ device: 0, rank: 0, worldSize: 0, id: UniqueId.create() }),
      `Session.init: worldSize must be an integer from 1 to ${int}, not 0`,
    ],
    [
      'a rank beyond the PEs',
      () => Session.init({ device: 0, rank: 2, worldSize: 2, id: UniqueId.create() }),
      'Session.init: rank must be an integer from 0 to 1, not 2',
    ],
    [
      'a status beyond an int',
      () => nvshmemStatusText(2 ** 31),
      `nvshmemStatusText: status must be an integer from ${-int - 1} to ${int}, not ${int + 1}`,
    ],
    [
      'the status of a process beyond a byte',
      () => pe.session.globalExit(256),
      'Session.globalExit: status must be an integer from 0 to 255, not 256',
    ],
  ])
})

const revoked = (): never => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return anything(proxy)
}
const stream = (lie: object): (() => unknown) => {
  const described = { version: 0, handle: 1n, deviceOrdinal: -1, context: 0n, ...lie }
  return () => pe.session.barrierAllOnStream({ stream: anything({ [streamProtocol]: described }) })
}
const put = (lie: object): (() => unknown) => {
  return () => pe.session.put(target, pe.memory({ byteLength: 16, ...lie } as never), { pe: 0 })
}

describe('a call with forged memory or streams', () => {
  const mine = new Error('mine')
  const throwing = (protocol: symbol): never =>
    anything(Object.defineProperty({}, protocol, { get: () => fail(mine), enumerable: true }))
  refuses(pe, [
    ['an unknown version of the memory protocol', put({ version: 2 }), 'version must be 0 or 1, not 2'],
    ['an address that is not a bigint', put({ address: 5 }), 'source.address must be a bigint, not 5'],
    ['no answer', () => pe.session.put(target, anything({ [memoryProtocol]: undefined }), { pe: 0 }), 'an object'],
    ['null for an answer', () => pe.session.put(target, anything({ [memoryProtocol]: null }), { pe: 0 }), 'an object'],
    ['gaps', put({ dtype: 'f32', shape: [2], strides: [2] }), 'source must be contiguous'],
    ['strides alone', put({ dtype: 'f32', strides: [1] }), 'source.shape must be an array'],
    ['an invalid stream', put({ stream: 0n }), 'source.stream must be a CUstream'],
    ['another device', put({ deviceOrdinal: 1 }), 'source belongs to device 1, the session to device 0'],
    ['another context', put({ context: 5n }), 'source belongs to another context of device 0'],
    ['another dtype', put({ dtype: 'i32' }), 'source has elements of i32, target of f32; both must be the same'],
    ['another length', put({ byteLength: 12 }), 'target has 16 bytes, source 12'],
    [
      'elements that are not aligned',
      () => put({ address: pe.memory()[memoryProtocol].address + 2n })(),
      'Session.put: source is not aligned for f32',
    ],
    [
      'memory to be written to that is read-only',
      () => pe.session.get(pe.memory({ byteLength: 16, readOnly: true }), target, { pe: 0 }),
      'Session.get: target is read-only memory',
    ],
    ['memory that was revoked', () => pe.session.put(target, revoked(), { pe: 0 }), TypeError],
    ['memory whose getter throws', () => pe.session.put(target, throwing(memoryProtocol), { pe: 0 }), mine],
    ['a version of a stream that is not known', stream({ version: 1 }), 'version must be 0, the only one known here'],
    ['a handle that is no bigint', stream({ handle: 5 }), 'stream.handle must be a bigint, not 5'],
    ['a stream of another device', stream({ deviceOrdinal: 1 }), 'the stream belongs to device 1, the session to'],
    ['a stream of another context', stream({ context: 5n }), 'the stream belongs to another context of device 0'],
    ['a stream that was revoked', () => pe.session.barrierAllOnStream({ stream: revoked() }), 'stream must be'],
    ['a stream whose getter throws', () => pe.session.barrierAllOnStream({ stream: throwing(streamProtocol) }), mine],
    ['an invalid stream', () => pe.session.barrierAllOnStream(anything({ stream: 5 })), 'stream must be'],
    [
      'an array that a stream would read later',
      () => pe.session.putOnStream(target, anything(floats), { pe: 0, stream: null }),
      'an ordinary Float32Array works only for calls that wait for the transfer',
    ],
  ])

  test('accepts memory that claims to be anywhere', async () => {
    for (const place of [{}, { deviceOrdinal: -1, context: 0n }, { dtype: 'f32', readOnly: true, strides: null }]) {
      await put(place)()
    }
    await stream({})()
    await stream({ deviceOrdinal: 0 })()
  })
})

function fail(error: Error): never {
  throw error
}

const splits: { readonly [name: string]: object } = { splitStrided: { start: 0, size: 1 }, split2d: { xRange: 1 } }

/** Returns the two operands of a call: target and source, or an element and its value. */
function sidesOf(name: string): unknown[] {
  if (name.includes('Element')) return name.startsWith('put') ? [target, 1] : [target]
  const local = name.endsWith('Stream') ? target : floats
  return name.startsWith('put') ? [target, local] : [local, target]
}

function optionsOf(name: string, more: object): object {
  const count = name.includes('Strided') ? { count: 1 } : {}
  return { pe: 0, ...count, ...(name.endsWith('Stream') ? { stream: null } : {}), ...more }
}

test('native memory of calls is freed, also if the calls are refused', async () => {
  const { session } = pe
  const kept = await nativeMemoryKept(async () => {
    const strided = await session.world.splitStrided({ start: 0, size: 1, contexts: 1 })
    const { x, y } = await session.world.split2d({ xRange: 1 })
    const made = await session.createTeam({ id: await session.teamUniqueId(), peCount: 1, pe: 0 })
    await strided?.config()
    for (const team of [strided, x, y, made]) await team?.dispose()
    await session.put(target, floats, { pe: 0 })
    await session.get(floats, target, { pe: 0 })
    await session.putStrided(target, floats, { pe: 0, count: 2, targetStride: 2 })
    await session.getStrided(floats, target, { pe: 0, count: 2 })
    session.getStridedSync(floats, target, { pe: 0, count: 2 })
    await session.putElement(target, 1, { pe: 0 })
    await session.getElement(target, { pe: 0 })
    await session.getElementOnStream(target, { pe: 0, stream: null })
    await session.signals.fetch(word)
    await session.atomics.fetchAdd(word, 1n, { pe: 0 })
    for (const copies of [await target.copyFrom(floats), target.copyFromSync(floats)]) {
      await copies.copyTo(floats)
      copies.copyToSync(floats)
      await copies.fill(1)
      copies.fillSync(2)
    }
    const barrier = session.barrierAll()
    const waits = [session.put(target, floats, { pe: 0, timeout: 60_000 }), target.copyTo(floats), barrier]
    await Promise.all(waits)
    const signal = AbortSignal.abort()
    await expect(session.world.splitStrided({ start: 0, size: 1, signal })).rejects.toThrow('aborted')
    const wrong = { grid: 1, block: 1, stream: null }
    expect(() => session.deviceCode.launchCollectively(4096n, wrong, anything({ dtype: 'f33', value: 1 }))).toThrow()
    expect(() => session.deviceCode.launchCollectively(4096n, anything({ ...wrong, stream: 5 }))).toThrow(TypeError)
  })
  expect(kept).toEqual([])
})

test('a repeated transfer still refuses wrong options', async () => {
  const { session } = pe
  using stream = Stream.create(Device.get(0))
  const source = await session.allocate('f32', 4)
  class Options {
    readonly pe = 0
    readonly stream = stream
  }
  for (const name of ['putOnStream', 'getOnStream', 'putNonBlockingOnStream', 'getNonBlockingOnStream'] as const) {
    const twice = async (options: object): Promise<void> => {
      await session[name](target, source, { pe: 0, stream })
      await session[name](target, source, { pe: 0, stream, count: undefined })
      await session[name](target, source, options as never)
    }
    for (const [wrong, words] of [
      [{ pe: 0, stream, cuont: 2 }, "options must have only the keys pe, count, stream, not 'cuont'"],
      [{ pe: 0, stream, cuont: undefined }, "not 'cuont'"],
      [new Options(), 'not an object of class Options'],
      [Object.create({ pe: 0, stream }), 'options must be a plain object'],
    ] as const) {
      await expect(twice(wrong), name).rejects.toThrow(`Session.${name}: `)
      await expect(twice(wrong), name).rejects.toThrow(words)
    }
    await twice({ stream, pe: 0 })
    await expect(twice({ pe: 1, stream })).rejects.toThrow('pe must be')
    await expect(twice({ pe: 0, stream, count: 5 })).rejects.toThrow('5 elements of f32 are 20 bytes')
  }
  await stream.synchronize()
  await source.dispose()
})

test('omitted offsets and counts default to 0 and the whole buffer, and a view may count from the end', async () => {
  const { session } = pe
  await target.copyFrom(floats.fill(0).map((_, index) => index + 1) as Float32Array<ArrayBuffer>)
  expect([...target.slice(-3, -1).toArraySync()]).toEqual([2, 3])
  expect([...target.subarray(-2).toArraySync()]).toEqual([3, 4])
  expect([...target.subarray().toArraySync()]).toEqual([1, 2, 3, 4])
  expect(await session.getElement(target, { pe: 0 })).toBe(1)
  await session.putElement(target, 9, { pe: 0 })
  expect([...target.toArraySync()]).toEqual([9, 2, 3, 4])
  expect(await target.multicastAddress(session.world)).toBeUndefined()
})
