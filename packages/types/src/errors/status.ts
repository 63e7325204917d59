import { nameErrorClass, ShoalError } from './base.js'

/** What a {@link StatusError} says. */
export interface StatusErrorOptions {
  /** Title of the library that answered, such as `'CUDA driver'` or `'NCCL'`. */
  readonly library: string
  /** The C function, such as `'cuMemAlloc'`. */
  readonly api: string
  /** The number the function returned. */
  readonly status: number
  /** The library's own name for it, such as `'CUDA_ERROR_OUT_OF_MEMORY'`. */
  readonly code: string
  /** The library's own description of it. */
  readonly description: string
  /** Whether the context (CUDA) or communicator (NCCL) is lost; false when left out. */
  readonly isSticky?: boolean | undefined
  /** What the library last logged about the failure: `ncclGetLastError`. */
  readonly lastError?: string | undefined
  /** Version of the loaded library, printed as people write it. */
  readonly libraryVersion?: string | undefined
  readonly cause?: unknown
}

/**
 * A C function answered with a status other than success.
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
  /** What the function returned. */
  readonly status: number
  /** What the library says of the status; may be empty. */
  readonly description: string
  /**
   * True when this failure leaves nothing usable behind: every later call on the same CUDA context, or the same
   * communicator, fails too. Only a new process (CUDA) or a new communicator (NCCL) helps.
   */
  readonly isSticky: boolean
  /** What the library said beside its status, where it keeps such a text. */
  declare readonly lastError?: string
  /** Version of the library, where it is known. */
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
