/** NCCL with all ranks in this thread: collectives, groups, windows, derived communicators, aborts. */
import { DeviceBuffer } from '@shoal/driver'
import {
  Communicator,
  CommunicatorAbortedError,
  CommunicatorStateError,
  GroupStateError,
  group,
  groupEnd,
  groupOffThread,
  groupStart,
  type NcclMemory,
  type PreparedCollective,
} from '@shoal/nccl'
import { BusyError, DisposedError } from '@shoal/types'
import { integers, joined, partOf, reduced } from '../arithmetic.js'
import { graphsOf } from '../graphModel.js'
import { arrays, type Block, type Expected, type Memory, type ModelType, modelTypes } from '../memory.js'
import { Mismatch, type Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'
import { addRoot, memoryOf, someLength } from './making.js'

/** The communicators of all ranks. Here each rank has the number of its device. */
export interface Ranks {
  readonly name: string
  readonly communicators: readonly Communicator[]
  /** The device of each rank. */
  readonly devices: readonly number[]
  ended: boolean
}

const allRanks = (): Ranks[] => []
export const liveRanks = (world: World): Ranks[] => world.part(allRanks).filter(({ ended }) => !ended)

function add(world: World, communicators: readonly Communicator[], devices: readonly number[]): Ranks {
  const ranks = { name: world.name('ranks'), communicators, devices, ended: false }
  world.part(allRanks).push(ranks)
  world.cleanups.push(async () => {
    if (ranks.ended) return
    for (const device of ranks.devices) await world.synchronizeDevice(device)
    await Promise.all(ranks.communicators.map((communicator) => communicator.destroy()))
  })
  return ranks
}

const make: Operation = {
  name: 'make communicators',
  weight: 2,
  async run(world) {
    if (liveRanks(world).length > 1) return undefined
    const devices = world.chance(0.8) ? [...world.devices.keys()] : [world.random.integer(0, world.devices.length - 1)]
    return add(world, await Communicator.initAll(devices), devices).name
  },
}

const whole = ({ root, offset, byteLength }: Memory): Expected => root.block.expected(offset, byteLength)

export interface Part {
  readonly communicator: Communicator
  readonly send: Memory
  readonly recv: Memory
  readonly stream: StreamModel
}

export interface Collective {
  readonly told: string
  readonly parts: readonly Part[]
  /** Queues the part of one rank. */
  call(part: Part, rank: number): void
  /** Prepares the part of one rank for repeated use. Returns undefined if the collective cannot be prepared. */
  prepare(part: Part): PreparedCollective | undefined
  /** Returns the expected content of `recv` of each rank after the collective, from the current content. */
  results(): readonly (Expected | undefined)[]
}

const kinds = [
  'allReduce',
  'broadcast',
  'reduce',
  'allGather',
  'reduceScatter',
  'allToAll',
  'gather',
  'scatter',
  'ring',
] as const

/** Plans a collective: its operands and its results. Work that conflicts with it is ordered before it. */
export async function plan(
  world: World,
  ranks: Ranks,
  streamOf = (device: number): StreamModel => world.one(world.liveStreams(device)),
): Promise<Collective> {
  const size = ranks.communicators.length
  const kind = world.one(kinds)
  const reduces = kind === 'allReduce' || kind === 'reduce' || kind === 'reduceScatter'
  const dtype = world.one(reduces ? integers : modelTypes)
  const unit = someLength(world)
  const many = unit * size
  const sendLength = kind === 'reduceScatter' || kind === 'allToAll' || kind === 'scatter' ? many : unit
  const recvLength = kind === 'allGather' || kind === 'allToAll' || kind === 'gather' ? many : unit
  const inPlace = sendLength === recvLength && kind !== 'allToAll' && kind !== 'ring' && world.chance(0.2)
  const parts: Part[] = []
  for (const [rank, communicator] of ranks.communicators.entries()) {
    const device = ranks.devices[rank] as number
    const used = parts.flatMap(({ send, recv }) => [send, recv])
    const send = memoryOf(world, device, dtype, sendLength, used)
    const recv = inPlace ? send : memoryOf(world, device, dtype, recvLength, [...used, send])
    parts.push({ communicator, send, recv, stream: streamOf(device) })
  }
  await orderAll(world, parts)
  const root = world.random.integer(0, size - 1)
  const op = world.one(['sum', 'prod', 'min', 'max'] as const)
  const result = (rank: number, sent: readonly Expected[]): Expected | undefined => {
    switch (kind) {
      case 'allReduce':
        return reduced(dtype, op, sent)
      case 'broadcast':
        return sent[root]
      case 'reduce':
        return rank === root ? reduced(dtype, op, sent) : undefined
      case 'allGather':
        return joined(sent)
      case 'reduceScatter':
        return partOf(reduced(dtype, op, sent), rank, size)
      case 'allToAll':
        return joined(sent.map((from) => partOf(from, rank, size)))
      case 'gather':
        return rank === root ? joined(sent) : undefined
      case 'scatter':
        return partOf(sent[root] as Expected, rank, size)
      case 'ring':
        return sent[(rank + size - 1) % size]
    }
  }
  return {
    told: `${kind} of ${ranks.name}: ${parts.map(({ send, recv, stream }) => `${send.name} → ${recv.name} on ${stream.name}`).join(', ')}`,
    parts,
    results() {
      const sent = parts.map(({ send }) => whole(send))
      return parts.map((_, rank) => result(rank, sent))
    },
    prepare({ communicator, send, recv, stream }) {
      const options = { stream: stream.stream }
      const [from, to] = [send.buffer, recv.buffer]
      switch (kind) {
        case 'allReduce':
          return communicator.prepareAllReduce(from, to, { ...options, op })
        case 'reduceScatter':
          return communicator.prepareReduceScatter(from, to, { ...options, op })
        case 'allGather':
          return communicator.prepareAllGather(from, to, options)
        case 'allToAll':
          return communicator.prepareAllToAll(from, to, options)
        default:
          return undefined
      }
    },
    call({ communicator, send, recv, stream }, rank) {
      const options = { stream: stream.stream }
      const [from, to] = [send.buffer, recv.buffer]
      switch (kind) {
        case 'allReduce':
        case 'reduceScatter':
          return communicator[kind](from, to, { ...options, op })
        case 'reduce':
          return communicator.reduce(from, to, { ...options, op, root })
        case 'broadcast':
        case 'gather':
        case 'scatter':
          return communicator[kind](from, to, { ...options, root })
        case 'allGather':
        case 'allToAll':
          return communicator[kind](from, to, options)
        case 'ring':
          communicator.send(from, { ...options, peer: (rank + 1) % size })
          communicator.recv(to, { ...options, peer: (rank + size - 1) % size })
      }
    },
  }
}

/** Orders conflicting work before each part. */
export async function orderAll(world: World, parts: readonly Part[]): Promise<void> {
  for (const part of parts) await world.order(part.stream.queue, usesOf(part))
}

export function usesOf({ send, recv }: Part): { block: Block; write: boolean }[] {
  return [
    { block: send.root.block, write: false },
    { block: recv.root.block, write: true },
  ]
}

/** Records the results of a collective that was called. */
export function done(world: World, collective: Collective): void {
  const { parts } = collective
  const results = collective.results()
  for (const [rank, part] of parts.entries()) {
    world.use(part.stream.queue, usesOf(part))
    const result = results[rank]
    if (result !== undefined) part.recv.root.block.copy(part.recv.offset, result)
  }
}

export function callAll({ parts, call }: Collective): void {
  for (const [rank, part] of parts.entries()) call(part, rank)
}

const collective: Operation = {
  name: 'collective of NCCL',
  weight: 12,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined) return undefined
    const made = await plan(world, ranks)
    const way = world.random.integer(0, 3)
    if (way === 0) await groupOffThread(() => callAll(made))
    else if (way === 1) {
      groupStart()
      callAll(made)
      groupEnd()
    } else if (way === 2) group(() => group(() => callAll(made)))
    else group(() => callAll(made))
    done(world, made)
    if (world.chance(0.3)) {
      for (const { communicator, stream } of made.parts) {
        const clock = [...stream.queue.clock]
        world.later(made.told, communicator.synchronize(stream.stream), () => {
          for (const [index, count] of clock.entries()) {
            world.clocks.host[index] = Math.max(world.clocks.host[index] ?? 0, count ?? 0)
          }
        })
      }
    }
    return made.told
  },
}

