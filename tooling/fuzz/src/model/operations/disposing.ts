/** Disposes of objects: in order, while work uses them, and before they are used again. */
import type { DeviceBuffer, Stream } from '@shoal/driver'
import { DisposedError } from '@shoal/types'
import { bytesOf } from '../memory.js'
import type { Operation } from '../operation.js'
import { growables } from './making.js'
import { asOption, streamFor } from './transfers.js'

const disposeMemory: Operation = {
  name: 'dispose of memory',
  weight: 10,
  async run(world) {
    const root = world.pick(world.roots.filter(({ disposed }) => !disposed))
    if (root === undefined) return undefined
    // The library does not know of work on another device or of queued calls of a session, so the program must wait for
    // them.
    const uses = [root.block.lastWrite, ...root.block.reads].filter((use) => use !== undefined)
    if (uses.some(({ queue }) => queue.device !== root.device || queue.kind === 'thread')) {
      await world.order(undefined, [{ block: root.block, write: true }])
    }
    root.disposed = true
    await root.dispose()
    if (world.chance(0.3)) await root.dispose()
    return root.name
  },
}

const disposeOnStream: Operation = {
  name: 'dispose of memory on a stream',
  weight: 4,
  async run(world) {
    const memory = world.pick(world.liveMemories().filter(({ name }) => /^(streamMemory|pooled)/.test(name)))
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    await world.order(stream.queue, [{ block: memory.root.block, write: true }])
    memory.buffer.disposeOn(stream.stream)
    memory.root.disposed = true
    world.clocks.issue(stream.queue)
    return `${memory.name} on ${stream.name}`
  },
}

const disposeStream: Operation = {
  name: 'dispose of a stream',
  weight: 4,
  async run(world) {
    const stream = world.pick(world.liveStreams().filter(({ queue }) => queue.kind !== 'legacy'))
    if (stream === undefined) return undefined
    stream.disposed = true
    if (world.chance(0.5)) stream.stream.dispose()
    else {
      await stream.stream[Symbol.asyncDispose]()
      world.clocks.seen(stream.queue)
    }
    return stream.name
  },
}

const disposePinned: Operation = {
  name: 'dispose of page-locked memory',
  weight: 4,
  run(world) {
    const pinned = world.pick(world.livePinned())
    if (pinned === undefined) return undefined
    const { array, buffer } = pinned.buffer
    pinned.buffer.dispose()
    pinned.disposed = true
    // Copies in flight keep the memory, but its arrays become empty at once.
    world.equal(`byteLength of ${pinned.name}`, buffer.byteLength, 0)
    world.equal(`length of the array of ${pinned.name}`, array.length, 0)
    return pinned.name
  },
}

const disposeEvent: Operation = {
  name: 'dispose of an event',
  weight: 2,
  run(world) {
    const model = world.pick(world.events.filter(({ disposed }) => !disposed))
    if (model === undefined) return undefined
    const wait = world.chance(0.3) ? model.event.synchronize() : undefined
    model.event.dispose()
    model.disposed = true
    if (wait !== undefined) world.later(`a wait for ${model.name}`, wait, () => {})
    return `${model.name}${wait === undefined ? '' : ' during a wait'}`
  },
}

const resizeGrowable: Operation = {
  name: 'resize growable memory',
  weight: 3,
  async run(world) {
    const all = [...world.part(growables)].filter(([{ root }]) => !root.disposed)
    const found = world.pick(all)
    if (found === undefined) return undefined
    const [memory, growable] = found
    const least = Math.max(
      ...world.memories.filter(({ root }) => root === memory.root).map((view) => view.offset + view.byteLength),
    )
    const bytes = memory.byteLength / memory.length
    if (world.chance(0.2)) {
      const { length } = growable
      world.refused('resize above the maximum', () => growable.resize(growable.maximumLength + 1), [RangeError])
      world.equal(`length of ${memory.name}`, growable.length, length)
      return `${memory.name} too far`
    }
    // The part that the views of the model use must remain.
    const length = world.random.integer(Math.ceil(least / bytes), growable.maximumLength)
    growable.resize(length)
    world.equal(`length of ${memory.name}`, growable.length, length)
    return `${memory.name} to ${length}`
  },
}

