import { withContext } from '@shoal/cuda-sys'
import {
  type CUdeviceptr,
  type CUstream,
  cuMemsetD8Async,
  cuStreamCreate,
  cuStreamDestroy,
} from '@shoal/cuda-sys/driver'
import { Device, Stream } from '@shoal/driver'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { TimeoutError } from '@shoal/types'
import { beforeAll, expect, test } from 'vitest'
import { onePe } from './fixtures/onePe.js'

const nonBlocking = 1
const pe = onePe()
let target: SymmetricBuffer<'f32'>
let word: SymmetricBuffer<'u64'>

beforeAll(async () => {
  target = await pe.session.allocate('f32', 4, { zeroed: true })
  word = await pe.session.allocate('u64', 1, { zeroed: true })
})

test('a signal without an operation is set, not added to', async () => {
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

test('the time limit of a call that waits for its turn ends that wait alone: nothing counts as stuck', async () => {
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
  // The copy is under way, and others still get their turn behind it.
  const last = session.barrierAll()
  withContext(handle, () => cuMemsetD8Async(word.address as CUdeviceptr, 1, 1, stream))
  expect([...(await underWay)]).toEqual([0, 0, 0, 0])
  await last
  // What was given up before its turn is still made in its turn: other PEs may count on it.
  expect([...(await target.toArray())]).toEqual([1, 2, 3, 4])
  withContext(handle, () => cuStreamDestroy(stream))
})
