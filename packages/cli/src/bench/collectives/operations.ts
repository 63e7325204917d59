import type { DeviceBuffer, Stream } from '@shoal/driver'
import { type Communicator, group, type PreparedCollective, prepareGroup, type ReduceOp } from '@shoal/nccl'

/** What is the same on all ranks in one measurement. */
export interface Setting {
  readonly worldSize: number
  readonly op: ReduceOp
  readonly root: number
  /** Elements of one part. */
  readonly count: number
}

/** Where a part of a result comes from: a part of one rank, or that part of all ranks, reduced. */
export type Source = { readonly rank: number; readonly part: number } | { readonly part: number }

/** One operation of NCCL, as nccl-tests measure it. */
export interface Operation {
  readonly name: string
  readonly reduces: boolean
  readonly rooted: boolean
  /** Parts of `count` elements on either side of a rank. */
  readonly sendParts: (worldSize: number) => number
  readonly recvParts: (worldSize: number) => number
  /** Bytes over the links for each byte of the larger side. */
  readonly busFactor: (worldSize: number) => number
  /** In place: the same memory, the rank's own part of the larger side, or not at all. */
  readonly inPlace: 'same' | 'part of recv' | 'part of send' | undefined
  /** Whether even one rank needs a group around the calls: it sends and receives at once. */
  readonly needsGroup?: true
  /** What rank `rank` has in `recv` afterwards, part by part; empty where nothing arrives. */
  readonly result: (rank: number, setting: Setting) => readonly Source[]
  /** Makes the call: `options` have the stream, and `op` and `root` where the operation takes them. */
  readonly bind: Binding<() => void>
  /** The same, prepared, where NCCL's operation can be. */
  readonly prepare?: Binding<PreparedCollective>
}

type Binding<Result> = (
  communicator: Communicator,
  send: DeviceBuffer,
  recv: DeviceBuffer,
  options: CallOptions,
) => Result

interface CallOptions {
  readonly stream: Stream
  readonly op: ReduceOp
  readonly root: number
}

/** What one rank calls an operation with; the buffers are as long as the operation needs. */
export interface Call extends CallOptions {
  readonly communicator: Communicator
  readonly send: DeviceBuffer
  readonly recv: DeviceBuffer
}

/** Returns the call that queues the operation once. */
export function prepareCall(operation: Operation, call: Call): () => void {
  return bindTo(operation, call, operation.bind)
}

/**
 * Returns what starts the operation once on all ranks of this process, as one group: prepared where it can be, as a
 * program does that repeats it.
 */
export function prepareStart(operation: Operation, calls: readonly Call[]): () => void {
  const { prepare, needsGroup = false } = operation
  const isGroup = calls.length > 1 || needsGroup
  if (prepare === undefined) {
    const made = calls.map((call) => prepareCall(operation, call))
    const queue = (): void => {
      for (const one of made) one()
    }
    return isGroup ? () => group(queue) : queue
  }
  const prepared = calls.map((call) => bindTo(operation, call, prepare))
  const start = isGroup ? prepareGroup(prepared) : (prepared[0] as PreparedCollective)
  return () => start.launch()
}

function bindTo<Result>(
  operation: Operation,
  { communicator, send, recv, stream, op, root }: Call,
  binding: Binding<Result>,
): Result {
  const options = { stream, ...(operation.reduces ? { op } : {}), ...(operation.rooted ? { root } : {}) }
  return binding(communicator, send, recv, options as CallOptions)
}

const one = (): number => 1
const each = (worldSize: number): number => worldSize
const share = (worldSize: number): number => (worldSize - 1) / worldSize
const everyRank = (worldSize: number): number[] => Array.from({ length: worldSize }, (_, rank) => rank)

const plain = { reduces: false, rooted: false, sendParts: one, recvParts: one, busFactor: share } as const

