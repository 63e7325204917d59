import { type BackgroundWork, callInContext, offThread } from '@shoal/ffi'
import {
  initialNcclSimInfo,
  ncclBroadcast,
  type ncclComm_t,
  ncclDataType_t,
  ncclGroupEnd,
  ncclGroupSimulateEnd,
  ncclGroupStart,
  ncclResult_t,
  ncclSimInfo_t,
} from '@shoal/nccl-sys'
import { attachSuppressed } from '../attach.js'
import { checkNccl, contextError, firstContextStatus, ncclError } from '../errors.js'
import { anyContext } from '../lifetime/contexts.js'
import { exclusively, type LiveCommunicator } from '../lifetime/live.js'
import { untilSettled } from '../lifetime/progress.js'
import { type CommunicatorWaitOptions, checkWaitOptions } from '../lifetime/waitOptions.js'
import { disagreement } from './agreement.js'
import { connected, meetElsewhere, meetingsAlone, takeMeetings } from './connections.js'
import { type Collected, groupState } from './groupState.js'

let member: ncclComm_t | undefined
let failures: { readonly error: unknown }[] = []
let refused = false
let kept: object[] = []

const ended = { status: 0, error: undefined }

/** What NCCL expects of a group. */
export interface GroupEstimate {
  /** Time that the operations would take together, in microseconds; undefined where NCCL has no estimate. */
  readonly microseconds: number | undefined
}

/** Leaves an operation to the `groupAsync` that collects; false when none does. */
export function collect(live: LiveCommunicator, api: string, call: () => number): boolean {
  if (groupState.collected === undefined) return false
  groupState.collected.calls.push({ api, live, call })
  return true
}

/**
 * Has `work` done once operations have been made that `groupAsync` took for later; false when there are none, and then it
 * is not done.
 */
export function afterCollected(live: LiveCommunicator, work: () => void): boolean {
  if (groupState.collected !== undefined) {
    groupState.collected.after.push(work)
    return true
  }
  if (live.pending === undefined) return false
  live.pending.ended.then(() => {
    if (live.ended !== undefined) return
    try {
      work()
    } catch (error) {
      process.emitWarning(`what was disposed of during ${live.pending?.operation}: ${String(error)}`, 'ShoalWarning')
    }
  })
  return true
}

/** Keeps what a call has pointed NCCL to until the group that is open has ended: NCCL reads it then. */
export function keepUntilGroupEnds(object: object): void {
  if (groupState.depth > 0) kept.push(object)
}

/** Called by each collective inside a group, so that the group can be cancelled through one of its communicators. */
export function joinGroup(communicator: ncclComm_t): void {
  member = communicator
}

/** Called when NCCL itself refuses a collective of the open group, which is then dropped as a whole when it ends. */
export function noteRefusal(error: unknown): void {
  refused = true
  note(error)
}

/**
 * Runs `fn` and starts the NCCL calls made in it as one operation (`ncclGroupStart`, `ncclGroupEnd`). Needed whenever
 * one thread drives several communicators, since each collective waits for the other ranks. Groups nest; the outermost
 * one starts the work. Returns what `fn` returns.
 *
 * The group always ends. When `fn` throws, the calls recorded so far are dropped: nothing is launched, where half a
 * group would leave the GPUs waiting for ranks that never come. A nested group that fails makes the whole group fail,
 * also when its error is caught; so does a call that NCCL refuses. Of several errors the first is thrown, and each has
 * the next as its property `suppressed`; the last is that of ending the group, where that fails as well.
 *
 * @throws TypeError when `fn` is asynchronous: NCCL's group belongs to the thread, not to a chain of promises.
 * @throws TypeError when ranks of one communicator do not ask for the same; nothing is started.
 * @throws CommunicatorStateError when NCCL would wait for a rank of this thread that is not in the group, to connect it.
 * @throws StatusError when NCCL refuses the group.
 */
export function group<T>(fn: () => T): T {
  requireFunction(fn, 'group')
  if (groupState.collected !== undefined) {
    const result = attempt(fn, 'group')
    if (failures.length > 0) throw firstFailure()
    return result as T
  }
  checkNccl(ncclGroupStart(), 'ncclGroupStart')
  groupState.depth += 1
  const result = attempt(fn, 'group')
  if (groupState.depth > 1) {
    groupState.depth -= 1
    const status = ncclGroupEnd()
    if (status !== 0) note(ncclError(status, 'ncclGroupEnd'))
    if (failures.length > 0) throw firstFailure()
    return result as T
  }
  finish(end, true)
  return result as T
}

