import { type NativeCall, signedSlots32, slots32, slots64 } from '@shoal/ffi/calls'
import { nccl, type ncclDataType_t, type ncclRedOp_t } from '@shoal/nccl-sys'
import type { MemoryRange } from '@shoal/types'
import type { CollectiveArguments } from '../lifetime/noted.js'

// What training loops do most, without the checks of the generated functions, which the caller has made already.

/** Makes the call with these arguments, which were found to be right, and returns the status. */
export type CollectiveCall = (given: CollectiveArguments) => number

const first = 2000
const firstWithAllToAll = 22803
const twoTo32 = 2 ** 32

let allReduceFunction: NativeCall | undefined
let allGatherFunction: NativeCall | undefined
let reduceScatterFunction: NativeCall | undefined
let allToAllFunction: NativeCall | undefined

export function allReduceCall(given: CollectiveArguments): number {
  allReduceFunction ??= nccl.bind('ncclAllReduce', first, 7)
  putReduction(given)
  return allReduceFunction()
}

export function reduceScatterCall(given: CollectiveArguments): number {
  reduceScatterFunction ??= nccl.bind('ncclReduceScatter', first, 7)
  putReduction(given)
  return reduceScatterFunction()
}

export function allGatherCall(given: CollectiveArguments): number {
  allGatherFunction ??= nccl.bind('ncclAllGather', first, 6)
  putMove(given)
  return allGatherFunction()
}

export function allToAllCall(given: CollectiveArguments): number {
  allToAllFunction ??= bindAllToAll()
  putMove(given)
  return allToAllFunction()
}

/** Throws where the library has no `ncclAlltoAll`, before anything names a context for the call. */
export function requireAllToAll(): void {
  allToAllFunction ??= bindAllToAll()
}

function bindAllToAll(): NativeCall {
  return nccl.bind('ncclAlltoAll', firstWithAllToAll, 6)
}

function putReduction({ source, target, count, type, op, communicator, queue }: CollectiveArguments): void {
  putOperands(source, target, count, type)
  signedSlots32[8] = op as ncclRedOp_t
  slots64[5] = communicator
  slots64[6] = queue.handle
}

function putMove({ source, target, count, type, communicator, queue }: CollectiveArguments): void {
  putOperands(source, target, count, type)
  slots64[4] = communicator
  slots64[5] = queue.handle
}

function putOperands(source: MemoryRange, target: MemoryRange, count: number, type: ncclDataType_t): void {
  slots64[0] = source.address
  slots64[1] = target.address
  slots32[4] = count
  slots32[5] = count / twoTo32
  signedSlots32[6] = type
}
