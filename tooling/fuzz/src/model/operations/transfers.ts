/** Copies and fills, queued, awaited and blocking; events and waits. */
import { elapsedMs } from '@shoal/driver'
import { StatusError } from '@shoal/types'
import { join } from '../clock.js'
import { arrays, bytesOf, type Memory } from '../memory.js'
import type { Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'
import { hostArray } from './hostArray.js'

/** Returns a stream of the memory's device. */
export function streamFor(world: World, memory: Memory): StreamModel {
  return world.one(world.liveStreams(memory.root.device))
}

/** Returns the stream as an option. The default stream may be left to the library. */
export function asOption(world: World, stream: StreamModel): { stream?: StreamModel['stream'] } {
  return stream.queue.kind === 'legacy' && world.chance(0.5) ? {} : { stream: stream.stream }
}

const fill: Operation = {
  name: 'fill',
  weight: 10,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [{ block: memory.root.block, write: true }]
    await world.order(stream.queue, uses)
    const value = world.random.integer(0, 100)
    const element = memory.dtype === 'i64' && world.chance(0.5) ? BigInt(value) : value
    const blocks = world.chance(0.3)
    if (blocks) memory.buffer.fillSync(element as never, asOption(world, stream))
    else memory.buffer.fill(element as never, asOption(world, stream))
    world.use(stream.queue, uses)
    if (blocks) world.clocks.seen(stream.queue)
    const filled = new arrays[memory.dtype](memory.length).fill(
      (memory.dtype === 'i64' ? BigInt(value) : value) as never,
    )
    memory.root.block.write(memory.offset, bytesOf(filled))
    return `${memory.name} with ${value} on ${stream.name}`
  },
}

const copyFromHost: Operation = {
  name: 'copy from an array',
  weight: 10,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [{ block: memory.root.block, write: true }]
    await world.order(stream.queue, uses)
    const { array, bytes, kind, refusals } = hostArray(world, memory.dtype, memory.length)
    const blocks = world.chance(0.4)
    const options = asOption(world, stream)
    const copy = (): unknown =>
      blocks ? memory.buffer.copyFromSync(array as never, options) : memory.buffer.copyFrom(array as never, options)
    const told = `${memory.name} from ${kind} on ${stream.name}`
    if (refusals.length > 0) {
      world.refused(told, copy, refusals)
      return `${told}, refused`
    }
    const written = bytes.slice()
    copy()
    // The array may change only after the copy has ended.
    if (blocks) bytes.fill(0xee)
    world.use(stream.queue, uses)
    if (blocks) world.clocks.seen(stream.queue)
    memory.root.block.write(memory.offset, written)
    return told
  },
}

const copyFromPinned: Operation = {
  name: 'copy from page-locked memory',
  weight: 6,
  async run(world) {
    const pinned = world.pick(world.livePinned())
    if (pinned === undefined) return undefined
    const memory = world.pick(world.liveMemories(pinned.dtype, pinned.buffer.length))
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [
      { block: memory.root.block, write: true },
      { block: pinned.block, write: false },
    ]
    await world.order(stream.queue, uses)
    memory.buffer.copyFrom(pinned.buffer as never, asOption(world, stream))
    world.use(stream.queue, uses)
    memory.root.block.copy(memory.offset, pinned.block.expected(0, pinned.block.bytes.length))
    if (world.chance(0.15)) {
      // The copy holds the memory until it ends.
      pinned.buffer.dispose()
      pinned.disposed = true
    }
    return `${memory.name} from ${pinned.name} on ${stream.name}${pinned.disposed ? ', disposed of at once' : ''}`
  },
}

const copyToPinned: Operation = {
  name: 'copy to page-locked memory',
  weight: 6,
  async run(world) {
    const pinned = world.pick(world.livePinned())
    if (pinned === undefined) return undefined
    const memory = world.pick(world.liveMemories(pinned.dtype, pinned.buffer.length))
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [
      { block: memory.root.block, write: false },
      { block: pinned.block, write: true },
    ]
    await world.order(stream.queue, uses)
    const promise = memory.buffer.copyTo(pinned.buffer as never, asOption(world, stream))
    world.use(stream.queue, uses)
    pinned.block.copy(0, memory.root.block.expected(memory.offset, memory.byteLength))
    const told = `${memory.name} to ${pinned.name} on ${stream.name}`
    if (world.chance(0.15)) {
      pinned.buffer.dispose()
      pinned.disposed = true
    }
    world.later(told, promise, () => {})
    return pinned.disposed ? `${told}, disposed of at once` : told
  },
}

