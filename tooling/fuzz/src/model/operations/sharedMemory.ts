/**
 * Memory that `share` gives to another thread or process and `receive` takes, and objects that end during the transfer.
 */
import { MessageChannel } from 'node:worker_threads'
import { type DeviceBuffer, Event, MemoryPool } from '@shoal/driver'
import { receive, type Sharing, type SharingWay, share } from '@shoal/driver/sharing'
import {
  AbortedError,
  DisposedError,
  FeatureNotSupportedError,
  type MemoryLike,
  SystemError,
  TimeoutError,
} from '@shoal/types'
import { bytesOf, type Memory, type ModelType, modelTypes } from '../memory.js'
import { Mismatch, type Operation } from '../operation.js'
import { Peer } from '../peer.js'
import type { Refusals, StreamModel, World } from '../world.js'
import { someLength } from './making.js'
import { pendingOn } from './tensors.js'

/** Milliseconds. No transfer takes longer. */
const timeout = 200_000

/** Makes sure that the content is ready when the memory is shared: the host waits, or the memory names a stream. */
async function ready(world: World, memory: Memory): Promise<MemoryLike> {
  const { block, device } = memory.root
  await world.order(undefined, [{ block, write: true }])
  if (world.chance(0.5)) return memory.buffer
  const stream = world.one(world.liveStreams(device))
  await world.delay(stream, world.one([0.1, 1]))
  const value = world.random.integer(0, 100)
  fill(world, memory, stream, value)
  return pendingOn(stream, memory.buffer)
}

/** Queues a fill whose result the other side has to see. */
function fill(world: World, { buffer, root, offset, byteLength }: Memory, stream: StreamModel, value: number): void {
  buffer.reinterpret('u8').fill(value, { stream: stream.stream })
  world.use(stream.queue, [{ block: root.block, write: true }])
  root.block.write(offset, new Uint8Array(byteLength).fill(value))
}

const inThread: Operation = {
  name: 'share memory over a port',
  weight: 4,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const { block } = memory.root
    const given = await ready(world, memory)
    const { port1, port2 } = new MessageChannel()
    try {
      // Either side may start first, and then waits for the other.
      const isFirst = world.chance(0.5)
      const late = isFirst ? undefined : receive(port2, { timeout })
      if (world.chance(0.5)) await new Promise((resolve) => setImmediate(resolve))
      const sending = share(port1, given, { timeout })
      const shared = await (late ?? receive(port2, { timeout }))
      const { way, released } = await sending
      world.equal(`the way of ${memory.name}`, way, 'process')
      world.equal(`bytes of ${memory.name}`, shared.byteLength, memory.byteLength)
      await world.synchronizeDevice(memory.root.device)
      const expected = block.expected(memory.offset, memory.byteLength)
      const buffer = shared.buffer as DeviceBuffer
      const reading = buffer.toArray() as Promise<ArrayBufferView>
      const value = world.random.integer(0, 255)
      if (world.chance(0.5)) {
        // The read has already begun.
        shared.dispose()
        world.compare(memory.name, bytesOf(await reading), expected)
      } else {
        world.compare(memory.name, bytesOf(await reading), expected)
        buffer.reinterpret('u8').fillSync(value)
        block.write(memory.offset, new Uint8Array(memory.byteLength).fill(value))
        shared.dispose()
      }
      world.refused(`${memory.name}, closed`, () => buffer.toArraySync(), [DisposedError])
      world.refused(`${memory.name}, closed`, () => shared.buffer, [DisposedError])
      await released
    } finally {
      port1.close()
      port2.close()
    }
    return memory.name
  },
}

/** Ways in which a transfer fails, with the errors that either side may report. */
const ends = {
  'the memory is disposed of': [DisposedError],
  'it is given up': [AbortedError, SystemError],
  'it takes too long': [TimeoutError, SystemError],
  'a port is closed': [SystemError],
} as const satisfies Record<string, Refusals>

const cutShort: Operation = {
  name: 'share memory and end it',
  weight: 3,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const way = world.one(Object.keys(ends) as (keyof typeof ends)[])
    const refusals = ends[way]
    await world.order(undefined, [{ block: memory.root.block, write: true }])
    const { port1, port2 } = new MessageChannel()
    const controller = new AbortController()
    const limit = way === 'it takes too long' ? world.random.integer(0, 2) : timeout
    const options = { timeout: limit, signal: controller.signal }
    const told = `${memory.name}: ${way}`
    const taking = receive(port2, options)
    const sending = share(port1, memory.buffer, options)
    const ended = Promise.all([
      world.either(`${told}, the sender`, sending, refusals),
      world.either(`${told}, the receiver`, taking, refusals),
    ])
    const turns = world.random.integer(0, 4)
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    if (way === 'the memory is disposed of') {
      memory.root.disposed = true
      await memory.root.dispose()
    }
    if (way === 'it is given up') controller.abort()
    if (way === 'a port is closed') world.one([port1, port2]).close()
    const [isSent, isTaken] = await ended
    // The transfer may have finished first. Then the receiver returns the memory. `released` resolves when the sender
    // gets that message, or when the receiver ends.
    if (isTaken) (await taking).dispose()
    if (isSent) await (await sending).released
    port1.close()
    port2.close()
    return told
  },
}

