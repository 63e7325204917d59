// Some or all ranks in one process of Node, as native/collectives.c in C: FIRST-RANK LOCAL-RANKS RANKS BYTES
import { Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { Communicator, group, ncclVersion, UniqueId } from '@shoal/nccl'
import { nccl } from '@shoal/nccl-sys'
import { type Answer, serve } from '../ranks/serve.js'
import type { Operation } from './sizes.js'

const [first = 0, local = 0, world = 0, most = 0] = process.argv.slice(2).map(Number)
const hasAllToAll = nccl.has('ncclAlltoAll')

await serve({
  ...(first === 0 ? { makeId: () => UniqueId.create().toBytes() } : {}),
  start: async (bytes) => {
    const id = UniqueId.fromBytes(bytes)
    const ranks = await Promise.all(Array.from({ length: local }, (_, index) => join(first + index, id)))
    return { greeting: `ready ${ncclVersion().value}${hasAllToAll ? '' : ' no all-to-all'}`, answer: answerFor(ranks) }
  },
})
// Communicators are left to the end of the process, as a benchmark that was told to end has nothing left to wait for.
process.exit()

interface Rank {
  readonly communicator: Communicator
  readonly stream: Stream
  readonly send: DeviceBuffer<'f32'>
  readonly receive: DeviceBuffer<'f32'>
}

async function join(rank: number, id: UniqueId): Promise<Rank> {
  const device = Device.get(rank)
  const stream = device.createStream({ nonBlocking: true })
  const send = DeviceBuffer.zeros(device, 'f32', most / 4)
  const receive = DeviceBuffer.zeros(device, 'f32', most / 4)
  return { communicator: await Communicator.initRank({ device, rank, worldSize: world, id }), stream, send, receive }
}

function answerFor(ranks: readonly Rank[]): Answer {
  return ([operation, bytes, iterations, warmUps]) => {
    const queue = queueFor(ranks, operation as Operation, Number(bytes))
    const once = ranks.length > 1 ? () => group(queue) : queue
    for (let i = 0; i < Number(warmUps); i += 1) once()
    synchronize(ranks)
    const count = Number(iterations)
    const start = process.hrtime.bigint()
    for (let i = 0; i < count; i += 1) once()
    // Blocks as the C program does: it is the operation that is timed here, not the event loop.
    synchronize(ranks)
    return Number(process.hrtime.bigint() - start) / 1000 / count
  }
}

/** Queues the operation once on every rank of this process. */
function queueFor(ranks: readonly Rank[], operation: Operation, bytes: number): () => void {
  const whole = bytes / 4
  const part = Math.floor(whole / world)
  const each = <T extends object>(make: (rank: Rank) => T, queue: (one: T) => void): (() => void) => {
    const made = ranks.map(make)
    return () => {
      for (const one of made) queue(one)
    }
  }
  switch (operation) {
    case 'all-reduce':
      return each(
        ({ communicator, stream, send, receive }) => ({
          communicator,
          from: send.slice(0, whole),
          to: receive.slice(0, whole),
          options: { op: 'sum' as const, stream },
        }),
        ({ communicator, from, to, options }) => communicator.allReduce(from, to, options),
      )
    case 'all-gather':
      return each(
        ({ communicator, stream, send, receive }) => ({
          communicator,
          from: send.slice(0, part),
          to: receive.slice(0, part * world),
          options: { stream },
        }),
        ({ communicator, from, to, options }) => communicator.allGather(from, to, options),
      )
    case 'reduce-scatter':
      return each(
        ({ communicator, stream, send, receive }) => ({
          communicator,
          from: send.slice(0, part * world),
          to: receive.slice(0, part),
          options: { op: 'sum' as const, stream },
        }),
        ({ communicator, from, to, options }) => communicator.reduceScatter(from, to, options),
      )
    case 'all-to-all':
      return each(
        ({ communicator, stream, send, receive }) => ({
          communicator,
          from: send.slice(0, part * world),
          to: receive.slice(0, part * world),
          options: { stream },
        }),
        ({ communicator, from, to, options }) => communicator.allToAll(from, to, options),
      )
  }
}

function synchronize(ranks: readonly Rank[]): void {
  for (const { stream } of ranks) stream.synchronizeSync()
}
