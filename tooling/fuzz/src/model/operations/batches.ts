/** Batches of copies, and words of memory that streams write and wait for. */
import { DeviceBuffer, prepareCopies } from '@shoal/driver'
import { DisposedError } from '@shoal/types'
import { join } from '../clock.js'
import type { Memory, ModelType } from '../memory.js'
import type { Operation } from '../operation.js'
import type { World } from '../world.js'
import { addRoot } from './making.js'

interface BatchModel {
  readonly name: string
  readonly copies: ReturnType<typeof prepareCopies>
  readonly pairs: readonly (readonly [target: Memory, source: Memory])[]
  readonly device: number
}

const batches = (): BatchModel[] => []

const prepare: Operation = {
  name: 'prepare copies',
  weight: 3,
  run(world) {
    if (world.part(batches).length > 12) return undefined
    const device = world.random.integer(0, world.devices.length - 1)
    const free = new Set(world.liveMemories().filter(({ root }) => root.device === device))
    const pairs: (readonly [Memory, Memory])[] = []
    for (let tries = world.random.integer(1, 8); tries > 0; tries -= 1) {
      const target = world.pick([...free])
      const source = world.pick(
        [...free].filter(
          (one) => one.root.block !== target?.root.block && one.dtype === target?.dtype && one.length === target.length,
        ),
      )
      if (target === undefined || source === undefined) continue
      pairs.push([target, source])
      // The copies of a batch have no order, so no other copy may touch memory that one of them writes.
      for (const one of free) if (one.root.block === target.root.block) free.delete(one)
      for (const [to] of pairs) for (const one of free) if (one.root.block === to.root.block) free.delete(one)
      for (const one of free) if (one.root.block === source.root.block) free.delete(one)
    }
    if (pairs.length === 0) return undefined
    const copies = prepareCopies(
      world.devices[device] as never,
      pairs.map(([target, source]) => ({ target: target.buffer, source: source.buffer })),
    )
    const name = world.name('copies')
    world.part(batches).push({ name, copies, pairs, device })
    return `${name}: ${pairs.map(([to, from]) => `${from.name} → ${to.name}`).join(', ')}`
  },
}

const launch: Operation = {
  name: 'make prepared copies',
  weight: 8,
  async run(world) {
    const model = world.pick(world.part(batches))
    if (model === undefined) return undefined
    const { copies, pairs, device, name } = model
    const stream = world.pick(world.liveStreams(device).filter(({ queue }) => queue.kind !== 'legacy'))
    if (stream === undefined) return undefined
    const told = `${name} on ${stream.name}`
    if (pairs.some((pair) => pair.some(({ root }) => root.disposed))) {
      world.refused(told, () => copies.launch({ stream: stream.stream }), [DisposedError])
      return `${told}, refused`
    }
    const uses = pairs.flatMap(([target, source]) => [
      { block: target.root.block, write: true },
      { block: source.root.block, write: false },
    ])
    await world.order(stream.queue, uses)
    copies.launch({ stream: stream.stream })
    world.use(stream.queue, uses)
    for (const [target, source] of pairs)
      target.root.block.copy(target.offset, source.root.block.expected(source.offset, source.byteLength))
    return told
  },
}

/** Conditions that end a wait for a value. */
const conditions = {
  geq: (found: number, value: number): boolean => ((found - value) | 0) >= 0,
  eq: (found: number, value: number): boolean => found === value,
  and: (found: number, value: number): boolean => (found & value) !== 0,
  nor: (found: number, value: number): boolean => ~(found | value) !== 0,
} as const

const word: Operation = {
  name: 'let a stream wait for a word that another one writes',
  weight: 5,
  async run(world) {
    const streams = world.liveStreams().filter(({ queue }) => queue.kind !== 'legacy')
    const writer = world.pick(streams)
    // Two blocking streams could each wait for the default stream, which waits for the other one.
    const waiter = world.pick(
      streams.filter(
        (one) =>
          one !== writer &&
          one.device === writer?.device &&
          (one.queue.kind === 'nonBlocking' || writer.queue.kind === 'nonBlocking'),
      ),
    )
    if (writer === undefined || waiter === undefined) return undefined
    const value = world.random.word()
    const condition = world.one(['geq', 'eq', 'and', 'nor'] as const)
    const first = world.random.word()
    if (!conditions[condition](value, value)) return undefined
    const memory = flag(world, writer.device, first)
    const { block } = memory.root
    // The writer must not wait for work that waits for the waiter.
    await world.order(undefined, [{ block, write: true }])
    waiter.stream.waitValue(memory.buffer, value, condition)
    const delayed = world.chance(0.5)
    if (delayed) await world.delay(writer, 0.1)
    if (world.chance(0.5)) writer.stream.writeValue(memory.buffer, value)
    else {
      writer.stream.memoryOperations([
        { operation: 'write', memory: memory.buffer, value },
        { operation: 'wait', memory: memory.buffer, value, condition: 'eq' },
      ])
    }
    world.use(writer.queue, [{ block, write: true }])
    block.write(0, new Uint8Array(Uint32Array.of(value).buffer))
    // If the old value already ends the wait, the wait gives no order with the writer.
    if (!conditions[condition](first, value)) join(waiter.queue.clock, writer.queue.clock)
    world.use(waiter.queue, [{ block, write: false }])
    return `${waiter.name} for ${condition} ${value} by ${writer.name}`
  },
}

function flag(world: World, device: number, value: number): Memory {
  const buffer = DeviceBuffer.from(
    world.devices[device] as never,
    Uint32Array.of(value),
  ) as never as DeviceBuffer<ModelType>
  const dispose = async (): Promise<void> => {
    // No stream may still wait for the word.
    await world.synchronizeDevice(device)
    buffer.dispose()
  }
  const memory = addRoot(world, 'memory', { buffer, dtype: 'u32', device, object: buffer, dispose })
  memory.root.block.write(0, new Uint8Array(Uint32Array.of(value).buffer))
  return memory
}

export const batchesAndWords: readonly Operation[] = [prepare, launch, word]
