import { checkCuda } from '@shoal/driver/basics'
import { enterContext, leaveContext, readCString } from '@shoal/ffi'
import { nccl, type ncclComm_t, ncclGetErrorString, ncclGetLastError, ncclResult_t } from '@shoal/nccl-sys'
import { requireInteger, StatusError } from '@shoal/types'

const resultNames = new Map<number, string>(Object.entries(ncclResult_t).map(([name, value]) => [value, name]))

// After these the communicator is of no more use: it can be aborted and nothing else.
const fatal: ReadonlySet<number> = new Set([
  ncclResult_t.ncclUnhandledCudaError,
  ncclResult_t.ncclSystemError,
  ncclResult_t.ncclInternalError,
  ncclResult_t.ncclRemoteError,
  ncclResult_t.ncclTimeout,
])

/**
 * From here on a status is CUDA's and not NCCL's: the call was to be made in a context that could not be made current,
 * so it was not made.
 */
export const firstContextStatus = 100

/**
 * The driver's error when a context cannot be made current, undefined when it can. CUDA's codes 1 to 4 are NCCL's as
 * well, so that a status alone does not tell whether a call failed or was not made for want of its context.
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

/** After a call that was to be made in a context, and failed: throws when the context was why. */
export function throwContextError(context: bigint): void {
  const error = contextError(context)
  if (error !== undefined) throw error
}

/** Throws for every status but `ncclSuccess` and `ncclInProgress`; the latter is no error. */
export function checkNccl(status: number, api: string, communicator: ncclComm_t | null = null): void {
  if (status >= firstContextStatus) checkCuda(status, 'cuCtxSetCurrent')
  if (status !== 0 && status !== ncclResult_t.ncclInProgress) throw ncclError(status, api, communicator)
}

/**
 * The error for a status that NCCL returned: the name (`code`) and description of the status, and what NCCL itself
 * said last (`lastError`). `isSticky` is true where the communicator cannot go on.
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
 * What NCCL says of a status code, such as of one that a raw function of `@shoal/nccl-sys` returned
 * (`ncclGetErrorString`).
 *
 * @param status an `ncclResult_t`.
 * @returns a short English text; for a code that NCCL does not know, its text for that.
 * @throws TypeError, RangeError for what is no 32-bit integer; LibraryNotFoundError when there is no NCCL.
 */
export function ncclStatusText(status: number): string {
  requireInteger(status, 'ncclStatusText', 'status', -(2 ** 31), 2 ** 31 - 1)
  return readCString(ncclGetErrorString(status as ncclResult_t)) ?? 'unknown result code'
}

/** What NCCL itself said last; undefined where the library is too old to tell. */
export function lastErrorOf(communicator: ncclComm_t | null): string | undefined {
  return ask(() => readCString(ncclGetLastError(communicator)) ?? undefined)
}

/**
 * An old library may lack the function that describes its error; the error itself must reach the caller all the same.
 */
function ask<T>(question: () => T): T | undefined {
  try {
    return question()
  } catch {
    return undefined
  }
}