const disposeInFlight: Operation = {
  name: 'dispose of operands of a collective',
  weight: 4,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined) return undefined
    const made = await plan(world, ranks)
    if (world.chance(0.5)) await world.delay(world.one(made.parts).stream, 0.2)
    const promise = groupOffThread(() => callAll(made))
    const part = world.one(made.parts)
    const victim = world.chance(0.5) ? part.send : part.recv
    const { root } = victim
    // 0 disposes of the memory, 1 of the stream, 2 of both.
    const goes = world.random.integer(0, 2)
    const outcome = world.either(made.told, promise, [DisposedError])
    // The disposal happens before the thread makes the calls, during them or after them.
    const turns = world.random.integer(0, 6)
    for (let turn = 0; turn < turns; turn += 1) await null
    if (world.chance(0.3)) await new Promise((resolve) => setImmediate(resolve))
    if (goes !== 1) {
      ;(root.object as DeviceBuffer).dispose()
      root.disposed = true
    }
    if (goes !== 0 && part.stream.queue.kind !== 'legacy') {
      part.stream.stream.dispose()
      part.stream.disposed = true
    }
    await outcome
    for (const device of ranks.devices) await world.synchronizeDevice(device)
    // It depends on timing whether the calls were made before the disposal.
    for (const { recv } of made.parts) recv.root.block.forget(recv.offset, recv.byteLength)
    return `${made.told}; ${victim.name} or ${part.stream.name} disposed of`
  },
}

