import { checkCuda } from '@shoal/driver/basics'
import { enterContext, leaveContext, readCString } from '@shoal/ffi'
import { nccl, type ncclComm_t, ncclGetErrorString, ncclGetLastError, ncclResult_t } from '@shoal/nccl-sys'
import { requireInteger, StatusError } from '@shoal/types'

const resultNames = new Map<number, string>(Object.entries(ncclResult_t).map(([name, value]) => [value, name]))

// After these statuses the communicator can only be aborted.
const fatal: ReadonlySet<number> = new Set([
  ncclResult_t.ncclUnhandledCudaError,
  ncclResult_t.ncclSystemError,
  ncclResult_t.ncclInternalError,
  ncclResult_t.ncclRemoteError,
  ncclResult_t.ncclTimeout,
])

/** Statuses from here on come from CUDA: the call was not made, because its context could not be made current. */
export const firstContextStatus = 100

/**
 * Returns the driver's error if a context cannot be made current, else undefined.
 *
 * CUDA's codes 1 to 4 are also codes of NCCL. So the status alone does not show whether the call failed or was not
 * made.
 */
export function contextError(context: bigint | undefined): unknown {
  if (context === undefined) return undefined
  try {
    leaveContext(enterContext(context))
    return undefined
  } catch (error) {
    return error
  }
}

/** Throws after a failed call if its context was the reason. */
export function throwContextError(context: bigint): void {
  const error = contextError(context)
  if (error !== undefined) throw error
}

/** Throws for every status except `ncclSuccess` and `ncclInProgress`, which is not an error. */
export function checkNccl(status: number, api: string, communicator: ncclComm_t | null = null): void {
  if (status >= firstContextStatus) checkCuda(status, 'cuCtxSetCurrent')
  if (status !== 0 && status !== ncclResult_t.ncclInProgress) throw ncclError(status, api, communicator)
}

/**
 * Returns the error for an NCCL status.
 *
 * It contains name (`code`) and description of the status, and NCCL's last message (`lastError`). `isSticky` is true if
 * the communicator is lost.
 */
export function ncclError(status: number, api: string, communicator: ncclComm_t | null = null): StatusError {
  const lastError = lastErrorOf(communicator)
  const libraryVersion = ask(() => nccl.versionText)
  return new StatusError({
    library: 'NCCL',
    api,
    status,
    code: resultNames.get(status) ?? `ncclResult_t(${status})`,
    description: ask(() => ncclStatusText(status)) ?? 'unknown result code',
    isSticky: fatal.has(status),
    ...(lastError ? { lastError } : {}),
    ...(libraryVersion ? { libraryVersion } : {}),
  })
}

/**
 * Returns NCCL's description of a status code (`ncclGetErrorString`).
 *
 * @param status an `ncclResult_t`, such as a result of a function of `@shoal/nccl-sys`.
 * @returns a short English text, also for an unknown code.
 * @throws TypeError, RangeError for a value that is not a 32-bit integer; LibraryNotFoundError if NCCL is missing.
 */
export function ncclStatusText(status: number): string {
  requireInteger(status, 'ncclStatusText', 'status', -(2 ** 31), 2 ** 31 - 1)
  return readCString(ncclGetErrorString(status as ncclResult_t)) ?? 'unknown result code'
}

/** Returns NCCL's last message; undefined if the library is too old. */
export function lastErrorOf(communicator: ncclComm_t | null): string | undefined {
  return ask(() => readCString(ncclGetLastError(communicator)) ?? undefined)
}

/** Calls `question`; undefined if it throws, because a missing description must not replace the error. */
function ask<T>(question: () => T): T | undefined {
  try {
    return question()
  } catch {
    return undefined
  }
}
