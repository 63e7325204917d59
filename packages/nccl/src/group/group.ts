import { callInContext } from '@shoal/ffi'
import {
  ncclBroadcast,
  type ncclComm_t,
  ncclDataType_t,
  ncclGroupEnd,
  ncclGroupStart,
  ncclResult_t,
} from '@shoal/nccl-sys'
import { requireFunction } from '@shoal/types'
import { checkNccl, contextError, firstContextStatus, ncclError } from '../errors.js'
import { anyContext } from '../lifetime/openContexts.js'
import { findDeadlock, markConnected, takePendingConnects } from './connections.js'
import { attempt, firstFailure, hasFailed, note, takeFailures } from './failures.js'
import { GroupStateError, groupState, isCollecting } from './groupState.js'
import { takeMismatch } from './operationMatch.js'

/** A communicator with an operation in the group. */
let member: ncclComm_t | undefined
let refused = false
let kept: object[] = []
/** Of each `groupStart()` that is open: how many operations had been refused until then. */
const starts: number[] = []
/** How many of them are not of the function of a group that runs now. */
let outerStarts = 0

const ended = { status: 0, error: undefined }

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
 * @throws CommunicatorStateError when NCCL would wait for a rank of this thread that is not in the group, to connect
 * it.
 * @throws StatusError when NCCL refuses the group.
 */
export function group<T>(fn: () => T): T {
  requireFunction(fn, 'group', 'fn')
  openGroup()
  const result = runInGroup(fn, 'group')
  closeGroup()
  return result as T
}

/**
 * Opens a group like that of {@link group}, for code that cannot be a function (`ncclGroupStart`); {@link groupEnd}
 * ends it. Groups nest. The group belongs to the thread: end it before anything is awaited, or other operations of the
 * program get into it.
 *
 * @example
 * ```ts groupStart() try { for (const [rank, communicator] of communicators.entries())
 * communicator.allReduce(send[rank], recv[rank], { stream: null }) } finally { groupEnd() }
 * ```
 *
 * @throws StatusError when NCCL refuses.
 */
export function groupStart(): void {
  openGroup()
  starts.push(groupState.unmade)
}

/**
 * Ends the group of the last {@link groupStart}; the outermost group starts the operations made in it (`ncclGroupEnd`).
 * Call it also after an operation has thrown: the group is then dropped as a whole, since half of it would wait for
 * ranks that never come.
 *
 * @throws GroupStateError when no `groupStart()` is open, or an operation of the group was refused; else as
 * {@link group}.
 */
export function groupEnd(): void {
  if (starts.length === outerStarts) {
    throw new GroupStateError('groupEnd', 'no group is open here that groupStart() has opened')
  }
  if (groupState.unmade > (starts.pop() as number)) {
    note(
      new GroupStateError('groupEnd', 'an operation of the group was refused when it was called, so none is started'),
    )
  }
  closeGroup()
}

/** Runs the function of a group; what it throws is noted, and so is a group that it leaves open. */
export function runInGroup<T>(fn: () => T, api: string): T | undefined {
  const before = outerStarts
  outerStarts = starts.length
  const result = attempt(fn, api)
  for (; starts.length > outerStarts; starts.pop()) {
    note(new GroupStateError(api, 'fn has called groupStart() without groupEnd()'))
    if (!isCollecting()) closeNested()
  }
  outerStarts = before
  return result
}

function openGroup(): void {
  if (isCollecting()) return
  checkNccl(ncclGroupStart(), 'ncclGroupStart')
  groupState.depth += 1
}

/** Ends the innermost group, and throws what went wrong in it. */
function closeGroup(): void {
  if (groupState.depth === 1) {
    finishGroup(end, true)
    return
  }
  if (!isCollecting()) closeNested()
  if (hasFailed()) throw firstFailure()
}

function closeNested(): void {
  groupState.depth -= 1
  const status = ncclGroupEnd()
  if (status !== 0) note(ncclError(status, 'ncclGroupEnd'))
}

/** Ends the outermost group, which is started unless it is only simulated, and throws what went wrong in it. */
export function finishGroup(endGroup: () => Ended, isStarted: boolean): void {
  noteMismatch()
  const connects = takePendingConnects()
  if (isStarted && connects.length > 0 && !hasFailed()) {
    const deadlock = findDeadlock(connects)
    if (deadlock !== undefined) note(deadlock)
  }
  const expected = hasFailed() ? cancel() : undefined
  const { status, error } = endSafely(endGroup)
  groupState.depth = 0
  groupState.unmade = 0
  member = undefined
  refused = false
  if (kept.length > 0) kept = []
  if (status !== 0 && status !== ncclResult_t.ncclInProgress && status !== expected) note(error)
  if (hasFailed()) throw takeFailures()
  if (isStarted && connects.length > 0) markConnected(connects)
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

/** What ending a group gave. */
export interface Ended {
  readonly status: number
  readonly error: unknown
}

/**
 * Ends NCCL's group; tells the status and the error to throw for it. NCCL looks at the current device while it starts a
 * group, and would make one current where there is none.
 */
export function end(): Ended {
  const context = anyContext()
  if (context !== undefined) callInContext(context)
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

/** Ranks of one communicator that ask for different things would wait for each other, or do damage. */
export function noteMismatch(): void {
  const error = takeMismatch()
  if (error !== undefined) note(error)
}
