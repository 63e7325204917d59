import { callInContext } from '@shoal/ffi'
import { initialNcclSimInfo, ncclGroupSimulateEnd, ncclGroupStart, ncclSimInfo_t } from '@shoal/nccl-sys'
import { requireFunction } from '@shoal/types'
import { checkNccl, contextError, ncclError } from '../errors.js'
import { anyContext } from '../lifetime/openContexts.js'
import { hasFailed } from './failures.js'
import { type Ended, end, finishGroup, runInGroup } from './group.js'
import { groupState, requireNoGroup } from './groupState.js'

/** NCCL's estimate of a group. */
export interface GroupEstimate {
  /** Estimated total time in microseconds; undefined without an estimate. */
  readonly microseconds: number | undefined
}

/**
 * Estimates the time of the NCCL calls in `fn` without starting them (`ncclGroupSimulateEnd`, NCCL 2.22).
 *
 * Needs no other rank.
 *
 * @throws TypeError if `fn` is asynchronous; BusyError inside a group; VersionTooOldError; StatusError if NCCL refuses.
 */
export function simulateGroup(fn: () => unknown): GroupEstimate {
  requireFunction(fn, 'simulateGroup', 'fn')
  requireNoGroup('simulateGroup')
  const info = initialNcclSimInfo()
  try {
    checkNccl(ncclGroupStart(), 'ncclGroupStart')
    groupState.depth += 1
    runInGroup(fn, 'simulateGroup')
    finishGroup(() => (hasFailed() ? end() : endSimulated(info)), false)
    const { estimatedTime } = ncclSimInfo_t.read(info)
    return { microseconds: estimatedTime < 0 ? undefined : estimatedTime }
  } finally {
    info.dispose()
  }
}

function endSimulated(info: Parameters<typeof ncclGroupSimulateEnd>[0]): Ended {
  const context = anyContext()
  if (context !== undefined) callInContext(context)
  const status = ncclGroupSimulateEnd(info)
  if (status === 0) return { status, error: undefined }
  return { status, error: contextError(context) ?? ncclError(status, 'ncclGroupSimulateEnd') }
}
