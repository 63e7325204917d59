import { callInContext } from '@shoal/ffi'
import {
  ncclBroadcast,
  type ncclComm_t,
  ncclDataType_t,
  ncclGroupEnd,
  ncclGroupStart,
  ncclResult_t,
} from '@shoal/nccl-sys'
import { attachSuppressed } from './attach.js'
import { anyContext } from './contexts.js'
import { checkNccl, contextError, firstContextStatus, ncclError } from './errors.js'

// NCCL keeps its group depth per thread; a worker has its own thread and its own copy of this module.
let depth = 0
let member: ncclComm_t | undefined
let failure: { readonly error: unknown } | undefined
let refused = false

const ended = { status: 0, error: undefined }

/** Whether a group is open on this thread. */
export function isGroupOpen(): boolean {
  return depth > 0
}

/** Called by each collective inside a group, so that the group can be cancelled through one of its communicators. */
export function joinGroup(communicator: ncclComm_t): void {
  member = communicator
}

/** Called when NCCL itself refuses a collective of the open group, which is then dropped as a whole when it ends. */
export function noteRefusal(): void {
  refused = true
}

/**
 * Runs `fn` and starts the NCCL calls made in it as one operation (`ncclGroupStart`, `ncclGroupEnd`). Needed whenever
 * one thread drives several communicators, since each collective waits for the other ranks. Groups nest; the outermost
 * one starts the work. Returns what `fn` returns.
 *
 * The group always ends. When `fn` throws, the calls recorded so far are dropped: nothing is launched, where half a
 * group would leave the GPUs waiting for ranks that never come. A nested group that fails makes the whole group fail,
 * also when its error is caught. If ending the group fails as well, that second error is the `suppressed` property of
 * the first.
 *
 * @throws TypeError when `fn` is asynchronous: NCCL's group belongs to the thread, not to a chain of promises.
 * @throws StatusError when NCCL refuses the group.
 */
export function group<T>(fn: () => T): T {
  if (typeof fn !== 'function') throw new TypeError('group: fn must be a function')
  checkNccl(ncclGroupStart(), 'ncclGroupStart')
  depth += 1
  let result: T | undefined
  try {
    result = fn()
    refuseThenable(result)
  } catch (error) {
    failure ??= { error }
  }
  if (depth > 1) {
    depth -= 1
    const status = ncclGroupEnd()
    if (status !== 0) failure ??= { error: ncclError(status, 'ncclGroupEnd') }
    if (failure !== undefined) throw failure.error
    return result as T
  }
  const expected = failure === undefined ? undefined : cancel()
  const failed = failure
  depth = 0
  failure = undefined
  member = undefined
  refused = false
  const { status, error } = end()
  if (failed === undefined) {
    if (status !== 0) throw error
    return result as T
  }
  if (status !== 0 && status !== expected) attachSuppressed(failed.error, error)
  throw failed.error
}

/**
 * Ends NCCL's group; tells the status and the error to throw for it. NCCL looks at the current device while it starts a group, and would
 * make one current where there is none.
 */
function end(): { readonly status: number; readonly error: unknown } {
  const context = anyContext()
  if (context !== 0n) callInContext(context)
  const status = ncclGroupEnd()
  if (status === 0) return ended
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

function refuseThenable(result: unknown): void {
  if (typeof result !== 'object' || result === null || typeof (result as { then?: unknown }).then !== 'function') {
    return
  }
  // What it does after the group has ended, and how that fails, is a consequence of the error thrown here.
  ;(result as PromiseLike<unknown>).then(undefined, () => undefined)
  throw new TypeError('group: fn must be synchronous; it returned a promise, and the group ends before that settles')
}
