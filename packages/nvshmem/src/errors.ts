import { checkCuda as checkDriver } from '@shoal/driver/basics'
import { nvshmem, nvshmemx_status } from '@shoal/nvshmem-sys'
import { nameErrorClass, requireInteger, ShoalError, StatusError } from '@shoal/types'

/** NVSHMEM is or was running in this process; a process can start it only once. */
export class SessionExistsError extends ShoalError {
  static {
    nameErrorClass(SessionExistsError, 'SessionExistsError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_NVSHMEM_SESSION_EXISTS'
}

/**
 * The session's thread is stuck in NVSHMEM, in a call that was cancelled.
 *
 * The call waits for other PEs and was cancelled by a timeout or signal. NVSHMEM cannot end it. The session is usable
 * again if the call returns.
 */
export class SessionStuckError extends ShoalError {
  static {
    nameErrorClass(SessionStuckError, 'SessionStuckError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_NVSHMEM_STUCK'
  /** The call, or the call that waited for its turn. */
  readonly operation: string
  /** The cancelled call. */
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
  NVSHMEMX_SUCCESS: 'no error',
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

/** Name and meaning of an NVSHMEM status. */
export interface NvshmemStatusText {
  /** Name, such as `NVSHMEMX_ERROR_INVALID_VALUE`. */
  readonly name: string
  /** Meaning of the status. */
  readonly description: string
}

/**
 * Returns name and meaning of a status (`nvshmemx_status`), without loading a library.
 *
 * NVSHMEM has no function for this.
 *
 * @param status - a result of a function of `@shoal/nvshmem-sys`; any 32-bit integer is accepted.
 * @throws TypeError, RangeError for other values.
 */
export function nvshmemStatusText(status: number): NvshmemStatusText {
  return textOf(requireInteger(status, 'nvshmemStatusText', 'status', -(2 ** 31), 2 ** 31 - 1))
}

function textOf(status: number): NvshmemStatusText {
  const name = statusNames.get(status) ?? `nvshmemx_status(${status})`
  return { name, description: descriptions[name] ?? 'unknown status; what NVSHMEM printed may tell more' }
}

/** Returns the error for an NVSHMEM status. */
export function nvshmemError(status: number, api: string, description?: string): StatusError {
  const text = textOf(status)
  const version = ask(() => nvshmem.versionText)
  return new StatusError({
    library: 'NVSHMEM',
    api,
    status,
    code: text.name,
    description: description ?? text.description,
    isSticky: false,
    ...(version === undefined ? {} : { libraryVersion: version }),
  })
}

/** Throws for every status except `NVSHMEMX_SUCCESS`. */
export function checkNvshmem(status: unknown, api: string): void {
  if (status !== 0) throw nvshmemError(Number(status), api)
}

/** Throws for every CUDA driver status except `CUDA_SUCCESS`; accepts results of calls on another thread. */
export function checkCuda(status: unknown, api: string): void {
  if (status !== 0) checkDriver(Number(status), api)
}

/** Calls `question`; undefined if it throws, because a failed description must not replace the error. */
function ask<T>(question: () => T): T | undefined {
  try {
    return question()
  } catch {
    return undefined
  }
}