class Deliberate extends Error {}

const brokenGroup: Operation = {
  name: 'break a group',
  weight: 3,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined) return undefined
    const made = await plan(world, ranks)
    const way = world.random.integer(0, 3)
    const break_ = (): void => {
      callAll(made)
      throw new Deliberate()
    }
    if (way === 0) world.refused('a group that throws', () => group(break_), [Deliberate])
    if (way === 1) await world.rejects('a group off the thread that throws', groupOffThread(break_), [Deliberate])
    if (way === 2) world.refused('groupEnd() without a start', () => groupEnd(), [GroupStateError])
    if (way === 3) {
      const { communicator, stream } = made.parts[0] as Part
      await new Promise<void>((resolve, reject) => {
        group(() => {
          world
            .rejects('synchronize() in a group', communicator.synchronize(stream.stream), [BusyError])
            .then(resolve, reject)
        })
      })
    }
    // No collective was started.
    return `${ranks.name}, way ${way}`
  },
}

const window: Operation = {
  name: 'register a window',
  weight: 2,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined) return undefined
    const dtype = world.one(modelTypes)
    const length = someLength(world)
    const memories: NcclMemory[] = await Promise.all(
      ranks.communicators.map((communicator) => communicator.allocate({ dtype, length })),
    )
    const free = world.chance(0.4)
    const windows = ranks.communicators.map((communicator, rank) =>
      communicator.registerWindow(memories[rank] as NcclMemory),
    )
    // If memory is freed while the call waits for its turn, the call must either have succeeded or have had no effect.
    const settled = Promise.allSettled(windows)
    const freed = free ? Promise.allSettled(memories.map((memory) => memory.free())) : undefined
    for (const outcome of await settled) {
      if (outcome.status === 'fulfilled') await outcome.value.dispose()
      else if (!free || !(outcome.reason instanceof DisposedError)) throw outcome.reason
    }
    for (const outcome of (await freed) ?? []) {
      if (outcome.status === 'rejected') throw outcome.reason
    }
    for (const memory of memories) await memory.free()
    for (const memory of memories) world.equal('whether memory is freed', memory.disposed, true)
    return `${ranks.name}: ${dtype} × ${length}${free ? ', freed meanwhile' : ''}`
  },
}

const ncclMemory: Operation = {
  name: 'make memory of NCCL',
  weight: 2,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined) return undefined
    const rank = world.random.integer(0, ranks.communicators.length - 1)
    const device = ranks.devices[rank] as number
    const dtype = world.one(modelTypes)
    const length = someLength(world)
    const memory = await (ranks.communicators[rank] as Communicator).allocate({ dtype, length })
    const view = DeviceBuffer.view(world.devices[device] as never, memory, dtype)
    const added = addRoot(world, 'ncclMemory', {
      buffer: view as DeviceBuffer<ModelType>,
      dtype,
      device,
      object: memory,
      dispose: () => (world.chance(0.5) ? memory.dispose() : memory.free()),
    })
    if (world.chance(0.3)) {
      const registration = (ranks.communicators[rank] as Communicator).register(memory)
      registration.dispose()
    }
    return `${added.name}: ${dtype} × ${arrays[dtype].name}`
  },
}