/**
 * The same without blocking this thread: `fn` runs at once and checks all arguments, but NCCL is called on another
 * thread. The promise settles when the work is queued on its streams, with what `fn` returned. Use it where a group may
 * have to wait for other ranks before it can be queued (the first operation of its kind on a communicator connects the
 * ranks), and with non-blocking communicators, whose work is queued some time after a plain `group` has returned.
 *
 * Until it settles the communicators take no other call, except further groups of this kind, which wait for their turn.
 * Buffers must stay as they are until the work is done, as with every operation. A signal that fires and a time limit that
 * passes meanwhile abort all communicators of the group, which may wait for a rank that is lost.
 *
 * @throws (rejects) CommunicatorAbortedError when a communicator is aborted meanwhile; what `fn` throws, and then nothing
 * is started; TypeError when ranks of one communicator do not ask for the same; DisposedError when a communicator has ended
 * before its turn came; StatusError when NCCL refuses a call or the group, and then nothing of the group is started.
 */
export async function groupAsync<T>(fn: () => T, options?: CommunicatorWaitOptions): Promise<T> {
  requireFunction(fn, 'groupAsync')
  const waitOptions = checkWaitOptions(options, 'groupAsync')
  if (groupState.depth > 0 || groupState.collected !== undefined) {
    throw new Error('groupAsync: a group is open on this thread, which ends before this one could')
  }
  const gathered: Collected = { calls: [], after: [] }
  groupState.collected = gathered
  let result: T | undefined
  try {
    result = attempt(fn, 'groupAsync')
  } finally {
    groupState.collected = undefined
  }
  noteDisagreement()
  const met = takeMeetings()
  if (failures.length > 0) {
    for (const work of gathered.after) work()
    throw takeFailures()
  }
  const lives = [...new Set(gathered.calls.map(({ live }) => live))]
  if (lives.length > 0) {
    const haveMet = meetElsewhere(met)
    try {
      await exclusively(lives, 'groupAsync', (background) => makeCollected(gathered, lives, background), waitOptions)
    } finally {
      haveMet()
    }
    connected(met)
  }
  for (const work of gathered.after) work()
  return result as T
}

/**
 * Runs `fn` and drops the NCCL calls made in it, after asking NCCL how long they would take (`ncclGroupSimulateEnd`, NCCL
 * 2.22). Nothing is launched and no other rank is needed.
 *
 * @throws TypeError when `fn` is asynchronous; Error inside a group; VersionTooOldError; StatusError when NCCL refuses.
 */
export function simulateGroup(fn: () => unknown): GroupEstimate {
  requireFunction(fn, 'simulateGroup')
  if (groupState.depth > 0 || groupState.collected !== undefined)
    throw new Error('simulateGroup: a group is open on this thread')
  const info = initialNcclSimInfo()
  try {
    checkNccl(ncclGroupStart(), 'ncclGroupStart')
    groupState.depth += 1
    attempt(fn, 'simulateGroup')
    finish(() => (failures.length > 0 ? end() : endSimulated(info)), false)
    const { estimatedTime } = ncclSimInfo_t.read(info)
    return { microseconds: estimatedTime < 0 ? undefined : estimatedTime }
  } finally {
    info.dispose()
  }
}

function endSimulated(info: Parameters<typeof ncclGroupSimulateEnd>[0]): Ended {
  const context = anyContext()
  if (context !== 0n) callInContext(context)
  const status = ncclGroupSimulateEnd(info)
  if (status === 0) return ended
  return { status, error: contextError(context) ?? ncclError(status, 'ncclGroupSimulateEnd') }
}

async function makeCollected(
  { calls }: Collected,
  lives: readonly LiveCommunicator[],
  background: BackgroundWork,
): Promise<void> {
  const context = (lives[0] as LiveCommunicator).context
  // The group ends whatever its calls return: a thread with an open group would swallow the calls of others.
  const statuses = await offThread({ context, stopOnError: false, keep: lives, background }, () => {
    for (const { api, live } of calls) live.lastOperation = api
    ncclGroupStart()
    for (const { call } of calls) call()
    ncclGroupEnd()
  })
  const errors: unknown[] = []
  for (const [index, { api, live }] of calls.entries()) {
    const status = statuses[index + 1] ?? 0
    if (isError(status)) errors.push(ncclError(status, api, live.handle))
  }
  const last = statuses.at(-1) ?? 0
  if (isError(last)) errors.push(ncclError(last, 'ncclGroupEnd'))
  if (errors.length > 0) throw chain(errors)
  if (last !== ncclResult_t.ncclInProgress) return
  for (const outcome of await Promise.allSettled(lives.map((live) => untilSettled(live, 'groupAsync')))) {
    if (outcome.status === 'rejected') errors.push(outcome.reason)
  }
  if (errors.length > 0) throw chain(errors)
}

