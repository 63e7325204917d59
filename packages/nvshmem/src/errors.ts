import { checkCuda as checkDriver } from '@shoal/cuda-base/basics'
import { nvshmem, nvshmemx_status } from '@shoal/nvshmem-sys'
import { nameErrorClass, ShoalError, StatusError } from '@shoal/types'

/** NVSHMEM is running in this process already, or ran with another id, and cannot be started like this. */
export class SessionExistsError extends ShoalError {
  static {
    nameErrorClass(SessionExistsError, 'SessionExistsError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_NVSHMEM_SESSION_EXISTS'
}

/**
 * An earlier call of the session is still under way, and NVSHMEM takes one call at a time. Methods that return a promise
 * wait for their turn; those that end in `Sync` cannot.
 */
export class SessionBusyError extends ShoalError {
  static {
    nameErrorClass(SessionBusyError, 'SessionBusyError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_NVSHMEM_BUSY'
  /** What was called. */
  readonly operation: string
  /** The call that is under way. */
  readonly waitingFor: string

  /** @internal */
  constructor(operation: string, waitingFor: string) {
    super(
      `${operation} cannot run now: ${waitingFor} has not returned, and NVSHMEM takes one call at a time. Await that first.`,
    )
    this.operation = operation
    this.waitingFor = waitingFor
  }
}

/**
 * A call that waits for other PEs was given up (timeout, signal) and has not returned since: the thread of the session is
 * inside NVSHMEM, which offers no way to end it. The session is of use again if the call ever returns.
 */
export class SessionStuckError extends ShoalError {
  static {
    nameErrorClass(SessionStuckError, 'SessionStuckError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_NVSHMEM_STUCK'
  /** What was called, or was waiting for its turn. */
  readonly operation: string
  /** The call that was given up. */
  readonly waitingFor: string

  /** @internal */
  constructor(operation: string, waitingFor: string, cause: unknown) {
    super(
      `${operation} cannot run: ${waitingFor} was given up and has not returned. NVSHMEM cannot end a call that waits for ` +
        'a PE that is gone; end this process, or wait for the call to return.',
      { cause },
    )
    this.operation = operation
    this.waitingFor = waitingFor
  }
}

// NVSHMEM has no function that describes its statuses.
const descriptions: { readonly [name: string]: string } = {
  NVSHMEMX_ERROR_INVALID_VALUE: 'an argument is wrong',
  NVSHMEMX_ERROR_OUT_OF_MEMORY: 'not enough symmetric or other memory',
  NVSHMEMX_ERROR_NOT_SUPPORTED: 'not supported here',
  NVSHMEMX_ERROR_SYMMETRY: 'the PEs did not make the same call',
  NVSHMEMX_ERROR_GPU_NOT_SELECTED: 'no device is selected',
  NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED: 'the collective launch failed',
  NVSHMEMX_ERROR_INTERNAL: 'an error inside NVSHMEM; what it printed tells more',
}

const statusNames = new Map<number, string>(
  Object.entries(nvshmemx_status)
    .filter(([name]) => !name.endsWith('SENTINEL'))
    .map(([name, value]) => [value, name]),
)

/** The error for a status of NVSHMEM. */
export function nvshmemError(status: number, api: string, description?: string): StatusError {
  const code = statusNames.get(status) ?? `nvshmemx_status(${status})`
  const version = ask(() => nvshmem.versionText)
  return new StatusError({
    library: 'NVSHMEM',
    api,
    status,
    code,
    description: description ?? descriptions[code] ?? 'unknown status; what NVSHMEM printed may tell more',
    isSticky: false,
    ...(version === undefined ? {} : { libraryVersion: version }),
  })
}

/** Throws for every status but `NVSHMEMX_SUCCESS`. */
export function checkNvshmem(status: unknown, api: string): void {
  if (status !== 0) throw nvshmemError(Number(status), api)
}

/** Throws for every status of the CUDA driver but `CUDA_SUCCESS`; takes what a call on another thread has returned. */
export function checkCuda(status: unknown, api: string): void {
  if (status !== 0) checkDriver(Number(status), api)
}

/** What describes an error may itself be missing; the error must reach the caller all the same. */
function ask<T>(question: () => T): T | undefined {
  try {
    return question()
  } catch {
    return undefined
  }
}
