import { isCapturing } from '@shoal/driver/basics'
import { nccl, ncclRedOp_t } from '@shoal/nccl-sys'
import {
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  requireOptions,
  type StreamLike,
  streamProtocol,
} from '@shoal/types'
import { checkOverlap, memoryAt, queueFor, type WireType, wireTypeOf } from '../arguments/operands.js'
import { isCollecting } from '../group/groupState.js'
import { copySignature, recordOperation, reductionSignature } from '../group/operationMatch.js'
import { beginOperation, check, prepare, submit } from '../group/submit.js'
import type { CheckedCollective, CollectiveArguments } from '../lifetime/checkedCollective.js'
import { keepInGraphs } from '../lifetime/keptByCaptures.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { copyable, partCount, reducible, sameCount, shareCount } from './counts.js'
import { type CollectiveOptions, collectiveKeys, type ReductionOptions, reductionKeys } from './options.js'
import { reduceOp } from './reduceOp.js'
import { scalarOf } from './reductionOps.js'
import {
  ncclAllGatherUnchecked,
  ncclAllReduceUnchecked,
  ncclAlltoAllUnchecked,
  ncclReduceScatterUnchecked,
} from './uncheckedCalls.gen.js'

// The collectives that are the same on all ranks, which training loops use most.

/** The differences between these collectives. */
export interface Kind {
  /** Its index in the communicator's `recent`. */
  readonly number: number
  /** Method of the communicator. */
  readonly api: string
  /** C function. */
  readonly name: string
  readonly reduces: boolean
  readonly call: (given: CollectiveArguments) => number
  /** Returns the count in elements, of a buffer or of a part. Throws if the buffers do not fit. */
  readonly countOf: (
    live: LiveCommunicator,
    source: MemoryRange,
    target: MemoryRange,
    wire: WireType,
    count: unknown,
    api: string,
  ) => number
  /** Throws if buffers or parts of `bytes` overlap without being in place. */
  readonly checkPlaces: (
    live: LiveCommunicator,
    source: MemoryRange,
    target: MemoryRange,
    bytes: number,
    api: string,
  ) => void
  /** Throws if the library lacks it. */
  readonly require?: () => void
}

export const allReduceKind: Kind = {
  number: 0,
  api: 'Communicator.allReduce',
  name: 'ncclAllReduce',
  reduces: true,
  call: ncclAllReduceUnchecked,
  countOf: (_, source, target, wire, count, api) => sameCount(source, target, wire, count, api),
  checkPlaces: (_, source, target, bytes, api) => checkOverlap(source, bytes, target, bytes, 0, api),
}

export const allGatherKind: Kind = {
  number: 1,
  api: 'Communicator.allGather',
  name: 'ncclAllGather',
  reduces: false,
  call: ncclAllGatherUnchecked,
  countOf: (live, source, target, wire, count, api) =>
    partCount(source, 'send', target, 'recv', live.worldSize, wire, count, api),
  checkPlaces: ({ rank, worldSize }, source, target, bytes, api) =>
    checkOverlap(source, bytes, target, bytes * worldSize, -rank * bytes, api),
}

export const reduceScatterKind: Kind = {
  number: 2,
  api: 'Communicator.reduceScatter',
  name: 'ncclReduceScatter',
  reduces: true,
  call: ncclReduceScatterUnchecked,
  countOf: (live, source, target, wire, count, api) =>
    partCount(target, 'recv', source, 'send', live.worldSize, wire, count, api),
  checkPlaces: ({ rank, worldSize }, source, target, bytes, api) =>
    checkOverlap(source, bytes * worldSize, target, bytes, rank * bytes, api),
}

export const allToAllKind: Kind = {
  number: 3,
  api: 'Communicator.allToAll',
  name: 'ncclAlltoAll',
  reduces: false,
  call: ncclAlltoAllUnchecked,
  countOf: (live, source, target, wire, count, api) => shareCount(source, target, live.worldSize, wire, count, api),
  // Never in place.
  checkPlaces: ({ worldSize }, source, target, bytes, api) =>
    checkOverlap(source, bytes * worldSize, target, bytes * worldSize, Number.NaN, api),
  require: () => void nccl.address('ncclAlltoAll', 22803),
}