function isError(status: number): boolean {
  return status !== 0 && status !== ncclResult_t.ncclInProgress
}

function requireFunction(fn: unknown, api: string): void {
  if (typeof fn !== 'function') throw new TypeError(`${api}: fn must be a function`)
}

/** Runs the function of a group; what it throws is noted. */
function attempt<T>(fn: () => T, api: string): T | undefined {
  try {
    const result = fn()
    refuseThenable(result, api)
    return result
  } catch (error) {
    note(error)
    return undefined
  }
}

function note(error: unknown): void {
  if (!failures.some((failure) => failure.error === error)) failures.push({ error })
}

/** Ranks of one communicator that ask for different things would wait for each other, or do damage. */
function noteDisagreement(): void {
  const error = disagreement()
  if (error !== undefined) note(error)
}

/** Ranks that the group would wait for, but which are in this thread and not in the group. */
function noteAlone(): void {
  const error = meetingsAlone()
  if (error !== undefined) note(error)
}

function firstFailure(): unknown {
  return failures[0]?.error
}

function takeFailures(): unknown {
  const errors = failures.map(({ error }) => error)
  failures = []
  return chain(errors)
}

/** The first error, from which the others can be reached. */
function chain(errors: readonly unknown[]): unknown {
  for (const [index, error] of errors.entries()) {
    const next = errors[index + 1]
    if (index + 1 < errors.length) attachSuppressed(error, next)
  }
  return errors[0]
}

/** Ends the outermost group, which is started unless it is only simulated, and throws what went wrong in it. */
function finish(endGroup: () => Ended, isStarted: boolean): void {
  noteDisagreement()
  if (isStarted && failures.length === 0) noteAlone()
  const met = takeMeetings()
  const expected = failures.length === 0 ? undefined : cancel()
  const { status, error } = endSafely(endGroup)
  groupState.depth = 0
  member = undefined
  refused = false
  if (kept.length > 0) kept = []
  if (status !== 0 && status !== ncclResult_t.ncclInProgress && status !== expected) note(error)
  if (failures.length > 0) throw takeFailures()
  if (isStarted) connected(met)
}

/** A library without the function that is to end the group has it ended all the same. */
function endSafely(endGroup: () => Ended): Ended {
  try {
    return endGroup()
  } catch (error) {
    note(error)
    cancel()
    ncclGroupEnd()
    return ended
  }
}

interface Ended {
  readonly status: number
  readonly error: unknown
}

/**
 * Ends NCCL's group; tells the status and the error to throw for it. NCCL looks at the current device while it starts a group, and would
 * make one current where there is none.
 */
function end(): Ended {
  const context = anyContext()
  if (context !== 0n) callInContext(context)
  const status = ncclGroupEnd()
  if (status === 0 || status === ncclResult_t.ncclInProgress) return ended
  const lost = contextError(context)
  if (lost === undefined && status < firstContextStatus) return { status, error: ncclError(status, 'ncclGroupEnd') }
  // The context was why, most likely, and then the call was not made. The group has to end all the same; where it has
  // ended already, NCCL says that there is none.
  const second = ncclGroupEnd()
  if (second === 0) return ended
  return { status: second, error: lost ?? ncclError(second, 'ncclGroupEnd') }
}

/**
 * Makes NCCL drop the open group. There is no function for it, but a group in which one call was refused is dropped
 * as a whole when it ends; a broadcast from rank -1 is refused before NCCL looks at anything else. Returns the status
 * that this leaves in the group, undefined where something else has spoilt it before.
 *
 * What was thrown says nothing about the group: an error of NCCL may come from `asyncError()`, from an earlier group or
 * from a communicator of another thread. Only a refusal seen in this group counts.
 */
function cancel(): ncclResult_t | undefined {
  if (member === undefined || refused) return undefined
  ncclBroadcast(null, null, 1, ncclDataType_t.ncclUint8, -1, member, null)
  return ncclResult_t.ncclInvalidArgument
}

function refuseThenable(result: unknown, api: string): void {
  if (typeof result !== 'object' || result === null || typeof (result as { then?: unknown }).then !== 'function') {
    return
  }
  // What it does after the group has ended, and how that fails, is a consequence of the error thrown here.
  ;(result as PromiseLike<unknown>).then(undefined, () => undefined)
  throw new TypeError(`${api}: fn must be synchronous; it returned a promise, and the group ends before that settles`)
}
