import { isCapturing } from '@shoal/driver/basics'
import { callInContext } from '@shoal/ffi'
import { ncclResult_t } from '@shoal/nccl-sys'
import { checkNccl, throwContextError } from '../errors.js'
import { keepOnStream } from '../lifetime/keptByCaptures.js'
import { type LiveCommunicator, requireIdle } from '../lifetime/live.js'
import { connectAll, connectPeer } from './connections.js'
import { joinGroup, noteRefusal } from './group.js'
import { collect } from './groupOffThread.js'
import { groupState, isCollecting, isGroupOpen } from './groupState.js'

/** Before an operation is checked and submitted, so that `groupEnd` learns of one that is refused on the way. */
export function beginOperation(): void {
  groupState.unmade += 1
}

/** Before an operation of all ranks is made. */
export function prepare(live: LiveCommunicator, api: string): void {
  if (live.pending !== undefined) requireIdle(live, api)
  if (!live.isConnected) connectAll(live, api)
  start(live, api)
}

function start(live: LiveCommunicator, api: string): void {
  live.lastOperation = api
  // Outside a group the call starts work, for which NCCL looks at the current context; inside one the group's end does.
  if (isGroupOpen()) joinGroup(live.handle)
  else callInContext(live.context)
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

/**
 * Makes an operation now, or leaves it to the `groupOffThread` that collects. `call` returns the status; the rest is
 * what it uses, `others` only in graphs.
 */
export function submit(
  live: LiveCommunicator,
  api: string,
  call: () => number,
  send: unknown,
  recv: unknown,
  stream: unknown,
  ...others: readonly unknown[]
): void {
  if (isCollecting()) {
    if (!live.isConnected) connectAll(live, api)
    collect(live, api, call, send, recv, stream)
  } else {
    prepare(live, api)
    make(live, api, call)
    if (isCapturing()) keepOnStream(live, stream, [send, recv, ...others])
  }
  groupState.unmade -= 1
}

/** The same for an operation of this rank and a peer, which sends to it or receives from it. */
export function submitToPeer(
  live: LiveCommunicator,
  api: string,
  peer: number,
  sends: boolean,
  call: () => number,
  memory: unknown,
  stream: unknown,
): void {
  if (!isCollecting() && live.pending !== undefined) requireIdle(live, api)
  connectPeer(live, peer, sends, api)
  if (!collect(live, api, call, memory, undefined, stream)) {
    start(live, api)
    make(live, api, call)
    if (isCapturing()) keepOnStream(live, stream, [memory])
  }
  groupState.unmade -= 1
}

function make(live: LiveCommunicator, api: string, call: () => number): void {
  const status = call()
  if (status !== 0) check(status, api, live)
}

/**
 * Makes a call that concerns this rank alone, in the context of the communicator; throws for a status that is an error.
 */
export function callNow(live: LiveCommunicator, api: string, call: () => number): void {
  callInContext(live.context)
  const status = call()
  if (status === 0) return
  throwContextError(live.context)
  checkNccl(status, api, live.handle)
}