const derive: Operation = {
  name: 'split or shrink communicators',
  weight: 2,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined || liveRanks(world).length > 3) return undefined
    if (world.chance(0.3) && ranks.communicators.length > 1) {
      const exclude = [world.random.integer(0, ranks.communicators.length - 1)]
      const rest = ranks.communicators.filter((_, rank) => !exclude.includes(rank))
      const made = await Promise.all(rest.map((communicator) => communicator.shrink({ exclude })))
      return add(
        world,
        made,
        ranks.devices.filter((_, rank) => !exclude.includes(rank)),
      ).name
    }
    const colors = ranks.communicators.map(() => world.one([0, 0, 1, null]))
    const made = await Promise.all(
      ranks.communicators.map((communicator, rank) => communicator.split({ color: colors[rank] as number | null })),
    )
    const names: string[] = []
    for (const color of [0, 1]) {
      const members = [...colors.keys()].filter((rank) => colors[rank] === color)
      const communicators = members.map((rank) => made[rank])
      if (communicators.includes(undefined)) throw new Mismatch('split() gave a rank with a color nothing')
      if (members.length === 0) continue
      const devices = members.map((rank) => ranks.devices[rank] as number)
      names.push(add(world, communicators as Communicator[], devices).name)
    }
    return `${ranks.name} into ${names.join(' and ')}`
  },
}

/** Waits for all work, because an abort destroys the results of running work and of later work that used them. */
async function settleAll(world: World, ranks: Ranks): Promise<void> {
  for (const device of ranks.devices) await world.synchronizeDevice(device)
  await world.settle(true)
}

const end: Operation = {
  name: 'end communicators',
  weight: 2,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined) return undefined
    await settleAll(world, ranks)
    ranks.ended = true
    const { communicators } = ranks
    const graphs = world.part(graphsOf)
    const isCaptured = [...graphs.liveGraphs(), ...graphs.liveExecs()].some(({ needs }) =>
      communicators.some((one) => needs.has(one)),
    )
    const way = isCaptured ? 0 : world.random.integer(0, 3)
    if (isCaptured) {
      const [first] = communicators as [Communicator]
      await world.rejects('destroy() of a communicator that a graph uses', first.destroy(), [BusyError])
    }
    if (way === 0) await Promise.all(communicators.map((communicator) => communicator.abort()))
    else if (way === 1) {
      await Promise.all(communicators.map((communicator) => communicator.finalize()))
      await Promise.all(communicators.map((communicator) => communicator.destroy()))
    } else if (way === 2) {
      const ended = communicators.map((communicator) =>
        world.either('destroy() while abort()', communicator.destroy(), [CommunicatorAbortedError]),
      )
      await Promise.all([...ended, ...communicators.map((communicator) => communicator.abort())])
    } else await Promise.all(communicators.map((communicator) => communicator.destroy()))
    for (const device of ranks.devices) await world.synchronizeDevice(device)
    const [first] = communicators as [Communicator]
    const memory = world.pick(world.liveMemories().filter(({ root }) => root.device === ranks.devices[0]))
    if (memory !== undefined) {
      const call = (): void => first.allReduce(memory.buffer, memory.buffer, { stream: null })
      world.refused('allReduce() of an ended communicator', call, [DisposedError, CommunicatorAbortedError])
    }
    world.equal('whether a communicator has ended', first.disposed, true)
    return `${ranks.name}, way ${way}`
  },
}

const abortInFlight: Operation = {
  name: 'abort a collective that waits',
  weight: 1,
  async run(world) {
    const ranks = world.pick(liveRanks(world).filter(({ communicators }) => communicators.length > 1))
    if (ranks === undefined) return undefined
    await settleAll(world, ranks)
    const made = await plan(world, ranks)
    // One rank alone waits for the others, unless the call would first have to connect the ranks.
    const [first] = made.parts as [Part]
    try {
      made.call(first, 0)
    } catch (error) {
      if (error instanceof CommunicatorStateError) return `${ranks.name}: not connected`
      throw error
    }
    ranks.ended = true
    const waits = [
      first.communicator.synchronize(first.stream.stream),
      first.communicator.synchronize(first.stream.stream),
    ]
    const settled = waits.map((wait) => world.either('synchronize()', wait, [CommunicatorAbortedError]))
    await Promise.all(ranks.communicators.map((communicator) => communicator.abort()))
    await Promise.all(settled)
    for (const device of ranks.devices) await world.synchronizeDevice(device)
    for (const { recv } of made.parts) recv.root.block.forget(recv.offset, recv.byteLength)
    return made.told
  },
}

export const nccl: readonly Operation[] = [
  make,
  collective,
  disposeInFlight,
  brokenGroup,
  window,
  ncclMemory,
  derive,
  end,
  abortInFlight,
]
