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
    // The same in the same order as in C: what comes before a buffer decides where in the device's memory it lies.
    const prepared = Array.from({ length: local }, (_, index) => prepare(first + index))
    const ranks = await Promise.all(prepared.map((one, index) => join(one, first + index, id)))
    return { greeting: `ready ${ncclVersion().value}${hasAllToAll ? '' : ' no all-to-all'}`, answer: answerFor(ranks) }
  },
})
// Communicators are left to the end of the process, as a benchmark that was told to end has nothing left to wait for.
process.exit()

interface Prepared {
  readonly device: Device
  readonly stream: Stream
  readonly send: DeviceBuffer<'f32'>
  readonly receive: DeviceBuffer<'f32'>
}

interface Rank extends Prepared {
  readonly communicator: Communicator
}

function prepare(rank: number): Prepared {
  const device = Device.get(rank)
  const stream = device.createStream({ nonBlocking: true })
  const send = DeviceBuffer.allocate(device, 'f32', most / 4)
  const receive = DeviceBuffer.allocate(device, 'f32', most / 4)
  for (const buffer of [send, receive]) buffer.fillSync(0)
  return { device, stream, send, receive }
}

async function join(prepared: Prepared, rank: number, id: UniqueId): Promise<Rank> {
  const { device } = prepared
  return { ...prepared, communicator: await Communicator.initRank({ device, rank, worldSize: world, id }) }
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

/** Queues the operation once on every rank of this process: loops as plain as those in C. */
function queueFor(ranks: readonly Rank[], operation: Operation, bytes: number): () => void {
  const whole = bytes / 4
  const part = Math.floor(whole / world)
  const [sent, received] = {
    'all-reduce': [whole, whole],
    'all-gather': [part, part * world],
    'reduce-scatter': [part * world, part],
    'all-to-all': [part * world, part * world],
  }[operation] as [number, number]
  const all = ranks.map(({ communicator, stream, send, receive }) => ({
    communicator,
    from: send.slice(0, sent),
    to: receive.slice(0, received),
    onStream: { stream },
    sum: { op: 'sum' as const, stream },
  }))
  switch (operation) {
    case 'all-reduce':
      return () => {
        for (const { communicator, from, to, sum } of all) communicator.allReduce(from, to, sum)
      }
    case 'all-gather':
      return () => {
        for (const { communicator, from, to, onStream } of all) communicator.allGather(from, to, onStream)
      }
    case 'reduce-scatter':
      return () => {
        for (const { communicator, from, to, sum } of all) communicator.reduceScatter(from, to, sum)
      }
    case 'all-to-all':
      return () => {
        for (const { communicator, from, to, onStream } of all) communicator.allToAll(from, to, onStream)
      }
  }
}

function synchronize(ranks: readonly Rank[]): void {
  for (const { stream } of ranks) stream.synchronizeSync()
}
