import { type NativeCall, signedSlots32, slots32, slots64 } from '@shoal/ffi/calls'
import { nccl, type ncclRedOp_t } from '@shoal/nccl-sys'
import type { CollectiveArguments } from '../lifetime/checkedCollective.js'

// What training loops do most, without the checks of the generated functions, which the caller has made already.

/** Makes the call with these arguments, which were found to be right, and returns the status. */
export type CollectiveCall = (given: CollectiveArguments) => number

const first = 2000
const firstWithAllToAll = 22803

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

function putReduction(given: CollectiveArguments): void {
  putOperands(given)
  signedSlots32[8] = given.op as ncclRedOp_t
  slots64[5] = given.communicator
  slots64[6] = given.queue.handle
}

function putMove(given: CollectiveArguments): void {
  putOperands(given)
  slots64[4] = given.communicator
  slots64[5] = given.queue.handle
}

function putOperands({ source, target, count, countHigh, type }: CollectiveArguments): void {
  slots64[0] = source.address
  slots64[1] = target.address
  slots32[4] = count
  slots32[5] = countHigh
  signedSlots32[6] = type
}
