/** Memory, events and pools that another process opens, or that this process opens again. */
import {
  Event,
  type IpcEventHandle,
  IpcMemory,
  type IpcMemoryHandle,
  ipcEventHandle,
  ipcMemoryHandle,
  MemoryPool,
} from '@shoal/driver'
import * as runtime from '@shoal/runtime'
import { StatusError } from '@shoal/types'
import { bytesOf, type Expected, modelTypes } from '../memory.js'
import type { Operation } from '../operation.js'
import { Peer } from '../peer.js'
import type { World } from '../world.js'
import { someLength } from './making.js'

const isAllocated = (name: string): boolean => name.startsWith('memory')

/** A handle as it arrives after a round trip through JSON. */
const sent = <T>(handle: T): T => JSON.parse(JSON.stringify(handle)) as T

function compareFound(world: World, told: string, found: string, expected: Expected): void {
  world.compare(told, Buffer.from(found, 'base64'), expected)
}

const shareMemory: Operation = {
  name: 'share memory with another process',
  weight: 3,
  async run(world) {
    const memory = world.pick(world.liveMemories().filter(({ root }) => isAllocated(root.name)))
    if (memory === undefined) return undefined
    const { block, device } = memory.root
    await world.order(undefined, [{ block, write: true }])
    const handle: IpcMemoryHandle = sent(ipcMemoryHandle(memory.buffer))
    const open = world.chance(0.5)
      ? () => IpcMemory.open(world.devices[device] as never, handle)
      : () => runtime.IpcMemory.open(handle, { device: world.runtimeDevices[device] as never })
    if (world.chance(0.3)) world.refused(`${memory.name} by its own process`, open, [StatusError])
    const value = world.random.integer(0, 255)
    const told = `${memory.name} by another process`
    const expected = block.expected(memory.offset, memory.byteLength)
    compareFound(world, told, await Peer.get().ask({ kind: 'memory', device, handle, value }), expected)
    block.write(memory.offset, new Uint8Array(memory.byteLength).fill(value))
    return told
  },
}

const shareNothing: Operation = {
  name: 'share memory that cannot be shared so',
  weight: 1,
  run(world) {
    const memory = world.pick(
      world.liveMemories().filter(({ root }) => /^(?:streamMemory|mapped|growable)/.test(root.name)),
    )
    if (memory === undefined) return undefined
    world.refused(`a handle of ${memory.name}`, () => ipcMemoryHandle(memory.buffer), [StatusError])
    return memory.name
  },
}

const shareEvent: Operation = {
  name: 'share an event with another process',
  weight: 2,
  async run(world) {
    const stream = world.pick(world.liveStreams())
    if (stream === undefined) return undefined
    const { device, queue } = stream
    using event = Event.create(world.devices[device] as never, { interprocess: true, timing: false })
    if (world.chance(0.5)) await world.delay(stream, world.one([0.1, 1, 5]))
    event.record(stream.stream)
    world.clocks.issue(queue)
    const handle: IpcEventHandle = sent(ipcEventHandle(event))
    world.equal(`an event on ${stream.name}`, await Peer.get().ask({ kind: 'event', device, handle }), 'true')
    world.equal('the event here', event.query(), true)
    world.clocks.seen(queue)
    return `on ${stream.name}`
  },
}

const sharePool: Operation = {
  name: 'share a pool',
  weight: 3,
  async run(world) {
    const model = world.pick(world.liveStreams())
    if (model === undefined) return undefined
    const { device, stream } = model
    const owner = world.devices[device] as never
    const dtype = world.one(modelTypes)
    const values = world.values(dtype, someLength(world))
    const pool = MemoryPool.create(owner, { handleTypes: 'posix-fd' })
    const buffer = pool.allocate(stream, dtype, values.length)
    buffer.copyFrom(values as never, { stream })
    world.clocks.issue(model.queue)
    await stream.synchronize()
    world.clocks.seen(model.queue)
    const pointer = sent(pool.exportPointer(buffer))
    const handle = pool.export()
    const value = world.random.integer(0, 255)
    const expected = { bytes: bytesOf(values), defined: new Uint8Array(values.byteLength).fill(1) }
    const told = `memory of a pool on ${model.name}`
    const isHere = world.chance(0.5)
    if (isHere) {
      const imported = MemoryPool.import(owner, handle)
      const alias = imported.importPointer(stream, pointer)
      world.compare(`${told}, imported`, bytesOf((await alias.toArray({ stream })) as ArrayBufferView), expected)
      alias.reinterpret('u8').fill(value as never, { stream })
      // The memory keeps its pool alive.
      if (world.chance(0.5)) imported.dispose()
      alias.disposeOn(stream)
      imported.dispose()
    } else {
      compareFound(world, told, await Peer.get().askOfPool({ kind: 'pool', device, pointer, value }, handle), expected)
    }
    handle.dispose()
    const found = (await buffer.toArray({ stream })) as ArrayBufferView
    const filled = new Uint8Array(values.byteLength).fill(value)
    world.compare(`${told}, afterwards`, bytesOf(found), { bytes: filled, defined: expected.defined })
    if (world.chance(0.5)) pool.dispose()
    if (world.chance(0.5)) buffer.disposeOn(stream)
    else await buffer[Symbol.asyncDispose]()
    pool.dispose()
    world.clocks.issue(model.queue)
    return `${told}, ${isHere ? 'imported here' : 'imported by another process'}`
  },
}

export const otherProcess: readonly Operation[] = [shareMemory, shareNothing, shareEvent, sharePool]
