import { checkCuda as checkDriver } from '@shoal/driver/basics'
import { nvshmem, nvshmemx_status } from '@shoal/nvshmem-sys'
import { nameErrorClass, requireInteger, ShoalError, StatusError } from '@shoal/types'

/** NVSHMEM runs in this process already, or has run before: it can be started once in a process. */
export class SessionExistsError extends ShoalError {
  static {
    nameErrorClass(SessionExistsError, 'SessionExistsError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_NVSHMEM_SESSION_EXISTS'
}

/**
 * A call that waits for other PEs was given up (timeout, signal) and has not returned since: the thread of the session
 * is inside NVSHMEM, which offers no way to end it. The session can be used again if the call returns after all.
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

/** What a status of NVSHMEM is called, and what it means. */
export interface NvshmemStatusText {
  /** Such as `NVSHMEMX_ERROR_INVALID_VALUE`. */
  readonly name: string
  /** What it means. */
  readonly description: string
}

/**
 * Name and meaning of a status (`nvshmemx_status`), which NVSHMEM has no function for. Loads no library.
 *
 * @param status - as a function of `@shoal/nvshmem-sys` returned it; any number has a text.
 * @throws TypeError, RangeError for what is no integer of 32 bits.
 */
export function nvshmemStatusText(status: number): NvshmemStatusText {
  return textOf(requireInteger(status, 'nvshmemStatusText', 'status', -(2 ** 31), 2 ** 31 - 1))
}

function textOf(status: number): NvshmemStatusText {
  const name = statusNames.get(status) ?? `nvshmemx_status(${status})`
  return { name, description: descriptions[name] ?? 'unknown status; what NVSHMEM printed may tell more' }
}

/** The error for a status of NVSHMEM. */
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