const copyBetween: Operation = {
  name: 'copy between memories',
  weight: 12,
  async run(world) {
    const target = world.pick(world.liveMemories())
    if (target === undefined) return undefined
    const source = world.pick(
      world.liveMemories(target.dtype, target.length).filter(({ root }) => root !== target.root),
    )
    if (source === undefined) return undefined
    const stream = streamFor(world, target)
    const uses = [
      { block: target.root.block, write: true },
      { block: source.root.block, write: false },
    ]
    await world.order(stream.queue, uses)
    const blocks = world.chance(0.3)
    const told = `${target.name} from ${source.name} on ${stream.name}`
    try {
      if (blocks) target.buffer.copyFromSync(source.buffer as never, asOption(world, stream))
      else target.buffer.copyFrom(source.buffer as never, asOption(world, stream))
    } catch (error) {
      // Another device cannot use mapped memory or memory of pools unless it was given access.
      const isPlain = [target, source].every(({ root }) => /^(memory|managed)/.test(root.name))
      if (isPlain || target.root.device === source.root.device || !(error instanceof StatusError)) throw error
      return `${told}, refused`
    }
    world.use(stream.queue, uses)
    if (blocks) world.clocks.seen(stream.queue)
    target.root.block.copy(target.offset, source.root.block.expected(source.offset, source.byteLength))
    return told
  },
}

const read: Operation = {
  name: 'read',
  weight: 16,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [{ block: memory.root.block, write: false }]
    await world.order(stream.queue, uses)
    const expected = memory.root.block.expected(memory.offset, memory.byteLength)
    const told = `${memory.name} on ${stream.name}`
    const options = asOption(world, stream)
    if (world.chance(0.4)) {
      const found = memory.buffer.toArraySync(options)
      world.use(stream.queue, uses)
      world.clocks.seen(stream.queue)
      world.compare(told, bytesOf(found), expected)
      return `${told}, blocking`
    }
    const { buffer } = memory
    const promise = buffer.toArray(options)
    world.use(stream.queue, uses)
    world.later(told, promise, (found: ArrayBufferView) => world.compare(told, bytesOf(found), expected))
    return told
  },
}

const readInto: Operation = {
  name: 'read into an array',
  weight: 8,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [{ block: memory.root.block, write: false }]
    await world.order(stream.queue, uses)
    const expected = memory.root.block.expected(memory.offset, memory.byteLength)
    const { array, bytes, kind, refusals, check } = hostArray(world, memory.dtype, memory.length)
    const told = `${memory.name} into ${kind} on ${stream.name}`
    const options = asOption(world, stream)
    const blocks = world.chance(0.4)
    if (refusals.length > 0) {
      if (blocks) world.refused(told, () => memory.buffer.copyToSync(array as never, options), refusals)
      else await world.rejects(told, memory.buffer.copyTo(array as never, options), refusals)
      check()
      return `${told}, refused`
    }
    if (blocks) {
      memory.buffer.copyToSync(array as never, options)
      world.use(stream.queue, uses)
      world.clocks.seen(stream.queue)
      world.compare(told, bytes, expected)
      check()
      return `${told}, blocking`
    }
    const promise = memory.buffer.copyTo(array as never, options)
    world.use(stream.queue, uses)
    world.later(told, promise, () => {
      world.compare(told, bytes, expected)
      check()
    })
    return told
  },
}

const hostAccess: Operation = {
  name: 'use page-locked memory from the host',
  weight: 5,
  async run(world) {
    const pinned = world.pick(world.livePinned())
    if (pinned === undefined) return undefined
    await world.order(undefined, [{ block: pinned.block, write: true }])
    const { array } = pinned.buffer
    const found = bytesOf(array as ArrayBufferView)
    world.compare(pinned.name, found, pinned.block.expected(0, found.length))
    const values = bytesOf(world.values(pinned.dtype, pinned.buffer.length))
    found.set(values)
    pinned.block.write(0, values)
    return pinned.name
  },
}

