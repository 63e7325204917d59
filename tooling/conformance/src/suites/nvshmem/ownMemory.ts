import assert from 'node:assert/strict'
import { AddressRange, DeviceBuffer, PhysicalMemory } from '@shoal/driver'
import { isSoftwareDevice } from '@shoal/ffi'
import { type MemoryLike, memoryProtocol } from '@shoal/types'
import { queueDelay, whyNoDelay } from '../../support/delay.js'
import { elementsIn, type Pe } from './pe.js'

const wait = { timeout: 30_000 }
const mebibyte = 2 ** 20
/** The unit in which NVSHMEM 3.4.5 maps its heap by default. */
const heapGranule = 512 * mebibyte

/** Returns numbers that differ for every PE, element and seed. */
function numbersOf(pe: number, count: number, seed: number): Int32Array {
  return Int32Array.from({ length: count }, (_, index) => (seed % 1000) * 10_000 + pe * 1000 + index)
}

function next({ session }: Pe): number {
  return (session.pe + 1) % session.peCount
}

function before({ session }: Pe): number {
  return (session.pe + session.peCount - 1) % session.peCount
}

/** Tests registered local memory, memory of other PEs by address, empty and resized buffers, and a team by id. */
export async function memory(pe: Pe, seed: number): Promise<void> {
  await registered(pe, seed)
  await behindProducers(pe, seed)
  await ofPeers(pe, seed)
  await withoutElements(pe)
  await resized(pe, seed)
  await teamById(pe)
}

async function registered(pe: Pe, seed: number): Promise<void> {
  const { session, device } = pe
  const local = DeviceBuffer.from(device, numbersOf(session.pe, 256, seed))
  const target = elementsIn(pe.target, 'i32', 256)
  await target.fill(-1)
  await session.barrierAll(wait)
  const registration = await session.register(local)
  await session.put(target, local, { pe: next(pe), ...wait })
  await session.barrierAll(wait)
  assert.deepEqual(await target.toArray(), numbersOf(before(pe), 256, seed))
  await registration.dispose()
  await session.register(local)
  await session.unregisterAll()
  local.dispose()
}

/** A put must wait for memory that its producer has not written yet. Tests driver memory and symmetric memory. */
async function behindProducers(pe: Pe, seed: number): Promise<void> {
  if (whyNoDelay() !== undefined) return
  const { session, device, stream } = pe
  const target = elementsIn(pe.target, 'i32', 256)
  const producer = device.createStream({ nonBlocking: true })
  const ofDriver = DeviceBuffer.zeros(device, 'i32', 256)
  const ofHeap = elementsIn(pe.source, 'i32', 256)
  const options = { pe: next(pe) }
  const calls = {
    put: (source: MemoryLike) => session.put(target, source, { ...options, ...wait }),
    putSync: (source: MemoryLike) => session.putSync(target, source, options),
    putNonBlocking: (source: MemoryLike) => session.putNonBlocking(target, source, options),
    putStrided: (source: MemoryLike) => session.putStrided(target, source, { ...options, count: 256 }),
    putOnStream: (source: MemoryLike) => session.putOnStream(target, source, { ...options, stream }),
  }
  let value = seed % 1000
  for (const [name, put] of Object.entries(calls)) {
    for (const memory of [ofDriver, ofHeap]) {
      value += 1
      await target.fill(-1)
      await session.barrierAll(wait)
      await queueDelay(producer, 20)
      DeviceBuffer.view(device, memory, 'i32').fill(value, { stream: producer })
      const offered = { [memoryProtocol]: { ...memory[memoryProtocol], version: 1, stream: producer.handle as bigint } }
      await put(offered as MemoryLike)
      await stream.synchronize()
      await session.barrierAll(wait)
      assert.deepEqual(await target.toArray(), new Int32Array(256).fill(value), name)
    }
  }
  ofDriver.dispose()
  producer.dispose()
}

