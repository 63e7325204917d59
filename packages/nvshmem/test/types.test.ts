import { type PeerMemory, Session, type SymmetricBuffer, type Team, UniqueId } from '@shoal/nvshmem'
import type { StreamLike } from '@shoal/types'
import { expect, expectTypeOf, test } from 'vitest'

// What the compiler says of right and wrong uses. Nothing here runs.

declare const session: Session
declare const floats: SymmetricBuffer<'f32'>
declare const words: SymmetricBuffer<'u64'>
declare const stream: StreamLike
declare const id: UniqueId
declare const maybe: number | undefined
declare const signal: AbortSignal | undefined

export async function rightUses(): Promise<void> {
  expectTypeOf(await session.allocate('f32', 4)).toEqualTypeOf<SymmetricBuffer<'f32'>>()
  expectTypeOf(await floats.toArray()).toExtend<Float32Array>()
  expectTypeOf(await words.toArray()).toExtend<BigUint64Array>()
  expectTypeOf(await floats.peer(1)).toExtend<PeerMemory | undefined>()
  expectTypeOf(session.world).toExtend<Team>()
  expectTypeOf(await session.getElement(floats, { pe: 1 })).toEqualTypeOf<number>()
  expectTypeOf(await session.atomics.fetchAdd(words, 1n, { pe: 1 })).toEqualTypeOf<bigint>()
  await session.put(floats, new Float32Array(4), { pe: 0, count: maybe, signal, timeout: maybe })
  await session.putOnStream(floats, floats, { pe: 0, stream: null })
  await session.world.reduce(floats, floats, { op: 'max' })
  await Session.init({ device: 0, launcher: 'mpi', threadLevel: 'multiple', signal })
  await Session.init({ device: 0, timeout: maybe })
  let mine = new Float32Array(4)
  mine = await floats.toArray()
  mine = floats.toArraySync()
  expect(mine).toBeDefined()
}

export async function wrongUses(): Promise<void> {
  // @ts-expect-error A start by id needs the id.
  await Session.init({ device: 0, rank: 0, worldSize: 2 })
  // @ts-expect-error By an id or by a launcher, not by both.
  await Session.init({ device: 0, rank: 0, worldSize: 2, id, launcher: 'mpi' })
  // @ts-expect-error A communicator needs its launcher.
  await Session.init({ device: 0, mpiCommunicator: 1n })
  // @ts-expect-error There is no such launcher.
  await Session.init({ device: 0, launcher: 'torchrun' })
  // @ts-expect-error There is no such type.
  await session.allocate('f33', 4)
  // @ts-expect-error The other side is symmetric memory.
  await session.put(new Float32Array(4), floats, { pe: 1 })
  // @ts-expect-error There is no such option.
  await session.put(floats, new Float32Array(4), { pe: 1, cuont: 4 })
  // @ts-expect-error Which PE?
  await session.put(floats, new Float32Array(4), {})
  // @ts-expect-error What is queued needs memory that stays in place.
  await session.putOnStream(floats, new Float32Array(4), { pe: 1, stream })
  // @ts-expect-error There are no bits in a float.
  await session.atomics.or(floats, 1, { pe: 1 })
  // @ts-expect-error Words of 64 bits are bigints.
  const sum: number = await session.atomics.fetchAdd(words, 1n, { pe: 1 })
  // @ts-expect-error A signal is a word of 64 bits.
  await session.signals.waitForSignalOnStream(floats, { comparison: '>=', value: 1, stream })
  // @ts-expect-error There is no such comparison.
  await session.signals.waitForSignalOnStream(words, { comparison: '=>', value: 1, stream })
  // @ts-expect-error NVSHMEM has no mean.
  await session.world.reduce(floats, floats, { op: 'avg' })
  // @ts-expect-error It is made by its static functions.
  new UniqueId(new Uint8Array(128))
  expect(sum).toBeDefined()
}

test('correct uses compile, and wrong uses do not (checked by tsc)', () => {
  expect([rightUses, wrongUses].every((uses) => typeof uses === 'function')).toBe(true)
})
