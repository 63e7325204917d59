import type { DeviceBuffer, Stream } from '@shoal/driver'
import { type Communicator, group, type PreparedCollective, prepareGroup, type ReduceOp } from '@shoal/nccl'

/** Parameters of one measurement, equal on all ranks. */
export interface Setting {
  readonly worldSize: number
  readonly op: ReduceOp
  readonly root: number
  /** Elements of one part. */
  readonly count: number
}

/** Origin of a part of a result: a part of one rank, or that part of all ranks, reduced. */
export type Source = { readonly rank: number; readonly part: number } | { readonly part: number }

/** An NCCL operation, measured as in nccl-tests. */
export interface Operation {
  readonly name: string
  readonly reduces: boolean
  readonly rooted: boolean
  /** Number of parts of `count` elements on each side of a rank. */
  readonly sendParts: (worldSize: number) => number
  readonly recvParts: (worldSize: number) => number
  /** Bytes over the links per byte of the larger side. */
  readonly busFactor: (worldSize: number) => number
  /** In-place operands: the same memory, or the rank's part of the larger side. Undefined: not possible. */
  readonly inPlace: 'same' | 'part of recv' | 'part of send' | undefined
  /** Whether even one rank needs a group, because it sends and receives at the same time. */
  readonly needsGroup?: true
  /** Origin of each part of `recv` on rank `rank`; empty if it receives nothing. */
  readonly result: (rank: number, setting: Setting) => readonly Source[]
  /** Returns the call. `options` contain the stream, and `op` and `root` if the operation takes them. */
  readonly bind: Binding<() => void>
  /** Returns the prepared call, if NCCL's operation can be prepared. */
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

/** One rank's arguments of an operation; the buffers have the length that the operation needs. */
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
 * Returns a function that starts the operation as one group on all local ranks.
 *
 * It uses prepared calls if possible, as a program does for a repeated operation.
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
    // Each rank sends to the next rank and receives from the previous one.
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

/** Returns the elements per part if the larger side has at most `bytes`; whole 16-byte words if possible. */
export function countFor(operation: Operation, worldSize: number, bytes: number, elementBytes: number): number {
  const parts = Math.max(operation.sendParts(worldSize), operation.recvParts(worldSize))
  const count = Math.floor(bytes / elementBytes / parts)
  if (parts === 1) return count
  const word = 16 / elementBytes
  return count >= word ? count - (count % word) : count
}