async function ofPeers(pe: Pe, seed: number): Promise<void> {
  const { session, device, stream } = pe
  const numbers = elementsIn(pe.source, 'i32', 64)
  numbers.copyFromSync(numbersOf(session.pe, 64, seed))
  await session.barrierAll(wait)
  assert.equal((await numbers.peer(session.pe))?.address, numbers.address)
  const theirs = await numbers.peer(next(pe))
  assert.ok(theirs, 'the memory of a PE of the same machine has an address here')
  const view = DeviceBuffer.view(device, theirs, 'i32')
  assert.deepEqual(await view.toArray({ stream }), numbersOf(next(pe), 64, seed))
  await session.barrierAll(wait)
  view.copyFrom(numbersOf(session.pe, 64, seed + 1), { stream })
  await stream.synchronize(wait)
  await session.barrierAll(wait)
  assert.deepEqual(numbers.toArraySync(), numbersOf(before(pe), 64, seed + 1))
  await session.barrierAll(wait)
}

/** A buffer without elements exists on every PE, and moves nothing. */
async function withoutElements({ session }: Pe): Promise<void> {
  const empty = await session.allocate('f64', 0, wait)
  assert.ok(empty.address > 0n)
  assert.equal((await empty.toArray()).length, 0)
  const longer = await empty.resize(2, wait)
  await longer.fill(3)
  assert.deepEqual(await longer.toArray(), Float64Array.of(3, 3))
  await longer.dispose(wait)
}

async function resized(pe: Pe, seed: number): Promise<void> {
  const { session } = pe
  const small = await session.allocate('i32', 100, wait)
  await small.copyFrom(numbersOf(session.pe, 100, seed))
  const large = await small.resize(1000, wait)
  assert.ok(small.disposed)
  assert.deepEqual(await large.slice(0, 100).toArray(), numbersOf(session.pe, 100, seed))
  await session.put(large.slice(900, 1000), numbersOf(session.pe, 100, seed), { pe: next(pe), ...wait })
  await session.barrierAll(wait)
  assert.deepEqual(await large.slice(900, 1000).toArray(), numbersOf(before(pe), 100, seed))
  await large.dispose(wait)
}

/** Creates a team of the PEs in reverse order. */
async function teamById(pe: Pe): Promise<void> {
  const { session } = pe
  const { pe: own, peCount } = session
  const ids = elementsIn(pe.target, 'u64', 1)
  await ids.fill(0n)
  await session.barrierAll(wait)
  if (own === 0) {
    const id = await session.teamUniqueId()
    for (let to = 0; to < peCount; to += 1) await session.putElement(ids, id, { pe: to })
  }
  await session.barrierAll(wait)
  const id = (await ids.toArray())[0] as bigint
  const team = await session.createTeam({ id, peCount, pe: peCount - 1 - own, ...wait })
  assert.deepEqual([team.pe, team.peCount], [peCount - 1 - own, peCount])
  assert.equal(await team.translate(0, session.world), peCount - 1)
  const source = elementsIn(pe.source, 'i32', 1)
  const target = elementsIn(pe.target, 'i32', 1)
  await source.fill(2 ** own)
  await session.barrierAll(wait)
  await team.reduce(target, source, { op: 'sum', ...wait })
  assert.equal((await target.toArray())[0], 2 ** peCount - 1)
  await team.barrier(wait)
  await team.dispose(wait)
}

/** Makes the program's own physical memory symmetric, and then private again. */
export async function mapped(pe: Pe, seed: number): Promise<void> {
  const { session, device } = pe
  const bytes = isSoftwareDevice() ? 2 * mebibyte : heapGranule
  const physical = PhysicalMemory.create(device, bytes, { handleTypes: 'posix-fd' })
  const range = AddressRange.reserve(bytes)
  const mapping = range.map(physical)
  mapping.setAccess(device, 'readWrite')
  const own = DeviceBuffer.view(device, mapping, 'i32')
  const buffer = await session.registerSymmetric(mapping, 'i32', wait)
  const part = buffer.slice(1000, 1512)
  await session.put(part, numbersOf(session.pe, 512, seed), { pe: next(pe), ...wait })
  await session.barrierAll(wait)
  assert.deepEqual(await part.toArray(), numbersOf(before(pe), 512, seed))
  // The program's own mapping shows the same memory.
  assert.deepEqual(await own.slice(1000, 1512).toArray(), numbersOf(before(pe), 512, seed))
  await session.barrierAll(wait)
  await buffer.dispose(wait)
  own.slice(0, 4).copyFromSync(Int32Array.of(1, 2, 3, 4))
  assert.deepEqual(await own.slice(0, 4).toArray(), Int32Array.of(1, 2, 3, 4))
  mapping.dispose()
  range.dispose()
  physical.dispose()
}