/** Returns the way in which memory of this name goes to another process, or undefined if it cannot. */
function wayOf(name: string): SharingWay | undefined {
  if (/^memory/.test(name)) return 'ipc'
  return /^mapped/.test(name) ? 'posix-fd' : undefined
}

/**
 * Compares the bytes that the other side found with the expected ones, and the way of sharing with the expected way.
 * Afterwards the memory holds the bytes that the other side wrote.
 */
async function exchange(
  world: World,
  told: string,
  peer: Peer,
  sharing: (signal: AbortSignal) => Promise<Sharing>,
  { way, expected, kills }: { way: SharingWay; expected: Parameters<World['compare']>[2]; kills: boolean },
  value: number,
): Promise<boolean> {
  const controller = new AbortController()
  const answer = peer.ask({ kind: 'shared', value, timeout })
  const sent = sharing(controller.signal)
  // The error says what went wrong on the other side.
  answer.catch((error: unknown) => controller.abort(error))
  if (kills) {
    const done = Promise.all([
      world.either(told, sent, [SystemError, AbortedError]),
      world.either(`${told}, its answer`, answer, [Error as never]),
    ])
    const turns = world.random.integer(0, 30)
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    await peer.end()
    const [isSent] = await done
    if (isSent) await (await sent).released
    return false
  }
  const [found, { way: taken, released }] = await Promise.all([answer, sent])
  world.equal(`the way of ${told}`, taken, way)
  world.compare(told, Buffer.from(found, 'base64'), expected)
  await released
  return true
}

const withOthers: Operation = {
  name: 'share memory with a thread or process',
  weight: 4,
  async run(world) {
    const kind = world.one(['process', 'process', 'thread'] as const)
    const kills = world.chance(0.05)
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const { block, device } = memory.root
    const told = `${memory.name} with another ${kind}${kills ? ' that ends' : ''}`
    const way = kind === 'thread' ? 'process' : wayOf(memory.root.name)
    if (way === undefined) {
      const { channel } = Peer.get(kind)
      const isKnown = /^(?:streamMemory|managed)/.test(memory.root.name)
      if (!isKnown) return undefined
      await world.rejects(told, share(channel, memory.buffer, { timeout }), [FeatureNotSupportedError])
      return `${told}, refused`
    }
    let given: MemoryLike = memory.buffer
    let event: Event | undefined
    if (way === 'ipc' && world.chance(0.3)) {
      // Only the event says when the content is ready.
      await world.order(undefined, [{ block, write: true }])
      const stream = world.one(world.liveStreams(device))
      event = Event.create(world.devices[device] as never, { interprocess: true, timing: false })
      await world.delay(stream, world.one([0.1, 1, 5]))
      fill(world, memory, stream, world.random.integer(0, 255))
      event.record(stream.stream)
      world.clocks.issue(stream.queue)
    } else given = await ready(world, memory)
    const expected = block.expected(memory.offset, memory.byteLength)
    const value = world.random.integer(0, 255)
    const peer = Peer.get(kind)
    const sharing = (signal: AbortSignal): Promise<Sharing> =>
      share(peer.channel, given, { timeout, signal, ...(event === undefined ? {} : { event }) })
    const isWritten = await exchange(world, told, peer, sharing, { way, expected, kills }, value)
    event?.dispose()
    await world.synchronizeDevice(device)
    if (isWritten) block.write(memory.offset, new Uint8Array(memory.byteLength).fill(value))
    else block.forget(memory.offset, memory.byteLength)
    return told
  },
}

const ofPool: Operation = {
  name: 'share memory of a pool',
  weight: 1,
  async run(world) {
    const stream = world.pick(world.liveStreams())
    if (stream === undefined) return undefined
    const kills = world.chance(0.05)
    const dtype: ModelType = world.one(modelTypes)
    const values = world.values(dtype, someLength(world))
    const pool = MemoryPool.create(world.devices[stream.device] as never, { handleTypes: 'posix-fd' })
    const buffer = pool.allocate(stream.stream, dtype, values.length)
    buffer.copyFrom(values as never, { stream: stream.stream })
    world.clocks.issue(stream.queue)
    const value = world.random.integer(0, 255)
    const expected = { bytes: bytesOf(values), defined: new Uint8Array(values.byteLength).fill(1) }
    const told = `memory of a pool on ${stream.name}`
    const peer = Peer.get()
    const sharing = (signal: AbortSignal): Promise<Sharing> =>
      share(peer.channel, pendingOn(stream, buffer), { timeout, signal })
    const isWritten = await exchange(world, told, peer, sharing, { way: 'pool', expected, kills }, value)
    if (isWritten) {
      const found = bytesOf((await buffer.toArray({ stream: stream.stream })) as ArrayBufferView)
      if (found.some((byte) => byte !== value)) throw new Mismatch(`${told} is not what the other process wrote`)
    }
    if (world.chance(0.5)) pool.dispose()
    buffer.disposeOn(stream.stream)
    pool.dispose()
    world.clocks.issue(stream.queue)
    return told
  },
}

export const sharedMemory: readonly Operation[] = [inThread, cutShort, withOthers, ofPool]
