import { callInContext } from '@shoal/ffi'
import { ncclResult_t } from '@shoal/nccl-sys'
import { checkNccl, throwContextError } from '../errors.js'
import { CommunicatorStateError } from '../lifetime/communicatorErrors.js'
import { type LiveCommunicator, requireIdle } from '../lifetime/live.js'
import { collect, joinGroup, noteRefusal } from './group.js'
import { isGroupOpen } from './groupState.js'

/** Before an operation is made. */
export function enter(live: LiveCommunicator, api: string): void {
  if (live.pending !== undefined) requireIdle(live, api)
  live.lastOperation = api
  // Outside a group the call starts work, for which NCCL looks at the current context; inside one the group's end does.
  if (isGroupOpen()) {
    live.isConnected = true
    joinGroup(live.handle)
  } else {
    if (!live.isConnected) connectAlone(live, api)
    callInContext(live.context)
  }
}

/**
 * The first operation of a communicator that blocks waits inside NCCL until all ranks have called theirs. Where another
 * rank is in this thread, it never could.
 */
function connectAlone(live: LiveCommunicator, api: string): void {
  if (live.clique !== undefined && live.clique.members > 1) {
    const { rank, worldSize, device } = live
    throw new CommunicatorStateError({ operation: api, state: 'unconnected', rank, worldSize, device })
  }
  live.isConnected = true
}

/** Throws for a status that is an error. */
export function check(status: number, api: string, live: LiveCommunicator): void {
  if (status === ncclResult_t.ncclInProgress) return
  if (!isGroupOpen()) {
    throwContextError(live.context)
    checkNccl(status, api, live.handle)
    return
  }
  try {
    checkNccl(status, api, live.handle)
  } catch (error) {
    noteRefusal(error)
    throw error
  }
}

/** Makes an operation now, or leaves it to the `groupAsync` that collects. `call` returns the status. */
export function submit(live: LiveCommunicator, api: string, call: () => number): void {
  if (collect(live, api, call)) return
  enter(live, api)
  const status = leavingNoContext(call)
  if (status !== 0) check(status, api, live)
}

/** Makes a call that concerns this rank alone, in the context of the communicator; throws for a status that is an error. */
export function callNow(live: LiveCommunicator, api: string, call: () => number): void {
  callInContext(live.context)
  const status = leavingNoContext(call)
  if (status === 0) return
  throwContextError(live.context)
  checkNccl(status, api, live.handle)
}

/** A function that the library does not have throws before the call that would use the context. */
function leavingNoContext(call: () => number): number {
  try {
    return call()
  } catch (error) {
    callInContext(0n)
    throw error
  }
}
