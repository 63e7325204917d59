import { withContext } from '@shoal/cuda-sys'
import { cuDevicePrimaryCtxRetain, cuInit, cuMemAlloc } from '@shoal/cuda-sys/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import {
  type InitOptions,
  nvshmemStatus,
  Session,
  SessionBusyError,
  type SymmetricBuffer,
  type Team,
  UniqueId,
} from '@shoal/nvshmem'
import { DisposedError, type MemoryLike, memoryProtocol } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

delete process.env['SHOAL_NVSHMEM_LIBRARY']
useSoftwareDevice({ devices: 2 })

let session: Session
let floats: SymmetricBuffer<'f32'>
let words: SymmetricBuffer<'u64'>
let context: bigint
let device: MemoryLike

/** Memory as a third party describes it, true or not. */
function memory(override: object = {}): MemoryLike {
  const range = device[memoryProtocol]
  return { [memoryProtocol]: { ...range, ...override } } as MemoryLike
}

beforeAll(async () => {
  cuInit(0)
  const out = new BigUint64Array(1)
  cuDevicePrimaryCtxRetain(out, 0 as never)
  context = out[0] as bigint
  withContext(context, () => cuMemAlloc(out, 64))
  device = { [memoryProtocol]: { version: 0, address: out[0] as bigint, byteLength: 64, deviceOrdinal: 0, context } }
  const options = { device: 0, rank: 0, worldSize: 1, id: UniqueId.create() }
  // A start that was given up before it began does not stand in the way of another.
  await expect(Session.init({ ...options, signal: AbortSignal.abort('early') })).rejects.toMatchObject({
    code: 'SHOAL_ABORTED',
    cause: 'early',
  })
  session = await Session.init(options)
  floats = await session.allocate('f32', 8)
  words = await session.allocate('u64', 4, { zeroed: true })
})

afterAll(async () => {
  await session.finalize()
  expect(nvshmemStatus()).not.toBe('initialized')
})

/** A call, and what its error has to say. */
type Case = readonly [what: string, call: () => unknown, error: unknown]

function refuses(cases: readonly Case[]): void {
  test.for(cases.map(([what, call, error]) => ({ what, call, error })))('$what', async ({ call, error }) => {
    const attempt = async (): Promise<unknown> => await call()
    await expect(attempt()).rejects.toThrow(error as string)
    // Nothing was called, and the session goes on.
    expect(session.waitingFor).toBeUndefined()
  })
}

const anything = (value: unknown): never => value as never

describe('Session.init', () => {
  const id = UniqueId.fromBytes(Uint8Array.from({ length: 128 }, (_, at) => [128, 0, 1, 0][at] ?? 9))
  const good = { device: 0, rank: 0, worldSize: 1, id }
  const init =
    (override: object): (() => unknown) =>
    () =>
      Session.init({ ...good, ...override } as InitOptions)
  refuses([
    ['no options', () => Session.init(anything(undefined)), /options are needed/],
    ['a device that is none', init({ device: 'gpu' }), /^Session.init: device must be an object with/],
    ['a negative device', init({ device: -1 }), RangeError],
    ['a rank beyond the size', init({ rank: 1 }), /rank must be a whole number from 0 to 0, got 1/],
    ['a negative rank', init({ rank: -1 }), RangeError],
    ['a rank that is no number', init({ rank: '0' }), TypeError],
    ['a size of zero', init({ worldSize: 0 }), /worldSize must be a whole number from 1/],
    ['bytes instead of an id', init({ id: new Uint8Array(128) }), /id must be a UniqueId/],
    ['a negative timeout', init({ timeout: -1 }), /timeout must be a non-negative number/],
    ['a default timeout that is no number', init({ defaultTimeout: 'long' }), RangeError],
    ['a signal that is none', init({ signal: {} }), /signal must be an AbortSignal/],
    ['a thread level that is none', init({ threadLevel: 'all' }), /threadLevel must be one of single/],
    ['a launcher that is none', init({ launcher: 'torchrun' }), /launcher must be one of mpi, pmi/],
    ['a communicator for PMI', init({ launcher: 'pmi', mpiCommunicator: 1n }), /needs the launcher 'mpi'/],
    ['a communicator that is no address', init({ launcher: 'mpi', mpiCommunicator: 1 }), /address of an MPI_Comm/],
    ['a second session', init({}), /is running; there is one in a process at a time/],
  ])
})

