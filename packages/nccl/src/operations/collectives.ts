import { ncclBroadcast, ncclGather, ncclRedOp_t, ncclReduce, ncclScatter } from '@shoal/nccl-sys'
import {
  type DType,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StreamLike,
  streamProtocol,
} from '@shoal/types'
import { movement, noteOperation, reduction } from '../group/agreement.js'
import { isCollecting } from '../group/groupState.js'
import { check, enter, submit } from '../group/submit.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import type { AgreedOperation, CheckedCollective, RecentCollectives } from '../lifetime/noted.js'
import { shown } from '../shown.js'
import { requireNcclVersion } from '../version.js'
import {
  allGatherCall,
  allReduceCall,
  allToAllCall,
  type CollectiveCall,
  reduceScatterCall,
  requireAllToAll,
} from './collectiveCalls.js'
import { checkedRank, checkOptions, copyable, ownCount, partCount, reducible, sameCount, shareCount } from './counts.js'
import { checkOverlap, memoryAt, streamAt, streamHandleAt, type WireType, wireTypeOf } from './operands.js'
import { PreMulSum } from './reductionOps.js'

/** How the elements of all ranks become one: `ncclSum`, `ncclProd`, `ncclMax`, `ncclMin`, `ncclAvg` (NCCL 2.10). */
export type ReduceOp = 'sum' | 'prod' | 'max' | 'min' | 'avg'

/** What all operations take. */
export interface CollectiveOptions {
  /** Stream the operation is queued on: a stream object, a bare `cudaStream_t`, or null for the default stream. */
  readonly stream: StreamLike | bigint | null
  /** Number of elements. Default: all of them, and then the buffers have to match. */
  readonly count?: number
  /** Type of the elements; needed where neither buffer carries one. */
  readonly dtype?: DType
}

/** What operations that combine elements take. */
export interface ReductionOptions extends CollectiveOptions {
  /** A named operation, or one made by `createPreMulSum` of the same communicator. Default `'sum'`. */
  readonly op?: ReduceOp | PreMulSum
}

/** The rank that an operation is about. */
export interface RootOptions {
  /** Rank whose data is sent (broadcast, scatter) or that gets the result (reduce, gather). */
  readonly root: number
}

const reduceOps: { readonly [O in ReduceOp]: ncclRedOp_t } = {
  sum: ncclRedOp_t.ncclSum,
  prod: ncclRedOp_t.ncclProd,
  max: ncclRedOp_t.ncclMax,
  min: ncclRedOp_t.ncclMin,
  avg: ncclRedOp_t.ncclAvg,
}

const firstWithAverage = 21003

export function allReduce(live: LiveCommunicator, send: MemoryLike, recv: MemoryLike, options: ReductionOptions): void {
  const last = live.recent?.allReduce
  const isKnown = last !== undefined && isSame(last, send, recv, options)
  queue(live, isKnown ? last : checkAllReduce(live, send, recv, options), allReduceCall)
}

export function allGather(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: CollectiveOptions,
): void {
  const last = live.recent?.allGather
  const isKnown = last !== undefined && isSame(last, send, recv, options)
  queue(live, isKnown ? last : checkAllGather(live, send, recv, options), allGatherCall)
}

export function reduceScatter(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: ReductionOptions,
): void {
  const last = live.recent?.reduceScatter
  const isKnown = last !== undefined && isSame(last, send, recv, options)
  queue(live, isKnown ? last : checkReduceScatter(live, send, recv, options), reduceScatterCall)
}

export function allToAll(live: LiveCommunicator, send: MemoryLike, recv: MemoryLike, options: CollectiveOptions): void {
  const last = live.recent?.allToAll
  const isKnown = last !== undefined && isSame(last, send, recv, options)
  queue(live, isKnown ? last : checkAllToAll(live, send, recv, options), allToAllCall)
}

/** What programs do most, so nothing is made that the call does not need. */
function queue(live: LiveCommunicator, checked: CheckedCollective, call: CollectiveCall): void {
  const { operation } = checked
  noteOperation(live, operation)
  if (isCollecting()) {
    submit(live, operation.api, () => call(checked))
    return
  }
  enter(live, operation.api)
  const status = call(checked)
  if (status !== 0) check(status, operation.api, live)
}

/**
 * Whether an operation is the one that was checked last, as in a loop. Only frozen operands are kept for that, so the same
 * objects mean the same memory and stream; reading them throws where these have been disposed of.
 */