const useDisposed: Operation = {
  name: 'use what is disposed of',
  weight: 5,
  async run(world) {
    const memory = world.pick(world.memories.filter(({ root }) => root.disposed))
    const stream = world.pick(world.streams.filter(({ disposed }) => disposed))
    const living = world.pick(world.liveMemories())
    if (memory === undefined || (stream !== undefined && world.chance(0.5))) {
      if (stream === undefined) return undefined
      const { name } = stream
      const gone: Stream = stream.stream
      world.refused(`${name}.record()`, () => gone.record(), [DisposedError])
      world.refused(`${name}.query()`, () => gone.query(), [DisposedError])
      world.refused(`${name}.handle`, () => gone.handle, [DisposedError])
      await world.rejects(`${name}.synchronize()`, gone.synchronize(), [DisposedError])
      if (living !== undefined && living.root.device === stream.device) {
        world.refused(`fill on ${name}`, () => living.buffer.fill(0 as never, { stream: gone }), [DisposedError])
        await world.rejects(`toArray on ${name}`, living.buffer.toArray({ stream: gone }), [DisposedError])
      }
      return name
    }
    const { name } = memory
    const gone: DeviceBuffer = memory.buffer as DeviceBuffer
    world.refused(`${name}.fill()`, () => gone.fill(0), [DisposedError])
    world.refused(`${name}.address`, () => gone.address, [DisposedError])
    world.refused(`${name}.slice()`, () => gone.slice(0), [DisposedError])
    world.refused(`${name}.copyFromSync()`, () => gone.copyFromSync(world.values(memory.dtype, memory.length)), [
      DisposedError,
    ])
    await world.rejects(`${name}.toArray()`, gone.toArray(), [DisposedError])
    const other = world.pick(world.liveMemories(memory.dtype, memory.length))
    if (other !== undefined) {
      world.refused(`copy from ${name}`, () => other.buffer.copyFrom(memory.buffer as never), [DisposedError])
    }
    return name
  },
}

const disposeInFlight: Operation = {
  name: 'dispose of memory while it is read',
  weight: 5,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [{ block: memory.root.block, write: true }]
    await world.order(stream.queue, uses)
    if (world.chance(0.6)) await world.delay(stream, world.one([0.05, 0.2, 0.5]))
    const expected = memory.root.block.expected(memory.offset, memory.byteLength)
    const told = `${memory.name} on ${stream.name}, disposed of at once`
    const promise = memory.buffer.toArray(asOption(world, stream))
    world.use(stream.queue, uses)
    world.later(told, promise, (found: ArrayBufferView) => world.compare(told, bytesOf(found), expected))
    memory.root.disposed = true
    if (stream.queue.kind !== 'legacy' && world.chance(0.3)) {
      stream.disposed = true
      stream.stream.dispose()
    }
    await memory.root.dispose()
    return told
  },
}

const disposingOptions: Operation = {
  name: 'dispose of memory in a getter of the options',
  weight: 2,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [{ block: memory.root.block, write: true }]
    await world.order(undefined, uses)
    const { root } = memory
    const options = {
      get stream() {
        ;(root.object as DeviceBuffer).dispose()
        return stream.stream
      },
    }
    const way = world.random.integer(0, 3)
    const { buffer } = memory
    root.disposed = true
    if (way === 0) world.refused(`fill of ${memory.name}`, () => buffer.fill(1 as never, options), [DisposedError])
    if (way === 1) {
      const values = world.values(memory.dtype, memory.length)
      world.refused(`copy to ${memory.name}`, () => buffer.copyFrom(values as never, options), [DisposedError])
    }
    if (way === 2) await world.rejects(`toArray of ${memory.name}`, buffer.toArray(options), [DisposedError])
    if (way === 3) world.refused(`toArraySync of ${memory.name}`, () => buffer.toArraySync(options), [DisposedError])
    return memory.name
  },
}

export const disposing: readonly Operation[] = [
  disposeMemory,
  disposeOnStream,
  disposeStream,
  disposePinned,
  disposeEvent,
  resizeGrowable,
  useDisposed,
  disposeInFlight,
  disposingOptions,
]
