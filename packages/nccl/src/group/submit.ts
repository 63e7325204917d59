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

/** Records an operation before its checks, so that `groupEnd` detects a refused one. */
export function beginOperation(): void {
  groupState.unmade += 1
}

/** Prepares an operation of all ranks. */
export function prepare(live: LiveCommunicator, api: string): void {
  if (live.pending !== undefined) requireIdle(live, api)
  if (!live.isConnected) connectAll(live, api)
  start(live, api)
}

function start(live: LiveCommunicator, api: string): void {
  live.lastOperation = api
  // Outside a group the call starts work and reads the current context; inside one, the end of the group does.
  if (isGroupOpen()) joinGroup(live.handle)
  else callInContext(live.context)
}

/** Throws for an error status. */
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
 * Makes an operation, or queues it in the collecting `groupOffThread`.
 *
 * `call` returns the status. The other parameters are its operands; `others` matter only for graphs.
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

/** Like {@link submit}, for an operation between this rank and a peer. */
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

/** Makes a call of this rank alone, in the context of the communicator. Throws for an error status. */
export function callNow(live: LiveCommunicator, api: string, call: () => number): void {
  callInContext(live.context)
  const status = call()
  if (status === 0) return
  throwContextError(live.context)
  checkNccl(status, api, live.handle)
}