export const operations: readonly Operation[] = [
  {
    ...plain,
    name: 'all-reduce',
    reduces: true,
    busFactor: (worldSize) => 2 * share(worldSize),
    inPlace: 'same',
    result: () => [{ part: 0 }],
    bind: (communicator, send, recv, options) => () => communicator.allReduce(send, recv, options),
    prepare: (communicator, send, recv, options) => communicator.prepareAllReduce(send, recv, options),
  },
  {
    ...plain,
    name: 'all-gather',
    recvParts: each,
    inPlace: 'part of recv',
    result: (_, { worldSize }) => everyRank(worldSize).map((rank) => ({ rank, part: 0 })),
    bind: (communicator, send, recv, options) => () => communicator.allGather(send, recv, options),
    prepare: (communicator, send, recv, options) => communicator.prepareAllGather(send, recv, options),
  },
  {
    ...plain,
    name: 'reduce-scatter',
    reduces: true,
    sendParts: each,
    inPlace: 'part of send',
    result: (rank) => [{ part: rank }],
    bind: (communicator, send, recv, options) => () => communicator.reduceScatter(send, recv, options),
    prepare: (communicator, send, recv, options) => communicator.prepareReduceScatter(send, recv, options),
  },
  {
    ...plain,
    name: 'all-to-all',
    sendParts: each,
    recvParts: each,
    inPlace: undefined,
    result: (part, { worldSize }) => everyRank(worldSize).map((rank) => ({ rank, part })),
    bind: (communicator, send, recv, options) => () => communicator.allToAll(send, recv, options),
    prepare: (communicator, send, recv, options) => communicator.prepareAllToAll(send, recv, options),
  },
  {
    ...plain,
    name: 'broadcast',
    rooted: true,
    busFactor: one,
    inPlace: 'same',
    result: (_, { root }) => [{ rank: root, part: 0 }],
    bind: (communicator, send, recv, options) => () => communicator.broadcast(send, recv, options),
  },
  {
    ...plain,
    name: 'reduce',
    reduces: true,
    rooted: true,
    busFactor: one,
    inPlace: 'same',
    result: (rank, { root }) => (rank === root ? [{ part: 0 }] : []),
    bind: (communicator, send, recv, options) => () => communicator.reduce(send, recv, options),
  },
  {
    ...plain,
    name: 'gather',
    rooted: true,
    recvParts: each,
    inPlace: 'part of recv',
    result: (rank, { root, worldSize }) =>
      rank === root ? everyRank(worldSize).map((other) => ({ rank: other, part: 0 })) : [],
    bind: (communicator, send, recv, options) => () => communicator.gather(send, recv, options),
  },
  {
    ...plain,
    name: 'scatter',
    rooted: true,
    sendParts: each,
    inPlace: 'part of send',
    result: (part, { root }) => [{ rank: root, part }],
    bind: (communicator, send, recv, options) => () => communicator.scatter(send, recv, options),
  },
  {
    // Each rank sends to the next one and receives from the one before.
    ...plain,
    name: 'send-recv',
    needsGroup: true,
    busFactor: one,
    inPlace: undefined,
    result: (rank, { worldSize }) => [{ rank: (rank + worldSize - 1) % worldSize, part: 0 }],
    bind: (communicator, send, recv, { stream }) => {
      const { rank, worldSize } = communicator
      const next = { peer: (rank + 1) % worldSize, stream }
      const previous = { peer: (rank + worldSize - 1) % worldSize, stream }
      return () => {
        communicator.send(send, next)
        communicator.recv(recv, previous)
      }
    },
  },
]

/**
 * Elements of one part where the larger side of a rank has at most that many bytes; whole 16-byte words where it can.
 */
export function countFor(operation: Operation, worldSize: number, bytes: number, elementBytes: number): number {
  const parts = Math.max(operation.sendParts(worldSize), operation.recvParts(worldSize))
  const count = Math.floor(bytes / elementBytes / parts)
  if (parts === 1) return count
  const word = 16 / elementBytes
  return count >= word ? count - (count % word) : count
}
