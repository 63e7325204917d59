import { callInContext } from '@shoal/ffi'
import {
  ncclAllGather,
  ncclBroadcast,
  ncclDataType_t,
  ncclRedOp_t,
  ncclReduce,
  ncclReduceScatter,
  ncclResult_t,
} from '@shoal/nccl-sys'
import {
  type DType,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StreamHandle,
  type StreamLike,
  streamProtocol,
} from '@shoal/types'
import { allReduceCall } from './allReduceCall.js'
import { checkNccl, throwContextError } from './errors.js'
import { isGroupOpen, joinGroup, noteRefusal } from './group.js'
import type { LiveCommunicator } from './live.js'
import {
  checkedCount,
  checkOverlap,
  checkRoom,
  elementsOf,
  memoryAt,
  streamAt,
  streamHandleAt,
  type WireType,
  wireTypeOf,
} from './operands.js'
import { requireNcclVersion } from './version.js'

/** How the elements of all ranks become one: `ncclSum`, `ncclProd`, `ncclMax`, `ncclMin`, `ncclAvg` (NCCL 2.10). */
export type ReduceOp = 'sum' | 'prod' | 'max' | 'min' | 'avg'

export interface CollectiveOptions {
  /** Stream the operation is queued on: a stream object, a bare `cudaStream_t`, or null for the default stream. */
  readonly stream: StreamLike | bigint | null
  /** Number of elements. Default: all of them, and then the buffers have to match. */
  readonly count?: number
  /** Type of the elements; needed where neither buffer carries one. */
  readonly dtype?: DType
}

export interface ReductionOptions extends CollectiveOptions {
  /** Default `'sum'`. */
  readonly op?: ReduceOp
}