/** Checks a collective and queues it. This is the hot path, so it allocates nothing unnecessary. */
export function queueCollective(
  live: LiveCommunicator,
  kind: Kind,
  send: MemoryLike,
  recv: MemoryLike,
  options: CollectiveOptions | ReductionOptions,
): void {
  try {
    const last = live.recent[kind.number]
    const checked =
      last !== undefined && isSame(last, send, recv, options, kind.reduces)
        ? last
        : checkOperands(live, kind, send, recv, options)
    queueChecked(live, kind, checked, send, recv, options.stream)
  } catch (error) {
    // Counts the operation as started but not made.
    beginOperation()
    throw error
  }
}

/** Queues a collective with checked operands. */
export function queueChecked(
  live: LiveCommunicator,
  kind: Kind,
  checked: CheckedCollective,
  send: unknown,
  recv: unknown,
  stream: unknown,
): void {
  checked.operation = recordOperation(live, checked.operation)
  if (isCollecting()) {
    queueLater(live, kind, checked, send, recv, stream)
    return
  }
  prepare(live, kind.name)
  const status = kind.call(checked)
  if (status !== 0) check(status, kind.name, live)
  if (isCapturing()) keepInGraphs(live, checked.queue.handle, [send, recv, scalarOf(checked.requestedOp)])
}

/** A separate function: one that makes a closure allocates for it in every call, even on paths without it. */
function queueLater(
  live: LiveCommunicator,
  kind: Kind,
  checked: CheckedCollective,
  send: unknown,
  recv: unknown,
  stream: unknown,
): void {
  beginOperation()
  submit(live, kind.name, () => kind.call(checked), send, recv, stream)
}

/**
 * True if an operation repeats the last checked one, as in a loop.
 *
 * Only frozen answers are kept, so the same objects mean the same memory and stream. Reading them throws after
 * disposal.
 */
function isSame(
  last: CheckedCollective,
  send: MemoryLike,
  recv: MemoryLike,
  options: ReductionOptions,
  reduces: boolean,
): boolean {
  return (
    send?.[memoryProtocol] === last.source &&
    recv?.[memoryProtocol] === last.target &&
    (options?.stream as StreamLike | undefined)?.[streamProtocol] === last.queue &&
    options.op === last.requestedOp &&
    options.count === last.requestedCount &&
    options.dtype === last.requestedDType &&
    hasKnownKeys(options, reduces)
  )
}

/** A fast form of `requireOptions`, which handles objects of other realms. */
function hasKnownKeys(options: object, reduces: boolean): boolean {
  if (options.constructor !== Object) return false
  for (const key in options) {
    if (key !== 'stream' && (key !== 'op' || !reduces) && key !== 'count' && key !== 'dtype') return false
  }
  return true
}

export function checkOperands(
  live: LiveCommunicator,
  kind: Kind,
  send: MemoryLike,
  recv: MemoryLike,
  options: ReductionOptions,
): CheckedCollective {
  const { api, name } = kind
  requireOptions<ReductionOptions>(
    options,
    api,
    kind.reduces ? reductionKeys : (collectiveKeys as typeof reductionKeys),
  )
  const source = memoryAt(send, live, api, 'send', false)
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const elements = kind.countOf(live, source, target, wire, options.count, api)
  const bytes = elements * wire.bytes
  kind.checkPlaces(live, source, target, bytes, api)
  let count = elements
  let type: CheckedCollective['type']
  let op: ncclRedOp_t | undefined
  if (kind.reduces) {
    type = reducible(wire, api)
    op = reduceOp(live, options.op, wire.dtype, api)
  } else {
    ;[count, type] = copyable(wire, elements)
  }
  const checked: CheckedCollective = {
    source,
    target,
    count,
    countHigh: Math.floor(count / 2 ** 32),
    type,
    op: op ?? ncclRedOp_t.ncclSum,
    communicator: live.handle,
    queue: queueFor(options.stream, live, api, source, target),
    requestedOp: kind.reduces ? options.op : undefined,
    requestedCount: options.count,
    requestedDType: options.dtype,
    operation: op === undefined ? copySignature(name, bytes) : reductionSignature(name, count, type, op),
  }
  kind.require?.()
  live.recent[kind.number] = isLasting(checked) ? checked : undefined
  return checked
}

/** True if equal arguments mean the same call next time; disposal is detected separately. */
export function isLasting({ requestedOp, source, target, queue }: CheckedCollective): boolean {
  // A user-defined operation may be disposed of before the next call.
  if (typeof requestedOp === 'object' || !Object.isFrozen(queue)) return false
  return [source, target].every((range) => Object.isFrozen(range) && (range.stream ?? undefined) === undefined)
}
