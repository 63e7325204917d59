import { Device, DeviceBuffer, PinnedBuffer, type Stream } from '@shoal/driver'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { DisposedError } from '@shoal/types'
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

describe('a call that waits for its turn', () => {
  const ofMemory = Object.keys(memories).flatMap((kind) => Object.keys(withMemory).map((name) => [name, kind] as const))
  test.for(ofMemory)(
    '%s rejects when its %s is disposed of meanwhile; those behind it are made',
    async ([name, kind]) => {
      const { session } = pe
      const memory = memories[kind as keyof typeof memories]()
      const barrier = session.barrierAll()
      const call = (withMemory[name] as (typeof withMemory)[string])(memory)
      const behind = session.put(target, Float32Array.of(5, 6, 7, 8), { pe: 0 })
      memory.dispose()
      await expect(call).rejects.toThrow(DisposedError)
      await Promise.all([barrier, behind])
      expect(await target.toArray()).toEqual(Float32Array.of(5, 6, 7, 8))
    },
  )

  test.for(Object.keys(withStream))('%s rejects when its stream is disposed of meanwhile', async (name) => {
    const stream = device().createStream()
    const barrier = pe.session.barrierAll()
    const call = (withStream[name] as (typeof withStream)[string])(stream)
    stream.dispose()
    await expect(call).rejects.toThrow(DisposedError)
    await barrier
    await pe.session.barrierAll()
  })

  test('is made when its memory and its stream are disposed of after it', async () => {
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

  test('is made before the symmetric memory and the team that it works with are given back', async () => {
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

  test('is made although its caller has given it up', async () => {
    const { session } = pe
    const memory = memories['device memory']()
    await target.fill(0)
    const impatient = new AbortController()
    const wait = { pe: 0, signal: impatient.signal }
    // The first waits for its memory to be looked at, the second has memory of its own that stays until it was made.
    const barrier = session.barrierAll()
    const calls = [session.put(target, memory, wait), session.put(target.slice(0, 1), Float32Array.of(9), wait)]
    impatient.abort()
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
    await barrier
    expect(session.stuckIn).toBeUndefined()
    expect(await target.toArray()).toEqual(Float32Array.of(9, 2, 3, 4))
    memory.dispose()
  })

  test('is not made any more when the session is abandoned', async () => {
    expect(await resultsOf('session.abandonedQueue', 1)).toEqual([
      { outcomes: ['SHOAL_DISPOSED', 'SHOAL_DISPOSED', 'SHOAL_DISPOSED'], contents: [0, 0] },
    ])
  })

  refuses(pe, [
    [
      'a number that is no stream',
      () => pe.session.putOnStream(target, target, { pe: 0, stream: 5n }),
      'Session.putOnStream: stream must be a CUstream, not 5n',
    ],
    ['an address that is no stream', () => pe.session.barrierAllOnStream({ stream: target.address }), /cuStreamGetCtx/],
  ])

  test('takes a bare handle and the handles of the default streams', async () => {
    using stream = device().createStream()
    for (const handle of [stream.handle, 0n, 1n, 2n, null]) {
      await pe.session.barrierAllOnStream({ stream: handle })
    }
    await device().synchronize()
  })
})