describe('unique ids', () => {
  const bytes = UniqueId.create().toBytes()
  refuses([
    ['of the wrong length', () => UniqueId.fromBytes(bytes.subarray(1)), /an id has 128 bytes, got 127/],
    ['that are not bytes', () => UniqueId.fromBytes(anything([...bytes])), TypeError],
    ['of another library', () => UniqueId.fromBytes(new Uint8Array(128)), /are no id of NVSHMEM/],
    ['in damaged text', () => UniqueId.fromBase64(`!${Buffer.from(bytes).toString('base64')}`), RangeError],
    ['in text that is none', () => UniqueId.fromBase64(anything(5)), TypeError],
  ])

  test('travel as bytes, as text and in JSON', () => {
    const id = UniqueId.fromBytes(bytes)
    expect(UniqueId.fromBase64(id.toString()).equals(id)).toBe(true)
    expect(UniqueId.fromBase64(JSON.parse(JSON.stringify(id)) as string).toBytes()).toEqual(bytes)
    expect(id.equals(UniqueId.create())).toBe(false)
    expect(id.equals(bytes)).toBe(false)
  })
})

describe('Session.allocate', () => {
  refuses([
    ['an unknown dtype', () => session.allocate(anything('f33'), 1), /dtype must be one of/],
    ['no elements', () => session.allocate('f32', 0), /length must be from 1/],
    ['a negative length', () => session.allocate('f32', -1), RangeError],
    ['half an element', () => session.allocate('f32', 1.5), TypeError],
    ['more than numbers count', () => session.allocate('f64', 2 ** 52), RangeError],
    ['an odd alignment', () => session.allocate('f32', 1, { alignment: 24 }), /power of two/],
    ['both kinds', () => session.allocate('f32', 1, { alignment: 64, zeroed: true }), /exclude each other/],
    [
      'more than the device has',
      () => session.allocate('u8', 2 ** 45),
      /NVSHMEMX_ERROR_OUT_OF_MEMORY.* 35184372088832 bytes of/,
    ],
    ['options that are none', () => session.allocate('f32', 1, anything(null)), /options are needed: \{ alignment/],
  ])

  test('takes a length as a bigint', async () => {
    const buffer = await session.allocate('f32', anything(4n))
    expect([buffer.length, buffer.byteLength]).toEqual([4, 16])
    buffer.fillSync(3)
    const longer = await buffer.resize(anything(6n))
    expect(longer.length).toBe(6)
    expect(Array.from(longer.slice(0, 4).toArraySync())).toEqual([3, 3, 3, 3])
    await longer.dispose()
  })
})

describe('put and get', () => {
  const array = new Float32Array(8)
  const put = (target: unknown, source: unknown, options: unknown): (() => unknown) => {
    return () => session.put(anything(target), anything(source), anything(options))
  }
  refuses([
    ['no options', () => session.put(floats, array, anything(undefined)), /options are needed: \{ pe, count \}/],
    ['a PE that is not there', () => session.put(floats, array, { pe: 1 }), /there is no PE 1; pe must be from 0 to 0/],
    ['a negative PE', () => session.put(floats, array, { pe: -1 }), RangeError],
    ['half a PE', () => session.put(floats, array, { pe: 0.5 }), RangeError],
    ['a PE that is no number', () => session.put(floats, array, anything({ pe: '0' })), TypeError],
    ['a target that is not symmetric', () => put(device, array, { pe: 0 })(), /target must be symmetric memory/],
    ['no target', () => put(undefined, array, { pe: 0 })(), /target must be symmetric memory/],
    [
      'a source that is not symmetric',
      () => session.get(array, anything(device), { pe: 0 }),
      /source must be symmetric/,
    ],
    [
      'an array of another type',
      () => session.put(floats, new Float64Array(8), { pe: 0 }),
      /Float64Array; elements of f32/,
    ],
    [
      'an array of another length',
      () => session.put(floats, array.subarray(1), { pe: 0 }),
      /target has 32 bytes, source 28/,
    ],
    [
      'beyond the memory of the peer',
      () => session.put(floats, new Float32Array(9), { pe: 0, count: 9 }),
      /9 elements of f32 are 36 bytes, target has 32/,
    ],
    ['beyond the local memory', () => session.put(floats, array.subarray(5), { pe: 0, count: 4 }), /source has 12/],
    ['a negative count', () => session.put(floats, array, { pe: 0, count: -1 }), RangeError],
    ['half a count', () => session.put(floats, array, { pe: 0, count: 1.5 }), TypeError],
    [
      'memory of another dtype',
      () => session.put(floats, memory({ byteLength: 32, dtype: 'i32' }), { pe: 0 }),
      /elements of i32, target of f32/,
    ],
    [
      'memory of another device',
      () => session.put(floats, memory({ byteLength: 32, device: 1 }), { pe: 0 }),
      /belongs to device 1/,
    ],
    [
      'memory of another context',
      () => session.put(floats, memory({ byteLength: 32, context: 5n }), { pe: 0 }),
      /another context/,
    ],
    [
      'memory that is not aligned',
      () => session.put(floats, memory({ byteLength: 32, address: 6n }), { pe: 0 }),
      /not aligned/,
    ],
    [
      'memory that may only be read',
      () => session.get(memory({ byteLength: 32, readOnly: true }), floats, { pe: 0 }),
      /read-only/,
    ],
    [
      'an array that nobody waits for',
      () => session.putNonBlocking(floats, anything(array), { pe: 0 }),
      /stays in place/,
    ],
    [
      'an array on a stream',
      () => session.getOnStream(anything(array), floats, { pe: 0, stream: null }),
      /stays in place/,
    ],
    ['no stream', () => session.putOnStream(floats, memory({ byteLength: 32 }), anything({ pe: 0 })), /must be named/],
    [
      'a stream that is none',
      () => session.putOnStream(floats, memory({ byteLength: 32 }), { pe: 0, stream: anything(7) }),
      TypeError,
    ],
    ['a timeout that is none', () => session.put(floats, array, { pe: 0, timeout: anything('1') }), RangeError],
    ['a signal that is none', () => session.put(floats, array, { pe: 0, signal: anything(1) }), TypeError],
    ['a stride of zero', () => session.putStrided(floats, array, { pe: 0, count: 2, targetStride: 0 }), RangeError],
    [
      'strides beyond the target',
      () => session.putStrided(floats, array, { pe: 0, count: 4, targetStride: 3 }),
      /reach over 10 elements, target has 8/,
    ],
    [
      'strides beyond the source',
      () => session.getStrided(array, floats, { pe: 0, count: 4, sourceStride: 3 }),
      /source has 8/,
    ],
    ['strides without a count', () => session.putStrided(floats, array, anything({ pe: 0 })), TypeError],
  ])

  test('the twins that block refuse the same', () => {
    expect(() => session.putSync(floats, array, { pe: 1 })).toThrow(RangeError)
    expect(() => session.getSync(array.subarray(1), floats, { pe: 0 })).toThrow(RangeError)
    expect(() => session.getElementSync(floats, { pe: 1 })).toThrow(RangeError)
  })
})

describe('elements, atomics and signals', () => {
  refuses([
    ['an element that is not there', () => session.getElement(floats, { pe: 0, index: 8 }), /no element 8 in 8/],
    ['a negative element', () => session.putElement(floats, 1, { pe: 0, index: -1 }), RangeError],
    ['a value of another type', () => session.putElement(floats, anything('1'), { pe: 0 }), TypeError],
    ['a value that does not fit', () => session.putElement(words, -1n, { pe: 0 }), RangeError],
    [
      'atomics of floats that there are not',
      () => session.atomics.add(anything(floats), 1, { pe: 0 }),
      /no atomic add of f32; it has it of i32/,
    ],
    ['an atomic beyond the buffer', () => session.atomics.fetch(words, { pe: 0, index: 4 }), RangeError],
    ['an atomic of no PE', () => session.atomics.increment(words, { pe: 3 }), RangeError],
    ['a signal of another dtype', () => session.signals.fetch(anything(floats)), /must be symmetric memory of u64/],
    [
      'an operation that is none',
      () => session.signals.signalOnStream(words, { pe: 0, value: 1, op: anything('sub'), stream: null }),
      /op must be one of set, add/,
    ],
    [
      'a comparison that is none',
      () => session.signals.waitForSignalOnStream(words, { comparison: anything('='), value: 1, stream: null }),
      /must be one of ==, !=/,
    ],
    [
      'a wait for floats',
      () => session.signals.waitUntilOnStream(anything(floats), { comparison: '==', value: 1, stream: null }),
      /no stream can wait for f32/,
    ],
    [
      'more words than there are',
      () => session.signals.waitUntilAllOnStream(words, { comparison: '==', value: 1n, count: 5, stream: null }),
      RangeError,
    ],
    [
      'too few values',
      () =>
        session.signals.waitUntilAllVectorOnStream(words, {
          comparison: '==',
          values: memory({ byteLength: 24 }),
          stream: null,
        }),
      /values has 24/,
    ],
    [
      'a signal within the target',
      () =>
        session.putSignalOnStream(words, memory({ byteLength: 32 }), { pe: 0, signal: words, value: 1n, stream: null }),
      /lies within the target/,
    ],
  ])
})

describe('collectives and teams', () => {
  refuses([
    ['a root that is not there', () => session.world.broadcast(floats, floats, { root: 1 }), /there is no PE 1; root/],
    ['no root', () => session.world.broadcast(floats, floats, anything({})), TypeError],
    ['another dtype', () => session.world.reduce(floats, anything(words)), /elements of f32, source of u64/],
    ['another length', () => session.world.reduce(floats, floats.slice(1)), /target has 8 elements and source 7/],
    ['a count beyond the buffers', () => session.world.fcollect(floats, floats.slice(4), { count: 5 }), RangeError],
    [
      'buffers that overlap',
      () => session.world.reduce(floats.slice(0, 4), floats.slice(2, 6)),
      /overlap without being the same/,
    ],
    ['in place where that is not possible', () => session.world.allToAll(floats, floats), /overlap/],
    [
      'an operation that is none',
      () => session.world.reduce(floats, floats, { op: anything('avg') }),
      /op must be one of sum/,
    ],
    ['bits of floats', () => session.world.reduce(floats, floats, { op: 'xor' }), /no xor of f32; it has it of i8/],
    ['memory that is not symmetric', () => session.world.reduce(anything(device), floats), /target must be symmetric/],
    ['PEs that are not in the team', () => session.world.splitStrided({ start: 0, size: 2 }), RangeError],
    ['a stride of nothing', () => session.world.splitStrided({ start: 1, size: 1 }), RangeError],
    ['a row of nothing', () => session.world.split2d({ xRange: 0 }), RangeError],
    ['contexts that are no number', () => session.world.split2d({ xRange: 1, contexts: anything('2') }), TypeError],
    ['a team id that is no bigint', () => session.createTeam({ id: anything(1), peCount: 1, pe: 0 }), TypeError],
    ['a PE beyond the team', () => session.createTeam({ id: 1n, peCount: 1, pe: 1 }), RangeError],
    ['a PE that is not there', () => session.world.translate(1, session.shared), RangeError],
    ['a team that is none', () => session.world.translate(0, anything({})), /into must be a Team/],
    ["NVSHMEM's own team", () => session.world.dispose(), /lives as long as the session/],
  ])
})

describe('symmetric memory', () => {
  refuses([
    ['a slice beyond the buffer', () => floats.slice(0, 9), /does not lie within 0 … 8/],
    ['a slice that ends before it starts', () => floats.slice(3, 2), RangeError],
    ['elements that do not fit', () => floats.slice(1).reinterpret('f64'), RangeError],
    ['an array of another length', () => floats.copyFrom(new Float32Array(7)), /source has 28 bytes, the buffer 32/],
    ['an array of another type', () => floats.copyTo(anything(new Int32Array(8))), /Int32Array; elements of f32/],
    ['a value that does not fit', () => words.fill(-1n), RangeError],
    ['a peer that is not there', () => floats.peer(1), RangeError],
    ['the freeing of a view', () => floats.slice(1).dispose(), /a view is not freed/],
    ['the resizing of a view', () => floats.slice(1).resize(3), /a view cannot be resized/],
    ['a length of nothing', () => floats.resize(0), RangeError],
    [
      'resize: options that are none',
      () => floats.resize(4, anything(null)),
      /SymmetricBuffer.resize: options are needed/,
    ],
    ['resize: an odd alignment', () => floats.resize(4, { alignment: 24 }), /power of two/],
    ['slice: a bigint', () => floats.slice(anything(-1n)), /slice: start must be a number, got -1n/],
    ['slice: no number', () => floats.slice(0, anything(Symbol('end'))), /slice: end must be a number/],
    ['multicastAddress: no team', () => floats.multicastAddress(anything(undefined)), /team must be a Team/],
    ['multicastAddress: what is no team', () => floats.multicastAddress(anything({})), /team must be a Team/],
    ['a signal: options that are none', () => session.signals.fetch(words, anything(null)), /options are needed/],
    ['registering what is no memory', () => session.register(anything({})), /must be an object with/],
    [
      'registering half an element',
      () => session.registerSymmetric(memory({ byteLength: 6 }), 'f32'),
      /no whole elements/,
    ],
    [
      'a module that is none',
      () => session.deviceCode.initializeModule(anything({ handle: 5 })),
      /module must have a handle/,
    ],
    [
      'a kernel that is none',
      () => session.deviceCode.launchCollectively(anything('k'), { grid: 1, block: 1, stream: null }),
      /kernel must have a handle/,
    ],
    [
      'a block too large',
      () => session.deviceCode.launchCollectively(1n, { grid: 1, block: 1025, stream: null }),
      /block\[0\]/,
    ],
    ['a status that is none', () => session.globalExit(anything(256)), RangeError],
  ])
})

describe('waiting', () => {
  const aborted = { signal: AbortSignal.abort(new Error('enough')) }
  refuses([
    [
      'a number of milliseconds alone',
      () => session.barrierAll(anything(1000)),
      /needed: \{ timeout, signal \}; got 1000/,
    ],
    ['null', () => floats.toArray(anything(null)), /options are needed/],
    [
      'a timeout that is no number',
      () => session.world.sync({ timeout: anything('1s') }),
      /Team.sync: timeout must be/,
    ],
    ['finalize: a timeout that is none', () => session.finalize({ timeout: -1 }), RangeError],
    [
      'finalize: options that are none',
      () => session.finalize(anything('now')),
      /Session.finalize: options are needed/,
    ],
    ['finalize: a signal that has fired', () => session.finalize(aborted), /Session.finalize was aborted/],
  ])

  test('what refuses to end leaves what it is asked of as it is', async () => {
    const buffer = await session.allocate('f32', 4)
    const team = (await session.world.splitStrided({ start: 0, size: 1 })) as Team
    for (const one of [buffer, team]) {
      await expect(one.dispose({ timeout: anything('soon') })).rejects.toThrow(RangeError)
      await expect(one.dispose(anything(5))).rejects.toThrow(TypeError)
      await expect(one.dispose(aborted)).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
      expect(one.disposed).toBe(false)
    }
    await buffer.fill(2)
    await team.reduce(buffer, buffer)
    expect(Array.from(await buffer.toArray())).toEqual([2, 2, 2, 2])
    await team.dispose()
    await buffer.dispose()
    expect([team.disposed, buffer.disposed, session.disposed]).toEqual([true, true, false])
  })
})

describe('a session that is busy', () => {
  test('refuses the twins that block, and goes on', async () => {
    const barrier = session.barrierAll()
    expect(session.waitingFor).toBe('Session.barrierAll')
    const busy = (): void => session.putSync(floats, new Float32Array(8), { pe: 0 })
    expect(busy).toThrow(SessionBusyError)
    expect(busy).toThrow(/Session.putSync cannot run now: Session.barrierAll has not returned/)
    await barrier
    expect(busy).not.toThrow()
  })

  test('has nothing to do for a signal that fired before', async () => {
    const wait = { signal: AbortSignal.abort(new Error('enough')) }
    await expect(session.barrierAll(wait)).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
    expect(session.waitingFor).toBeUndefined()
  })
})

test('what was disposed of is refused, and disposing of it again is nothing', async () => {
  const buffer = await session.allocate('f32', 8)
  const view = buffer.slice(2)
  await buffer.dispose()
  await buffer.dispose()
  expect([buffer.disposed, view.disposed]).toEqual([true, true])
  expect(() => view.address).toThrow(DisposedError)
  expect(() => view[memoryProtocol]).toThrow(DisposedError)
  await expect(session.put(view, new Float32Array(6), { pe: 0 })).rejects.toThrow(DisposedError)
  await expect(session.world.reduce(floats, buffer)).rejects.toThrow(DisposedError)
})
