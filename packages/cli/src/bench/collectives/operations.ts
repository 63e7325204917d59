import type { DeviceBuffer, Stream } from '@shoal/driver'
import type { Communicator, ReduceOp } from '@shoal/nccl'

/** What all ranks of one run have in common. */
export interface Setting {
  readonly worldSize: number
  readonly op: ReduceOp
  readonly root: number
  /** Elements of one part. */
  readonly count: number
}

/** Where a part of a result comes from: one part of one rank, or that part of all ranks, combined. */
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
  readonly queue: (
    communicator: Communicator,
    send: DeviceBuffer,
    recv: DeviceBuffer,
    stream: Stream,
    setting: Setting,
  ) => void
}

const one = (): number => 1
const each = (worldSize: number): number => worldSize
const share = (worldSize: number): number => (worldSize - 1) / worldSize
const everyRank = (worldSize: number): number[] => Array.from({ length: worldSize }, (_, rank) => rank)

export const operations: readonly Operation[] = [
  {
    name: 'all-reduce',
    reduces: true,
    rooted: false,
    sendParts: one,
    recvParts: one,
    busFactor: (worldSize) => 2 * share(worldSize),
    inPlace: 'same',
    result: () => [{ part: 0 }],
    queue: (communicator, send, recv, stream, { op, count }) =>
      communicator.allReduce(send, recv, { op, count, stream }),
  },
  {
    name: 'all-gather',
    reduces: false,
    rooted: false,
    sendParts: one,
    recvParts: each,
    busFactor: share,
    inPlace: 'part of recv',
    result: (_, { worldSize }) => everyRank(worldSize).map((rank) => ({ rank, part: 0 })),
    queue: (communicator, send, recv, stream, { count }) => communicator.allGather(send, recv, { count, stream }),
  },
  {
    name: 'reduce-scatter',
    reduces: true,
    rooted: false,
    sendParts: each,
    recvParts: one,
    busFactor: share,
    inPlace: 'part of send',
    result: (rank) => [{ part: rank }],
    queue: (communicator, send, recv, stream, { op, count }) =>
      communicator.reduceScatter(send, recv, { op, count, stream }),
  },
  {
    name: 'all-to-all',
    reduces: false,
    rooted: false,
    sendParts: each,
    recvParts: each,
    busFactor: share,
    inPlace: undefined,
    result: (part, { worldSize }) => everyRank(worldSize).map((rank) => ({ rank, part })),
    queue: (communicator, send, recv, stream, { count }) => communicator.allToAll(send, recv, { count, stream }),
  },
  {
    name: 'broadcast',
    reduces: false,
    rooted: true,
    sendParts: one,
    recvParts: one,
    busFactor: one,
    inPlace: 'same',
    result: (_, { root }) => [{ rank: root, part: 0 }],
    queue: (communicator, send, recv, stream, { root, count }) =>
      communicator.broadcast(send, recv, { root, count, stream }),
  },
  {
    name: 'reduce',
    reduces: true,
    rooted: true,
    sendParts: one,
    recvParts: one,
    busFactor: one,
    inPlace: 'same',
    result: (rank, { root }) => (rank === root ? [{ part: 0 }] : []),
    queue: (communicator, send, recv, stream, { op, root, count }) =>
      communicator.reduce(send, recv, { op, root, count, stream }),
  },
  {
    name: 'gather',
    reduces: false,
    rooted: true,
    sendParts: one,
    recvParts: each,
    busFactor: share,
    inPlace: 'part of recv',
    result: (rank, { root, worldSize }) =>
      rank === root ? everyRank(worldSize).map((other) => ({ rank: other, part: 0 })) : [],
    queue: (communicator, send, recv, stream, { root, count }) =>
      communicator.gather(send, recv, { root, count, stream }),
  },
  {
    name: 'scatter',
    reduces: false,
    rooted: true,
    sendParts: each,
    recvParts: one,
    busFactor: share,
    inPlace: 'part of send',
    result: (part, { root }) => [{ rank: root, part }],
    queue: (communicator, send, recv, stream, { root, count }) =>
      communicator.scatter(send, recv, { root, count, stream }),
  },
  {
    // Each rank sends to the next one and receives from the one before.
    name: 'send-recv',
    needsGroup: true,
    reduces: false,
    rooted: false,
    sendParts: one,
    recvParts: one,
    busFactor: one,
    inPlace: undefined,
    result: (rank, { worldSize }) => [{ rank: (rank + worldSize - 1) % worldSize, part: 0 }],
    queue: (communicator, send, recv, stream, { worldSize, count }) => {
      communicator.send(send, { peer: (communicator.rank + 1) % worldSize, count, stream })
      communicator.recv(recv, { peer: (communicator.rank + worldSize - 1) % worldSize, count, stream })
    },
  },
]

/** Elements of one part where the larger side of a rank has at most that many bytes; whole 16-byte words where it can. */
export function countFor(operation: Operation, worldSize: number, bytes: number, elementBytes: number): number {
  const parts = Math.max(operation.sendParts(worldSize), operation.recvParts(worldSize))
  const count = Math.floor(bytes / elementBytes / parts)
  if (parts === 1) return count
  const word = 16 / elementBytes
  return count >= word ? count - (count % word) : count
}
