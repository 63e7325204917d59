import { isCapturing, isInCapture, keepWhile } from '@shoal/driver/basics'
import { type BackgroundWork, offThread } from '@shoal/ffi'
import { ncclGroupEnd, ncclGroupStart, ncclResult_t } from '@shoal/nccl-sys'
import {
  isMemoryLike,
  isStreamLike,
  memoryProtocol,
  requireFunction,
  type StreamArgument,
  settledNow,
  streamProtocol,
  wrongType,
} from '@shoal/types'
import { streamHandleAt } from '../arguments/operands.js'
import { ncclError } from '../errors.js'
import { exclusively, type LiveCommunicator, settled } from '../lifetime/live.js'
import { type CommunicatorWaitOptions, requireWait } from '../lifetime/waitOptions.js'
import { markConnected, takePendingConnects, trackAsyncConnects } from './connections.js'
import { chain, hasFailed, takeFailures } from './failures.js'
import { noteMismatch, runInGroup } from './group.js'
import { type Collected, groupState, requireNoGroup } from './groupState.js'

/** Queues an operation in the `groupOffThread` that is collecting; false without one. */
export function collect(
  live: LiveCommunicator,
  api: string,
  call: () => number,
  send: unknown,
  recv: unknown,
  stream: unknown,
): boolean {
  if (groupState.collected === undefined) return false
  if (isCapturing()) refuseCaptured(live, stream)
  groupState.collected.calls.push({ api, live, call, operands: [send, recv, stream] })
  return true
}

/** Refuses a captured stream, because the calls are made after the capture. @throws TypeError */
function refuseCaptured(live: LiveCommunicator, stream: unknown): void {
  const { handle } = streamHandleAt(stream as StreamArgument, live, 'groupOffThread')
  if (isInCapture(live.context, handle))
    throw wrongType('groupOffThread', 'stream', 'one that is not captured (group takes those)', stream)
}

/** Runs `work` after the collected operations were made. Returns false, without running it, if there are none. */
export function afterCollected(live: LiveCommunicator, work: () => void): boolean {
  if (groupState.collected !== undefined) {
    groupState.collected.after.push(work)
    return true
  }
  if (live.pending === undefined) return false
  const { operation, ended } = live.pending
  ended.then(() => {
    if (live.ended !== undefined) return
    try {
      work()
    } catch (error) {
      process.emitWarning(`what was disposed of during ${operation}: ${String(error)}`, 'ShoalWarning')
    }
  })
  return true
}

/**
 * Like {@link group}, but calls NCCL on another thread.
 *
 * `fn` runs immediately and checks all arguments. The promise resolves with the result of `fn` when the work is queued
 * on its streams. Use it for groups that may wait for other ranks before they can be queued: the first operation of its
 * kind on a communicator connects the ranks. Use it also with nonblocking communicators, whose work is queued some time
 * after a plain `group` has returned.
 *
 * Until the promise settles, the communicators accept only further `groupOffThread` calls, which run in order. Buffers
 * and streams must exist until the work is done, as with every operation. If you dispose of one before the calls are
 * made, nothing is started. A signal or a timeout aborts all communicators of the group, because they may wait for a
 * lost rank.
 *
 * @example
 * ```ts
 * await groupOffThread(() => communicator.allReduce(x, x, { stream }), { timeout: 60_000 })
 * await communicator.synchronize(stream)
 * ```
 *
 * @throws (rejects) CommunicatorAbortedError if a communicator is aborted meanwhile; errors of `fn`; TypeError if the
 * calls of ranks of one communicator do not match; DisposedError if a communicator, buffer or stream was disposed of
 * before its turn; StatusError if NCCL refuses a call or the group. Except after an abort, nothing is started.
 */
export async function groupOffThread<T>(fn: () => T, options?: CommunicatorWaitOptions): Promise<T> {
  const api = 'groupOffThread'
  requireFunction(fn, api, 'fn')
  const waitOptions = requireWait(options, api)
  requireNoGroup(api)
  const collected: Collected = { calls: [], after: [] }
  groupState.collected = collected
  let result: T | undefined
  try {
    result = runInGroup(fn, api)
  } finally {
    groupState.collected = undefined
    groupState.unmade = 0
  }
  noteMismatch()
  const connects = takePendingConnects()
  if (hasFailed()) {
    for (const work of collected.after) work()
    throw takeFailures()
  }
  const lives = [...new Set(collected.calls.map(({ live }) => live))]
  if (lives.length > 0) {
    const endTracking = trackAsyncConnects(connects)
    try {
      await exclusively(lives, api, (background) => makeCollected(collected, lives, background), waitOptions)
    } finally {
      endTracking()
    }
    markConnected(connects)
  }
  for (const work of collected.after) work()
  return settledNow(result as T)
}

async function makeCollected(
  { calls }: Collected,
  lives: readonly LiveCommunicator[],
  background: BackgroundWork,
): Promise<void> {
  const context = (lives[0] as LiveCommunicator).context
  for (const { operands } of calls) for (const operand of operands) requireThere(operand)
  // The group must end whatever its calls return: an open group on the thread would collect calls of others.
  const made = offThread({ context, stopOnError: false, keep: lives, background }, () => {
    for (const { api, live } of calls) live.lastOperation = api
    ncclGroupStart()
    for (const { call } of calls) call()
    ncclGroupEnd()
  })
  for (const { operands } of calls) keepWhile(operands.filter(isObject), made, background)
  const statuses = await made
  const errors: unknown[] = []
  for (const [index, { api, live }] of calls.entries()) {
    const status = statuses[index + 1] ?? 0
    if (isError(status)) errors.push(ncclError(status, api, live.handle))
  }
  const last = statuses.at(-1) ?? 0
  if (isError(last)) errors.push(ncclError(last, 'ncclGroupEnd'))
  if (errors.length > 0) throw chain(errors)
  if (last !== ncclResult_t.ncclInProgress) return
  for (const outcome of await Promise.allSettled(lives.map((live) => settled(live, 'groupOffThread')))) {
    if (outcome.status === 'rejected') errors.push(outcome.reason)
  }
  if (errors.length > 0) throw chain(errors)
}

/** Requires memory and streams that still exist. @throws DisposedError */
function requireThere(operand: unknown): void {
  if (isMemoryLike(operand)) void operand[memoryProtocol]
  else if (isStreamLike(operand)) void operand[streamProtocol]
}

function isObject(operand: unknown): operand is object {
  return typeof operand === 'object' && operand !== null
}

function isError(status: number): boolean {
  return status !== 0 && status !== ncclResult_t.ncclInProgress
}
