import { ncclBroadcast, ncclGather, ncclReduce, ncclScatter } from '@shoal/nccl-sys'
import { type MemoryLike, type MemoryRange, requireInteger } from '@shoal/types'
import { checkOverlap, memoryAt, streamAt, type WireType, wireTypeOf } from '../arguments/operands.js'
import { copySignature, recordOperation, reductionSignature } from '../group/operationMatch.js'
import { beginOperation, submit } from '../group/submit.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { copyable, ownCount, partCount, reducible, sameCount } from './counts.js'
import {
  type CollectiveOptions,
  type ReductionOptions,
  type RootOptions,
  requireRootOptions,
  requireRootReduction,
} from './options.js'
import { reduceOp } from './reduceOp.js'
import { scalarOf } from './reductionOps.js'

// The collectives with a root rank.

export function broadcast(
  live: LiveCommunicator,
  send: MemoryLike | null,
  recv: MemoryLike,
  options: CollectiveOptions & RootOptions,
): void {
  const api = 'Communicator.broadcast'
  beginOperation()
  requireRootOptions(options, api)
  const root = requireInteger(options.root, api, 'root', 0, live.worldSize - 1)
  const target = memoryAt(recv, live, api, 'recv', true)
  const source = send === null && live.rank !== root ? target : memoryAt(send as MemoryLike, live, api, 'send', false)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = sameCount(source, target, wire, options.count, api)
  checkOverlap(source, count * wire.bytes, target, count * wire.bytes, 0, api)
  const [units, type] = copyable(wire, count)
  const stream = streamAt(options.stream, live, api, source, target)
  recordOperation(live, copySignature('ncclBroadcast', count * wire.bytes, root))
  const call = (): number => ncclBroadcast(source.address, target.address, units, type, root, live.handle, stream)
  submit(live, 'ncclBroadcast', call, send, recv, options.stream)
}

export function reduce(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike | null,
  options: ReductionOptions & RootOptions,
): void {
  const api = 'Communicator.reduce'
  beginOperation()
  requireRootReduction(options, api)
  const root = requireInteger(options.root, api, 'root', 0, live.worldSize - 1)
  const source = memoryAt(send, live, api, 'send', false)
  const target = recv === null && live.rank !== root ? source : memoryAt(recv as MemoryLike, live, api, 'recv', true)
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = sameCount(source, target, wire, options.count, api)
  checkOverlap(source, count * wire.bytes, target, count * wire.bytes, 0, api)
  const type = reducible(wire, api)
  const op = reduceOp(live, options.op, wire.dtype, api)
  const stream = streamAt(options.stream, live, api, source, target)
  // On a rank without a result nothing is written: its send buffer must not be the destination.
  const destination = recv === null ? null : target.address
  recordOperation(live, reductionSignature('ncclReduce', count, type, op, root))
  const call = (): number => ncclReduce(source.address, destination, count, type, op, root, live.handle, stream)
  submit(live, 'ncclReduce', call, send, recv, options.stream, scalarOf(options.op))
}

export function gather(
  live: LiveCommunicator,
  send: MemoryLike,
  recv: MemoryLike | null,
  options: CollectiveOptions & RootOptions,
): void {
  const api = 'Communicator.gather'
  beginOperation()
  requireRootOptions(options, api)
  const root = requireInteger(options.root, api, 'root', 0, live.worldSize - 1)
  const source = memoryAt(send, live, api, 'send', false)
  // Nothing is written on other ranks, so their `recv` is ignored.
  const target = live.rank === root ? memoryAt(recv as MemoryLike, live, api, 'recv', true) : undefined
  const wire = wireTypeOf(source, target, options.dtype, api)
  const count = rootCount(live, source, 'send', target, 'recv', wire, options.count, api)
  const bytes = count * wire.bytes
  if (target !== undefined) checkOverlap(source, bytes, target, bytes * live.worldSize, -root * bytes, api)
  const [units, type] = copyable(wire, count)
  const stream = streamAt(options.stream, live, api, source, target)
  const destination = target?.address ?? null
  recordOperation(live, copySignature('ncclGather', bytes, root))
  const call = (): number => ncclGather(source.address, destination, units, type, root, live.handle, stream)
  submit(live, 'ncclGather', call, send, recv, options.stream)
}

export function scatter(
  live: LiveCommunicator,
  send: MemoryLike | null,
  recv: MemoryLike,
  options: CollectiveOptions & RootOptions,
): void {
  const api = 'Communicator.scatter'
  beginOperation()
  requireRootOptions(options, api)
  const root = requireInteger(options.root, api, 'root', 0, live.worldSize - 1)
  const source = live.rank === root ? memoryAt(send as MemoryLike, live, api, 'send', false) : undefined
  const target = memoryAt(recv, live, api, 'recv', true)
  const wire = wireTypeOf(target, source, options.dtype, api)
  const count = rootCount(live, target, 'recv', source, 'send', wire, options.count, api)
  const bytes = count * wire.bytes
  if (source !== undefined) checkOverlap(source, bytes * live.worldSize, target, bytes, root * bytes, api)
  const [units, type] = copyable(wire, count)
  const stream = streamAt(options.stream, live, api, source, target)
  const origin = source?.address ?? null
  recordOperation(live, copySignature('ncclScatter', bytes, root))
  const call = (): number => ncclScatter(origin, target.address, units, type, root, live.handle, stream)
  submit(live, 'ncclScatter', call, send, recv, options.stream)
}

/** Returns the count if only the root's buffer has one part per rank. */
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
