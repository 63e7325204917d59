import { nameErrorClass, ShoalError } from './base.js'

/** Options of the {@link StatusError} constructor. */
export interface StatusErrorOptions {
  /** Title of the library that returned the status, such as `'CUDA driver'` or `'NCCL'`. */
  readonly library: string
  /** The C function, such as `'cuMemAlloc'`. */
  readonly api: string
  /** The number that the function returned. */
  readonly status: number
  /** The library's name of the status, such as `'CUDA_ERROR_OUT_OF_MEMORY'`. */
  readonly code: string
  /** The library's description of the status. */
  readonly description: string
  /** Whether the context (CUDA) or communicator (NCCL) is lost. Default: false. */
  readonly isSticky?: boolean | undefined
  /** The library's last log message about the failure (`ncclGetLastError`). */
  readonly lastError?: string | undefined
  /** Version of the loaded library, such as `'2.27.3'`. */
  readonly libraryVersion?: string | undefined
  readonly cause?: unknown
}

/**
 * A C function returned a status other than success.
 *
 * @example
 * if (error instanceof StatusError && error.code === 'CUDA_ERROR_OUT_OF_MEMORY') retryWithLess()
 */
export class StatusError extends ShoalError {
  static {
    nameErrorClass(StatusError, 'StatusError')
  }

  /** The library's name of the status, such as `'CUDA_ERROR_INVALID_VALUE'`. */
  readonly code: string
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The function that was called. */
  readonly api: string
  /** The status that the function returned. */
  readonly status: number
  /** The library's description of the status; may be empty. */
  readonly description: string
  /**
   * True if every later call on the same CUDA context or communicator fails too.
   *
   * Only a new process (CUDA) or a new communicator (NCCL) helps.
   */
  readonly isSticky: boolean
  /** The library's last log message about the failure, if the library keeps one. */
  declare readonly lastError?: string
  /** Version of the loaded library, if known. */
  declare readonly libraryVersion?: string

  constructor(options: StatusErrorOptions) {
    super(statusMessage(options), options)
    this.code = options.code
    this.library = options.library
    this.api = options.api
    this.status = options.status
    this.description = options.description
    this.isSticky = options.isSticky ?? false
    if (options.lastError) this.lastError = options.lastError
    if (options.libraryVersion !== undefined) this.libraryVersion = options.libraryVersion
  }
}

function statusMessage(options: StatusErrorOptions): string {
  let message = `${options.api} failed: ${options.code} (${options.status})`
  if (options.description) message += `: ${options.description}`
  if (options.lastError) message += `\n${options.library} says: ${options.lastError}`
  if (options.isSticky) message += '\nThis error is sticky: later calls that depend on the same state fail as well.'
  return message
}
