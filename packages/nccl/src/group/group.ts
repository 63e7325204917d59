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
/** Per open `groupStart()`: the number of operations refused before it. */
const starts: number[] = []
/** Number of `groupStart()` calls outside the running function of a group. */
let outerStarts = 0

const ended = { status: 0, error: undefined }

/** Keeps an object until the open group has ended, because NCCL reads it then. */
export function keepUntilGroupEnds(object: object): void {
  if (groupState.depth > 0) kept.push(object)
}

/** Records a communicator of the open group, through which the group can be cancelled. */
export function joinGroup(communicator: ncclComm_t): void {
  member = communicator
}

/** Records that NCCL refused a collective of the open group, which it then drops entirely. */
export function noteRefusal(error: unknown): void {
  refused = true
  note(error)
}

/**
 * Runs `fn` and starts its NCCL calls as one operation (`ncclGroupStart`, `ncclGroupEnd`).
 *
 * Use a group if one thread drives several communicators, because each collective waits for the other ranks. Groups
 * nest; the outermost group starts the work. Returns the result of `fn`.
 *
 * The group always ends. If `fn` throws, the recorded calls are dropped and nothing starts: a part of a group would
 * make GPUs wait for ranks that never arrive. A failed nested group fails the whole group, even if its error is caught;
 * so does a call that NCCL refuses. If there are several errors, `group` throws the first, and the property
 * `suppressed` of each error is the next error. An error from the end of the group is the last.
 *
 * @example
 * ```ts
 * group(() => { for (const { communicator, buffer } of ranks) communicator.allReduce(buffer, buffer, { stream: null })
 * })
 * ```
 *
 * @throws TypeError if `fn` is asynchronous: NCCL's group belongs to the thread, not to a chain of promises.
 * @throws TypeError if the calls of ranks of one communicator do not match; nothing is started.
 * @throws CommunicatorStateError if NCCL would wait to connect a rank of this thread that is not in the group.
 * @throws StatusError if NCCL refuses the group.
 */
export function group<T>(fn: () => T): T {
  requireFunction(fn, 'group', 'fn')
  openGroup()
  const result = runInGroup(fn, 'group')
  closeGroup()
  return result as T
}

/**
 * Opens a group as in {@link group}, for calls that cannot be in one function (`ncclGroupStart`).
 *
 * {@link groupEnd} ends it. Groups nest. The group belongs to the thread: end it before any `await`, because other
 * operations of the program would join it.
 *
 * @example
 * ```ts
 * groupStart()
 * try {
 *   for (const [rank, communicator] of communicators.entries())
 *     communicator.allReduce(send[rank], recv[rank], { stream: null })
 * } finally {
 *   groupEnd()
 * }
 * ```
 *
 * @throws StatusError if NCCL refuses.
 */
export function groupStart(): void {
  openGroup()
  starts.push(groupState.unmade)
}

/**
 * Ends the group of the last {@link groupStart}; the outermost group starts its operations (`ncclGroupEnd`).
 *
 * Call `groupEnd` also after an operation has thrown: the whole group is then dropped, because a part of it would wait
 * for ranks that never arrive.
 *
 * @throws GroupStateError if no `groupStart()` is open, or an operation of the group was refused; else as
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

/** Runs the function of a group. Records its error, and groups that it leaves open. */
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

/** Ends the innermost group and throws its errors. */
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

/** Ends the outermost group and throws its errors. `isStarted` is false for a simulation. */
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

/** Ends the group even if the library lacks the function for it. */
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

/** Result of ending a group. */
export interface Ended {
  readonly status: number
  readonly error: unknown
}

/**
 * Ends NCCL's group. Returns the status and the error to throw.
 *
 * NCCL reads the current device when it starts a group, and would make a context current if there is none.
 */
export function end(): Ended {
  const context = anyContext()
  if (context !== undefined) callInContext(context)
  const status = ncclGroupEnd()
  if (status === 0 || status === ncclResult_t.ncclInProgress) return ended
  const lost = contextError(context)
  if (lost === undefined && status < firstContextStatus) return { status, error: ncclError(status, 'ncclGroupEnd') }
  // The context probably caused the failure, so the call was not made, but the group must end. If it had already ended,
  // NCCL reports that no group is open.
  const second = ncclGroupEnd()
  if (second === 0) return ended
  return { status: second, error: lost ?? ncclError(second, 'ncclGroupEnd') }
}

/**
 * Makes NCCL drop the open group. Returns the status left in the group; undefined if it had already failed.
 *
 * NCCL has no function for this, but it drops a group in which one call was refused. It refuses a broadcast from rank
 * -1 before any other check.
 *
 * A thrown error does not show that the group has failed: it may come from `asyncError()`, an earlier group or another
 * thread's communicator. Only a refusal in this group counts.
 */
function cancel(): ncclResult_t | undefined {
  if (member === undefined || refused) return undefined
  ncclBroadcast(null, null, 1, ncclDataType_t.ncclUint8, -1, member, null)
  return ncclResult_t.ncclInvalidArgument
}

/** Records mismatched calls of ranks of one communicator, which would deadlock or corrupt memory. */
export function noteMismatch(): void {
  const error = takeMismatch()
  if (error !== undefined) note(error)
}