function isSame(
  last: CheckedCollective,
  send: MemoryLike,
  recv: MemoryLike,
  options: CollectiveOptions & { readonly op?: unknown },
): boolean {
  return (
    send?.[memoryProtocol] === last.source &&
    recv?.[memoryProtocol] === last.target &&
    (options?.stream as StreamLike | undefined)?.[streamProtocol] === last.queue &&
    options.op === last.requestedOp &&
    options.count === last.requestedCount &&
    options.dtype === last.requestedDType
  )
}

/** Keeps a checked collective for the next time, unless what it was asked with may have changed or ended by then. */
function remember(
  live: LiveCommunicator,
  kind: keyof RecentCollectives,
  checked: CheckedCollective,
): CheckedCollective {
  live.recent ??= { allReduce: undefined, allGather: undefined, reduceScatter: undefined, allToAll: undefined }
  // An operation of the program may have been disposed of by the next call.
  const isLasting =
    typeof checked.requestedOp !== 'object' &&
    Object.isFrozen(checked.source) &&
    Object.isFrozen(checked.target) &&
    Object.isFrozen(checked.queue)
  live.recent[kind] = isLasting ? checked : undefined
  return checked
}

function checkAllReduce(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: ReductionOptions,
): CheckedCollective {
  const api = 'Communicator.allReduce'
  checkOptions(options, api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = sameCount(source, target, wire, options.count, api)
  checkOverlap(source, count * wire.bytes, target, count * wire.bytes, 0, api)
  const type = reducible(wire, api)
  const op = reduceOp(live, options.op, wire.dtype, api)
  return remember(live, 'allReduce', {
    source,
    target,
    count,
    type,
    op,
    communicator: live.handle,
    queue: streamHandleAt(options.stream, live, api),
    requestedOp: options.op,
    requestedCount: options.count,
    requestedDType: options.dtype,
    operation: reduction('ncclAllReduce', count, type, op),
  })
}

function checkReduceScatter(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: ReductionOptions,
): CheckedCollective {
  const api = 'Communicator.reduceScatter'
  checkOptions(options, api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = partCount(target, 'recv', source, 'send', live.worldSize, wire, options.count, api)
  const bytes = count * wire.bytes
  checkOverlap(source, bytes * live.worldSize, target, bytes, live.rank * bytes, api)
  const type = reducible(wire, api)
  const op = reduceOp(live, options.op, wire.dtype, api)
  return remember(live, 'reduceScatter', {
    source,
    target,
    count,
    type,
    op,
    communicator: live.handle,
    queue: streamHandleAt(options.stream, live, api),
    requestedOp: options.op,
    requestedCount: options.count,
    requestedDType: options.dtype,
    operation: reduction('ncclReduceScatter', count, type, op),
  })
}

function checkAllGather(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: CollectiveOptions,
): CheckedCollective {
  const api = 'Communicator.allGather'
  checkOptions(options, api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = partCount(source, 'send', target, 'recv', live.worldSize, wire, options.count, api)
  const bytes = count * wire.bytes
  checkOverlap(source, bytes, target, bytes * live.worldSize, -live.rank * bytes, api)
  return remember(
    live,
    'allGather',
    checkedMovement(live, source, target, wire, count, options, movement('ncclAllGather', bytes), api),
  )
}

function checkAllToAll(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: CollectiveOptions,
): CheckedCollective {
  const api = 'Communicator.allToAll'
  checkOptions(options, api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = shareCount(source, target, live.worldSize, wire, options.count, api)
  const bytes = count * wire.bytes * live.worldSize
  checkOverlap(source, bytes, target, bytes, Number.NaN, api)
  const checked = checkedMovement(live, source, target, wire, count, options, movement('ncclAlltoAll', bytes), api)
  requireAllToAll()
  return remember(live, 'allToAll', checked)
}

function checkedMovement(
  live: LiveCommunicator,
  source: MemoryRange,
  target: MemoryRange,
  wire: WireType,
  elements: number,
  options: CollectiveOptions,
  operation: AgreedOperation,
  api: string,
): CheckedCollective {
  const [count, type] = copyable(wire, elements)
  return {
    source,
    target,
    count,
    type,
    op: undefined,
    communicator: live.handle,
    queue: streamHandleAt(options.stream, live, api),
    requestedOp: undefined,
    requestedCount: options.count,
    requestedDType: options.dtype,
    operation,
  }
}

export function broadcast(
  live: LiveCommunicator,
  send: MemoryLike | null,
  recv: MemoryLike,
  options: CollectiveOptions & RootOptions,
): void {
  const api = 'Communicator.broadcast'
  checkOptions(options, api)
  const root = checkedRank(live, options.root, 'root', api)
  const target = memoryAt(recv, live, api, 'recv', true)
  const source = send === null && live.rank !== root ? target : memoryAt(send as MemoryLike, live, api, 'send', false)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = sameCount(source, target, wire, options.count, api)
  checkOverlap(source, count * wire.bytes, target, count * wire.bytes, 0, api)
  const [units, type] = copyable(wire, count)
  const stream = streamAt(options.stream, live, api)
  noteOperation(live, movement('ncclBroadcast', count * wire.bytes, root))
  submit(live, 'ncclBroadcast', () =>
    ncclBroadcast(source.address, target.address, units, type, root, live.handle, stream),
  )
}

export function reduce(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike | null,
  options: ReductionOptions & RootOptions,
): void {
  const api = 'Communicator.reduce'
  checkOptions(options, api)
  const root = checkedRank(live, options.root, 'root', api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = recv === null && live.rank !== root ? source : memoryAt(recv as MemoryLike, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = sameCount(source, target, wire, options.count, api)
  checkOverlap(source, count * wire.bytes, target, count * wire.bytes, 0, api)
  const type = reducible(wire, api)
  const op = reduceOp(live, options.op, wire.dtype, api)
  const stream = streamAt(options.stream, live, api)
  // A rank that gets nothing has nothing to be written: its send buffer is not a place for it.
  const destination = recv === null ? null : target.address
  noteOperation(live, reduction('ncclReduce', count, type, op, root))
  submit(live, 'ncclReduce', () => ncclReduce(source.address, destination, count, type, op, root, live.handle, stream))
}

export function gather(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike | null,
  options: CollectiveOptions & RootOptions,
): void {
  const api = 'Communicator.gather'
  checkOptions(options, api)
  const root = checkedRank(live, options.root, 'root', api)
  const source = memoryAt(send, live, api, 'send', false)
  // On the other ranks there is nothing to be written, so what is named there is not looked at.
  const target = live.rank === root ? memoryAt(recv as MemoryLike, live, api, 'recv', true) : undefined
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = rootCount(live, source, 'send', target, 'recv', wire, options.count, api)
  const bytes = count * wire.bytes
  if (target !== undefined) checkOverlap(source, bytes, target, bytes * live.worldSize, -root * bytes, api)
  const [units, type] = copyable(wire, count)
  const stream = streamAt(options.stream, live, api)
  const destination = target?.address ?? null
  noteOperation(live, movement('ncclGather', bytes, root))
  submit(live, 'ncclGather', () => ncclGather(source.address, destination, units, type, root, live.handle, stream))
}

export function scatter(
  live: LiveCommunicator,
  send: MemoryLike | null,
  recv: MemoryLike,
  options: CollectiveOptions & RootOptions,
): void {
  const api = 'Communicator.scatter'
  checkOptions(options, api)
  const root = checkedRank(live, options.root, 'root', api)
  const source = live.rank === root ? memoryAt(send as MemoryLike, live, api, 'send', false) : undefined
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(target, source, options.dtype, api)
  const count = rootCount(live, target, 'recv', source, 'send', wire, options.count, api)
  const bytes = count * wire.bytes
  if (source !== undefined) checkOverlap(source, bytes * live.worldSize, target, bytes, root * bytes, api)
  const [units, type] = copyable(wire, count)
  const stream = streamAt(options.stream, live, api)
  const origin = source?.address ?? null
  noteOperation(live, movement('ncclScatter', bytes, root))
  submit(live, 'ncclScatter', () => ncclScatter(origin, target.address, units, type, root, live.handle, stream))
}

/** The count of an operation in which the root alone has a buffer with one part for each rank. */
function rootCount(
  live: LiveCommunicator,
  part: MemoryRange,
  partName: string,
  whole: MemoryRange | undefined,
  wholeName: string,
  wire: WireType,
  count: unknown,
  api: string,
): number {
  if (whole === undefined) return ownCount(part, partName, wire, count, api)
  return partCount(part, partName, whole, wholeName, live.worldSize, wire, count, api)
}

function reduceOp(
  live: LiveCommunicator,
  op: ReduceOp | PreMulSum | undefined,
  dtype: DType,
  api: string,
): ncclRedOp_t {
  if (op === undefined) return reduceOps.sum
  if (PreMulSum._is(op)) return op._codeFor(live, dtype, api)
  if (typeof op !== 'string' || !Object.hasOwn(reduceOps, op)) {
    throw new TypeError(
      `${api}: op must be one of ${Object.keys(reduceOps).join(', ')}, or made by createPreMulSum; got ${shown(op)}`,
    )
  }
  if (op === 'avg') requireNcclVersion(`${api} with op 'avg'`, firstWithAverage)
  return reduceOps[op]
}