export interface RootOptions {
  /** Rank whose data is sent (broadcast) or that gets the result (reduce). */
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
const firstWithFloat8 = 22403

/** An all-reduce whose operands were found to be right. */
export interface CheckedAllReduce {
  readonly source: MemoryRange
  readonly target: MemoryRange
  readonly queue: StreamHandle
  readonly requestedOp: ReduceOp | undefined
  readonly requestedCount: number | undefined
  readonly requestedDType: DType | undefined
  readonly count: number
  readonly type: ncclDataType_t
  readonly op: ncclRedOp_t
}

export function allReduce(live: LiveCommunicator, send: MemoryLike, recv: MemoryLike, options: ReductionOptions): void {
  const last = live.lastAllReduce
  const checked =
    last !== undefined && isSame(last, send, recv, options) ? last : checkAllReduce(live, send, recv, options)
  const { source, target, queue } = checked
  enter(live)
  const status = allReduceCall(
    source.address,
    target.address,
    checked.count,
    checked.type,
    checked.op,
    live.handle,
    queue.handle,
  )
  if (status !== 0) check(status, 'ncclAllReduce', live)
}

/**
 * Whether an operation is the one that was checked last, as in a loop. Only frozen operands are kept for that, so the same
 * objects mean the same memory and stream; reading them throws where these have been disposed of.
 */
function isSame(last: CheckedAllReduce, send: MemoryLike, recv: MemoryLike, options: ReductionOptions): boolean {
  return (
    send?.[memoryProtocol] === last.source &&
    recv?.[memoryProtocol] === last.target &&
    (options?.stream as StreamLike | undefined)?.[streamProtocol] === last.queue &&
    options.op === last.requestedOp &&
    options.count === last.requestedCount &&
    options.dtype === last.requestedDType
  )
}

function checkAllReduce(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: ReductionOptions,
): CheckedAllReduce {
  const api = 'Communicator.allReduce'
  checkOptions(options, api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = sameCount(source, target, wire, options.count, api)
  checkOverlap(source, count * wire.bytes, target, count * wire.bytes, 0, api)
  const type = reducible(wire, api)
  const op = reduceOp(options.op, api)
  const queue = streamHandleAt(options.stream, live, api)
  const checked = {
    source,
    target,
    queue,
    requestedOp: options.op,
    requestedCount: options.count,
    requestedDType: options.dtype,
    count,
    type,
    op,
  }
  live.lastAllReduce = [source, target, queue].every(Object.isFrozen) ? checked : undefined
  return checked
}

export function broadcast(
  live: LiveCommunicator,
  send: MemoryLike | null,
  recv: MemoryLike,
  options: CollectiveOptions & RootOptions,
): void {
  const api = 'Communicator.broadcast'
  checkOptions(options, api)
  const root = checkedRoot(live, options.root, api)
  const target = memoryAt(recv, live, api, 'recv', true)
  const source = send === null && live.rank !== root ? target : memoryAt(send as MemoryLike, live, api, 'send', false)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = sameCount(source, target, wire, options.count, api)
  checkOverlap(source, count * wire.bytes, target, count * wire.bytes, 0, api)
  const [units, type] = copyable(wire, count)
  const stream = streamAt(options.stream, live, api)
  enter(live)
  const status = ncclBroadcast(source.address, target.address, units, type, root, live.handle, stream)
  if (status !== 0) check(status, 'ncclBroadcast', live)
}

export function reduce(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike | null,
  options: ReductionOptions & RootOptions,
): void {
  const api = 'Communicator.reduce'
  checkOptions(options, api)
  const root = checkedRoot(live, options.root, api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = recv === null && live.rank !== root ? source : memoryAt(recv as MemoryLike, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = sameCount(source, target, wire, options.count, api)
  checkOverlap(source, count * wire.bytes, target, count * wire.bytes, 0, api)
  const type = reducible(wire, api)
  const op = reduceOp(options.op, api)
  const stream = streamAt(options.stream, live, api)
  // A rank that gets nothing has nothing to be written: its send buffer is not a place for it.
  const destination = recv === null ? null : target.address
  enter(live)
  const status = ncclReduce(source.address, destination, count, type, op, root, live.handle, stream)
  if (status !== 0) check(status, 'ncclReduce', live)
}

export function allGather(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: CollectiveOptions,
): void {
  const api = 'Communicator.allGather'
  checkOptions(options, api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = partCount(source, 'send', target, 'recv', live.worldSize, wire, options.count, api)
  const bytes = count * wire.bytes
  checkOverlap(source, bytes, target, bytes * live.worldSize, -live.rank * bytes, api)
  const [units, type] = copyable(wire, count)
  const stream = streamAt(options.stream, live, api)
  enter(live)
  const status = ncclAllGather(source.address, target.address, units, type, live.handle, stream)
  if (status !== 0) check(status, 'ncclAllGather', live)
}

export function reduceScatter(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike,
  options: ReductionOptions,
): void {
  const api = 'Communicator.reduceScatter'
  checkOptions(options, api)
  const source = memoryAt(send, live, api, 'send', false)
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = partCount(target, 'recv', source, 'send', live.worldSize, wire, options.count, api)
  const bytes = count * wire.bytes
  checkOverlap(source, bytes * live.worldSize, target, bytes, live.rank * bytes, api)
  const type = reducible(wire, api)
  const op = reduceOp(options.op, api)
  const stream = streamAt(options.stream, live, api)
  enter(live)
  const status = ncclReduceScatter(source.address, target.address, count, type, op, live.handle, stream)
  if (status !== 0) check(status, 'ncclReduceScatter', live)
}

/** Outside a group the call starts work, for which NCCL looks at the current context; inside one the group's end does. */
function enter(live: LiveCommunicator): void {
  if (isGroupOpen()) joinGroup(live.handle)
  else callInContext(live.context)
}

/** Throws for a status that is an error. */
function check(status: number, api: string, live: LiveCommunicator): void {
  if (status === ncclResult_t.ncclInProgress) return
  if (isGroupOpen()) noteRefusal()
  else throwContextError(live.context)
  checkNccl(status, api, live.handle)
}

function checkOptions(options: unknown, api: string): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${api}: options with a stream are needed`)
}

function checkedRoot(live: LiveCommunicator, root: unknown, api: string): number {
  if (typeof root !== 'number') throw new TypeError(`${api}: root must be a rank`)
  if (Number.isInteger(root) && root >= 0 && root < live.worldSize) return root
  throw new RangeError(`${api}: root must be a rank from 0 to ${live.worldSize - 1}, got ${root}`)
}

/** The count of an operation whose buffers have the same size. */
function sameCount(source: MemoryRange, target: MemoryRange, wire: WireType, count: unknown, api: string): number {
  if (count === undefined) {
    const available = elementsOf(source, wire)
    if (source.byteLength === target.byteLength) return available
    throw new RangeError(
      `${api}: send has ${available} elements and recv ${elementsOf(target, wire)}; name a count where they differ`,
    )
  }
  const elements = checkedCount(count, api)
  checkRoom(source, elements, wire, api, 'send')
  checkRoom(target, elements, wire, api, 'recv')
  return elements
}

/** The count of an operation in which `whole` holds one part for each rank. */
function partCount(
  part: MemoryRange,
  partName: string,
  whole: MemoryRange,
  wholeName: string,
  ranks: number,
  wire: WireType,
  count: unknown,
  api: string,
): number {
  if (count === undefined) {
    const available = elementsOf(part, wire)
    if (available * ranks === elementsOf(whole, wire)) return available
    throw new RangeError(
      `${api}: ${partName} has ${available} elements, so ${wholeName} needs ${available} × ${ranks} ranks; ` +
        `it has ${elementsOf(whole, wire)}. Name a count where they differ`,
    )
  }
  const elements = checkedCount(count, api)
  checkRoom(part, elements, wire, api, partName)
  checkRoom(whole, elements * ranks, wire, api, wholeName)
  return elements
}

/** `ncclDataType_t` for a reduction. */
function reducible(wire: WireType, api: string): ncclDataType_t {
  const { code } = wire
  if (code === undefined) throw new TypeError(`${api}: NCCL cannot reduce elements of ${wire.dtype}`)
  if (code >= ncclDataType_t.ncclFloat8e4m3) requireNcclVersion(`${api} of ${wire.dtype}`, firstWithFloat8)
  return code as ncclDataType_t
}

/** Count and `ncclDataType_t` for moving elements unchanged; what NCCL has no type for moves as bytes. */
function copyable(wire: WireType, count: number): [count: number, type: ncclDataType_t] {
  if (wire.code === undefined || wire.code >= ncclDataType_t.ncclFloat8e4m3)
    return [count * wire.bytes, ncclDataType_t.ncclUint8]
  return [count, wire.code as ncclDataType_t]
}

function reduceOp(op: ReduceOp | undefined, api: string): ncclRedOp_t {
  if (op === undefined) return reduceOps.sum
  if (!Object.hasOwn(reduceOps, op)) {
    throw new TypeError(`${api}: op must be one of ${Object.keys(reduceOps).join(', ')}, got ${String(op)}`)
  }
  if (op === 'avg') requireNcclVersion(`${api} with op 'avg'`, firstWithAverage)
  return reduceOps[op]
}