const delay: Operation = {
  name: 'keep a stream busy',
  weight: 6,
  async run(world) {
    const stream = world.pick(world.liveStreams())
    if (stream === undefined) return undefined
    await world.delay(stream, world.one([0.02, 0.05, 0.1, 0.2, 0.5, 2]))
    return stream.name
  },
}

const synchronize: Operation = {
  name: 'wait for a stream',
  weight: 6,
  async run(world) {
    const stream = world.pick(world.liveStreams())
    if (stream === undefined) return undefined
    const clock = [...stream.queue.clock]
    const way = world.random.integer(0, 3)
    if (way === 0) stream.stream.synchronizeSync()
    if (way === 1) await stream.stream.synchronize()
    if (way === 2) await world.synchronizeDevice(stream.device)
    if (way === 3) {
      world.later(stream.name, stream.stream.synchronize({ timeout: 60_000 }), () => join(world.clocks.host, clock))
    } else if (way !== 2) {
      join(world.clocks.host, clock)
      const isShared = stream.queue.kind === 'legacy' && world.sharesStreams
      if (!isShared) world.equal(`query() of ${stream.name}`, stream.stream.query(), true)
    }
    return stream.name
  },
}

const record: Operation = {
  name: 'record an event',
  weight: 5,
  run(world) {
    const model = world.pick(world.events.filter(({ disposed }) => !disposed))
    if (model === undefined) return undefined
    const stream = world.pick(world.liveStreams(model.device))
    if (stream === undefined) return undefined
    if (world.chance(0.5)) stream.stream.record(model.event)
    else model.event.record(stream.stream)
    world.clocks.issue(stream.queue)
    model.mark = [...stream.queue.clock]
    return `${model.name} on ${stream.name}`
  },
}

const useEvent: Operation = {
  name: 'wait for an event',
  weight: 6,
  async run(world) {
    const model = world.pick(world.events.filter(({ disposed }) => !disposed))
    if (model === undefined) return undefined
    const way = world.random.integer(0, 3)
    const { mark } = model
    if (way === 0) {
      const stream = world.pick(world.liveStreams())
      if (stream === undefined) return undefined
      stream.stream.waitEvent(model.event)
      if (mark !== undefined) join(stream.queue.clock, mark)
      return `${stream.name} for ${model.name}`
    }
    if (way === 1) model.event.synchronizeSync()
    if (way === 2) await model.event.synchronize()
    if (way === 3) {
      const other = world.one(world.events.filter(({ disposed }) => !disposed))
      if (model.mark === undefined || other.mark === undefined || !model.event.timing || !other.event.timing) {
        world.refused('elapsedMs', () => elapsedMs(model.event, other.event), [TypeError, StatusError])
        return undefined
      }
      if (model.device !== other.device) return undefined
      model.event.synchronizeSync()
      other.event.synchronizeSync()
      if (!(Math.abs(elapsedMs(model.event, other.event)) < 3_600_000)) throw new Error('elapsedMs gave nonsense')
      join(world.clocks.host, other.mark)
    }
    if (mark !== undefined) join(world.clocks.host, mark)
    world.equal(`query() of ${model.name}`, model.event.query(), true)
    return model.name
  },
}

const hostFunction: Operation = {
  name: 'call a host function',
  weight: 2,
  run(world) {
    const stream = world.pick(world.liveStreams())
    if (stream === undefined) return undefined
    const clock = [...stream.queue.clock]
    let calls = 0
    const promise = stream.stream.hostFunction(() => {
      calls += 1
    })
    world.clocks.issue(stream.queue)
    world.later(`a host function of ${stream.name}`, promise, () => {
      world.equal('calls of a host function', calls, 1)
      join(world.clocks.host, clock)
    })
    return stream.name
  },
}

export const transfers: readonly Operation[] = [
  fill,
  copyFromHost,
  copyFromPinned,
  copyToPinned,
  copyBetween,
  read,
  readInto,
  hostAccess,
  delay,
  synchronize,
  record,
  useEvent,
  hostFunction,
]
