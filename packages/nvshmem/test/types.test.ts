import { type PeerMemory, Session, type SymmetricBuffer, type Team, UniqueId } from '@shoal/nvshmem'
import type { StreamLike } from '@shoal/types'
import { expect, expectTypeOf, test } from 'vitest'

// Checks the compiler's errors for correct and wrong uses. This code does not run.

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
  // @ts-expect-error The id is missing.
  await Session.init({ device: 0, rank: 0, worldSize: 2 })
  // @ts-expect-error An id and a launcher exclude each other.
  await Session.init({ device: 0, rank: 0, worldSize: 2, id, launcher: 'mpi' })
  // @ts-expect-error The launcher of the communicator is missing.
  await Session.init({ device: 0, mpiCommunicator: 1n })
  // @ts-expect-error This launcher does not exist.
  await Session.init({ device: 0, launcher: 'torchrun' })
  // @ts-expect-error This type does not exist.
  await session.allocate('f33', 4)
  // @ts-expect-error The other side must be symmetric memory.
  await session.put(new Float32Array(4), floats, { pe: 1 })
  // @ts-expect-error This option does not exist.
  await session.put(floats, new Float32Array(4), { pe: 1, cuont: 4 })
  // @ts-expect-error The PE is missing.
  await session.put(floats, new Float32Array(4), {})
  // @ts-expect-error Queued work requires memory with a fixed address.
  await session.putOnStream(floats, new Float32Array(4), { pe: 1, stream })
  // @ts-expect-error Floats have no bitwise operations.
  await session.atomics.or(floats, 1, { pe: 1 })
  // @ts-expect-error Elements of 64 bits are bigints.
  const sum: number = await session.atomics.fetchAdd(words, 1n, { pe: 1 })
  // @ts-expect-error A signal has 64 bits.
  await session.signals.waitForSignalOnStream(floats, { comparison: '>=', value: 1, stream })
  // @ts-expect-error This comparison does not exist.
  await session.signals.waitForSignalOnStream(words, { comparison: '=>', value: 1, stream })
  // @ts-expect-error NVSHMEM has no average.
  await session.world.reduce(floats, floats, { op: 'avg' })
  // @ts-expect-error Static functions create it.
  new UniqueId(new Uint8Array(128))
  expect(sum).toBeDefined()
}

test('correct uses compile, and wrong uses do not (checked by tsc)', () => {
  expect([rightUses, wrongUses].every((uses) => typeof uses === 'function')).toBe(true)
})
