import { driver } from '@shoal/cuda-sys/driver'
import {
  AddressRange,
  Device,
  DeviceBuffer,
  GrowableBuffer,
  ManagedBuffer,
  PhysicalMemory,
  PinnedBuffer,
  type Stream,
} from '@shoal/driver'
import { bindCall, slots64 } from '@shoal/ffi/calls'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { DisposedError, type MemoryLike } from '@shoal/types'
import { beforeAll, describe, expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'
import { onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
let target: SymmetricBuffer<'f32'>
let signal: SymmetricBuffer<'u64'>

beforeAll(async () => {
  target = await pe.session.allocate('f32', 4)
  signal = await pe.session.allocate('u64', 1, { zeroed: true })
})

const device = (): Device => Device.get(0)
const memories = {
  'device memory': () => DeviceBuffer.from(device(), Float32Array.of(1, 2, 3, 4)),
  'page-locked memory': () => PinnedBuffer.from(device(), Float32Array.of(1, 2, 3, 4)),
}
type Memory = ReturnType<(typeof memories)[keyof typeof memories]>

const withMemory: { readonly [name: string]: (memory: Memory) => Promise<unknown> } = {
  put: (memory) => pe.session.put(target, memory, { pe: 0 }),
  get: (memory) => pe.session.get(memory, target, { pe: 0 }),
  putNonBlocking: (memory) => pe.session.putNonBlocking(target, memory, { pe: 0 }),
  putOnStream: (memory) => pe.session.putOnStream(target, memory, { pe: 0, stream: null }),
  getNonBlockingOnStream: (memory) => pe.session.getNonBlockingOnStream(memory, target, { pe: 0, stream: null }),
  putStrided: (memory) => pe.session.putStrided(target, memory, { pe: 0, count: 2 }),
  getStridedOnStream: (memory) => pe.session.getStridedOnStream(memory, target, { pe: 0, count: 2, stream: null }),
  putSignalOnStream: (memory) =>
    pe.session.putSignalOnStream(target, memory, { pe: 0, signal, value: 1n, stream: null }),
  copyFrom: (memory) => target.copyFrom(memory),
  copyTo: (memory) => target.copyTo(memory),
  register: (memory) => pe.session.register(memory),
}

const withStream: { readonly [name: string]: (stream: Stream) => Promise<unknown> } = {
  barrierAllOnStream: (stream) => pe.session.barrierAllOnStream({ stream }),
  quietOnStream: (stream) => pe.session.quietOnStream({ stream }),
  putOnStream: (stream) => pe.session.putOnStream(target, target, { pe: 0, stream }),
  putStridedOnStream: (stream) => pe.session.putStridedOnStream(target, target, { pe: 0, count: 1, stream }),
  putElementOnStream: (stream) => pe.session.putElementOnStream(target, 1, { pe: 0, stream }),
  getElementOnStream: (stream) => pe.session.getElementOnStream(target, { pe: 0, stream }),
  putSignalOnStream: (stream) => pe.session.putSignalOnStream(target, target, { pe: 0, signal, value: 1n, stream }),
  signalOnStream: (stream) => pe.session.signals.signalOnStream(signal, { pe: 0, value: 1n, stream }),
  'world.syncOnStream': (stream) => pe.session.world.syncOnStream({ stream }),
  'world.broadcastOnStream': (stream) => pe.session.world.broadcastOnStream(target, target, { root: 0, stream }),
  'world.reduceOnStream': (stream) => pe.session.world.reduceOnStream(target, target, { stream }),
}

describe('a queued call', () => {
  const ofMemory = Object.keys(memories).flatMap((kind) => Object.keys(withMemory).map((name) => [name, kind] as const))
  test.for(ofMemory)('%s rejects if its %s is disposed meanwhile, and later calls still run', async ([name, kind]) => {
    const { session } = pe
    const memory = memories[kind as keyof typeof memories]()
    const barrier = session.barrierAll()
    const call = (withMemory[name] as (typeof withMemory)[string])(memory)
    const behind = session.put(target, Float32Array.of(5, 6, 7, 8), { pe: 0 })
    memory.dispose()
    await expect(call).rejects.toThrow(DisposedError)
    await Promise.all([barrier, behind])
    expect(await target.toArray()).toEqual(Float32Array.of(5, 6, 7, 8))
  })

  test.for(Object.keys(withStream))('%s rejects if its stream is disposed meanwhile', async (name) => {
    const stream = device().createStream()
    const barrier = pe.session.barrierAll()
    const call = (withStream[name] as (typeof withStream)[string])(stream)
    stream.dispose()
    await expect(call).rejects.toThrow(DisposedError)
    await barrier
    await pe.session.barrierAll()
  })

  test('runs if its memory and its stream are disposed after the call was made', async () => {
    const { session } = pe
    const memory = memories['device memory']()
    const stream = device().createStream()
    const barrier = session.barrierAll()
    await session.putOnStream(target, memory, { pe: 0, stream })
    await stream.synchronize()
    memory.dispose()
    stream.dispose()
    await barrier
    expect(await target.toArray()).toEqual(Float32Array.of(1, 2, 3, 4))
  })

  test('runs before the symmetric memory and the team that it uses are freed', async () => {
    const { session } = pe
    const buffer = await session.allocate('f32', 2)
    const team = await session.world.splitStrided({ start: 0, size: 1 })
    const got = new Float32Array(2)
    const calls = [
      session.barrierAll(),
      session.put(buffer, Float32Array.of(3, 4), { pe: 0 }),
      team?.reduce(buffer, buffer),
      session.get(got, buffer, { pe: 0 }),
      buffer.dispose(),
      team?.dispose(),
    ]
    await Promise.all(calls)
    expect(got).toEqual(Float32Array.of(3, 4))
  })

  test('runs even if its caller aborted it', async () => {
    const { session } = pe
    const memory = memories['device memory']()
    await target.fill(0)
    const controller = new AbortController()
    const wait = { pe: 0, signal: controller.signal }
    // The first call waits for the check of its memory. The second has its own memory, which stays until the call was
    // made.
    const barrier = session.barrierAll()
    const calls = [session.put(target, memory, wait), session.put(target.slice(0, 1), Float32Array.of(9), wait)]
    controller.abort()
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
    await barrier
    expect(session.stuckIn).toBeUndefined()
    expect(await target.toArray()).toEqual(Float32Array.of(9, 2, 3, 4))
    memory.dispose()
  })

  test('does not run after the session was abandoned', async () => {
    expect(await resultsOf('session.abandonedQueue', 1)).toEqual([
      { outcomes: ['SHOAL_DISPOSED', 'SHOAL_DISPOSED', 'SHOAL_DISPOSED'], contents: [0, 0] },
    ])
  })

  refuses(pe, [
    [
      'a number that is no stream',
      () => pe.session.putOnStream(target, target, { pe: 0, stream: 5n }),
      'Session.putOnStream: stream must be a CUstream, which is an address, or 0n, 1n or 2n for a default stream, not 5n',
    ],
    ['an address that is no stream', () => pe.session.barrierAllOnStream({ stream: target.address }), /cuStreamGetCtx/],
  ])

  test('accepts a raw handle and the handles of the default streams', async () => {
    using stream = device().createStream()
    for (const handle of [stream.handle, 0n, 1n, 2n, null]) {
      await pe.session.barrierAllOnStream({ stream: handle })
    }
    await device().synchronize()
  })
})

/** Delays the copies of NVSHMEM's thread, which use the default stream, by this many milliseconds. */
function delayCopies(milliseconds: number): void {
  const call = bindCall(driver.rawSymbol('shoalSimStreamDelay') as bigint, 2, 'i32', 'shoalSimStreamDelay')
  const status = device().primaryContext.run(() => {
    slots64[0] = 0n
    slots64[1] = BigInt(milliseconds * 1_000_000)
    return call()
  })
  expect(status).toBe(0)
}

describe('a running call', () => {
  type Owner = MemoryLike & { dispose(): void; readonly disposed: boolean }
  const values = Float32Array.of(1, 2, 3, 4)
  const mapped = (): Owner => {
    using physical = PhysicalMemory.create(device(), 2 ** 21)
    using range = AddressRange.reserve(2 ** 21)
    return range.map(physical)
  }
  const owners: { readonly [name: string]: () => Owner } = {
    ...memories,
    'managed memory': () => ManagedBuffer.allocate(device(), 'f32', 4),
    'growable memory': () => GrowableBuffer.reserve(device(), 'f32', { maximumLength: 4, length: 4 }),
    'mapped memory': mapped,
    'memory of a stream': () => DeviceBuffer.allocateOn(device().defaultStream, 'f32', 4),
  }

  test.for(Object.keys(owners))('is not disturbed when its %s is disposed', async (name) => {
    const owner = (owners[name] as (typeof owners)[string])()
    const view = DeviceBuffer.view(device(), owner, 'f32', { length: 4 })
    view.copyFromSync(values)
    await target.fill(0)
    delayCopies(20)
    const call = target.copyFrom(view)
    owner.dispose()
    expect(owner.disposed).toBe(true)
    expect(() => view.address).toThrow(DisposedError)
    await call
    expect(await target.toArray()).toEqual(values)
  })

  test('is not disturbed when its stream is disposed', async () => {
    await target.fill(5)
    const stream = device().createStream()
    const call = pe.session.getElementOnStream(target, { pe: 0, stream })
    stream.dispose()
    expect(() => stream.handle).toThrow(DisposedError)
    expect(await call).toBe(5)
  })

  test('is followed by queued calls in order on this thread, even by calls without a status', async () => {
    const { session } = pe
    await target.fill(0)
    delayCopies(5)
    const copied = target.copyFrom(values)
    const source = DeviceBuffer.from(device(), Float32Array.of(5, 6, 7, 8))
    const put = session.putNonBlocking(target, source, { pe: 0 })
    const arrived = session.quiet()
    const last = session.putElement(target, 9, { pe: 0, index: 1 })
    await Promise.all([copied, put, arrived, last])
    expect(await target.toArray()).toEqual(Float32Array.of(5, 9, 7, 8))
    source.dispose()
  })
})

describe('arrays with a forged length', () => {
  const falseLength = (length: number, said: number): Float32Array<ArrayBuffer> => {
    const array = new Float32Array(length).fill(7)
    for (const [key, value] of Object.entries({ length: said, byteLength: said * 4, byteOffset: 64 })) {
      Object.defineProperty(array, key, { value })
    }
    return array
  }
  const shorter = (): Float32Array<ArrayBuffer> => falseLength(2, 4)
  const calls: { readonly [name: string]: (array: Float32Array<ArrayBuffer>) => unknown } = {
    copyFrom: (array) => target.copyFrom(array),
    copyFromSync: (array) => target.copyFromSync(array),
    copyTo: (array) => target.copyTo(array),
    copyToSync: (array) => target.copyToSync(array),
    put: (array) => pe.session.put(target, array, { pe: 0 }),
    getSync: (array) => pe.session.getSync(array, target, { pe: 0 }),
    putStrided: (array) => pe.session.putStrided(target, array, { pe: 0, count: 4 }),
    getStridedSync: (array) => pe.session.getStridedSync(array, target, { pe: 0, count: 4 }),
  }

  test.for(Object.keys(calls))('%s uses the real number of bytes', async (name) => {
    const call = calls[name] as (typeof calls)[string]
    await target.fill(3)
    const attempt = async (): Promise<unknown> => await call(shorter())
    await expect(attempt()).rejects.toThrow(RangeError)
    const longer = falseLength(4, 1000)
    await call(longer)
    const kept = name.startsWith('get') || name.startsWith('copyTo') ? 3 : 7
    expect(await target.toArray()).toEqual(new Float32Array(4).fill(kept))
    expect([...new Float32Array(longer.buffer)]).toEqual(Array(4).fill(kept))
  })
})
