import { type NativeCall, signedSlots32 } from '@shoal/ffi/calls'
import { nccl, type ncclComm_t, type ncclDataType_t, type ncclRedOp_t } from '@shoal/nccl-sys'
import type { MemoryRange, StreamHandle } from '@shoal/types'

// What training loops do most, without the checks of the generated functions, which the caller has made already.

/** What a collective passes to NCCL, found to be right. */
export interface CollectiveArguments {
  readonly source: MemoryRange
  readonly target: MemoryRange
  readonly count: number
  readonly type: ncclDataType_t
  /** Only reductions have one. */
  readonly op: ncclRedOp_t | undefined
  readonly communicator: ncclComm_t
  readonly queue: StreamHandle
}

/** Makes the call with these words; the function was bound when the arguments were checked. Returns the status. */
export type CollectiveCall = (words: Int32Array) => number

const first = 2000
const firstWithAllToAll = 22803
// A reduction has seven arguments, a movement six.
const argumentCount = 7

let allReduceFunction: NativeCall | undefined
let allGatherFunction: NativeCall | undefined
let reduceScatterFunction: NativeCall | undefined
let allToAllFunction: NativeCall | undefined

/**
 * The arguments as they go into the block, in halves. Made when they are checked, so that a call in a loop copies them
 * and does nothing else: what it does runs between two launches, whose code has driven its own from the caches.
 */
export function wordsFor({ source, target, count, type, op, communicator, queue }: CollectiveArguments): Int32Array {
  const common = [source.address, target.address, BigInt(count), BigInt(type)]
  const particular = op === undefined ? [communicator, queue.handle] : [BigInt(op), communicator, queue.handle]
  const slots = new BigUint64Array(argumentCount)
  slots.set([...common, ...particular])
  const words = new Int32Array(2 * argumentCount)
  words.set(new Int32Array(slots.buffer))
  return words
}

export function allReduceCall(words: Int32Array): number {
  allReduceFunction ??= nccl.bind('ncclAllReduce', first, 7)
  putWords(words)
  return allReduceFunction()
}

export function reduceScatterCall(words: Int32Array): number {
  reduceScatterFunction ??= nccl.bind('ncclReduceScatter', first, 7)
  putWords(words)
  return reduceScatterFunction()
}

export function allGatherCall(words: Int32Array): number {
  allGatherFunction ??= nccl.bind('ncclAllGather', first, 6)
  putWords(words)
  return allGatherFunction()
}

export function allToAllCall(words: Int32Array): number {
  allToAllFunction ??= bindAllToAll()
  putWords(words)
  return allToAllFunction()
}

/** Throws where the library has no `ncclAlltoAll`, before anything names a context for the call. */
export function requireAllToAll(): void {
  allToAllFunction ??= bindAllToAll()
}

function bindAllToAll(): NativeCall {
  return nccl.bind('ncclAlltoAll', firstWithAllToAll, 6)
}

function putWords(words: Int32Array): void {
  for (let index = 0; index < words.length; index += 1) signedSlots32[index] = words[index] as number
}
