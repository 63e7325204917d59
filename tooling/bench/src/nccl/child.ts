// One or more ranks in a Node process, the counterpart of native/collectives.c: FIRST-RANK LOCAL-RANKS RANKS BYTES
// [prepared]
import { type Operation, operations, prepareCall, prepareStart, repeat, timeOf } from '@shoal/cli/bench'
import { Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { Communicator, group, ncclVersion, UniqueId } from '@shoal/nccl'
import { nccl } from '@shoal/nccl-sys'
import { type Answer, serve } from '../processes/serve.js'

const [first = 0, local = 0, worldSize = 0, most = 0] = process.argv.slice(2, 6).map(Number)
const isPrepared = process.argv[6] === 'prepared'
const hasAllToAll = nccl.has('ncclAlltoAll')

await serve({
  ...(first === 0 ? { makeId: () => UniqueId.create().toBytes() } : {}),
  start: async (bytes) => {
    const id = UniqueId.fromBytes(bytes)
    // Allocates in the same order as the C program, because a buffer's location depends on earlier allocations.
    const prepared = Array.from({ length: local }, (_, index) => prepare(first + index))
    const ranks = await Promise.all(prepared.map((one, index) => join(one, first + index, id)))
    const readyLine = `ready ${ncclVersion().value}${hasAllToAll ? '' : ' no all-to-all'}`
    return { readyLine, answer: answerFor(ranks) }
  },
})
// Communicators end with the process, so exit without waiting for them.
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
  return { ...prepared, communicator: await Communicator.initRank({ device, rank, worldSize, id }) }
}

function answerFor(ranks: readonly Rank[]): Answer {
  return ([name, bytes, iterations, warmUps]) => {
    const operation = operations.find((one) => one.name === name)
    if (operation === undefined) throw new Error(`no operation ${name}`)
    const once = startFor(ranks, operation, Number(bytes))
    // Blocks like the C program, because the operation is timed and not the event loop.
    const wait = (): void => {
      for (const { stream } of ranks) stream.synchronizeSync()
    }
    return timeOf(Number(iterations), Number(warmUps), repeat(once, wait))
  }
}

/** Returns a function that starts the operation once on every rank of this process. */
function startFor(ranks: readonly Rank[], operation: Operation, bytes: number): () => void {
  const [sendParts, recvParts] = [operation.sendParts(worldSize), operation.recvParts(worldSize)]
  const count = Math.floor(bytes / 4 / Math.max(sendParts, recvParts))
  const operands = ranks.map(({ communicator, stream, send, receive }) => ({
    ...{ communicator, stream, op: 'sum' as const, root: 0 },
    send: send.slice(0, sendParts * count),
    recv: receive.slice(0, recvParts * count),
  }))
  if (isPrepared) return prepareStart(operation, operands)
  const calls = operands.map((one) => prepareCall(operation, one))
  const queue = (): void => {
    for (const call of calls) call()
  }
  return ranks.length > 1 ? () => group(queue) : queue
}
