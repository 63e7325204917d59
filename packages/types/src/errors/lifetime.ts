import { isInstance, propertyOf } from '../anyValue.js'
import { nameErrorClass, ShoalError } from './base.js'

/** Options of the {@link DisposedError} constructor. */
export interface DisposedErrorOptions {
  /** Class of the disposed object, such as `'Stream'`. */
  readonly object: string
  /** The attempted operation, such as `'synchronize'`. */
  readonly operation?: string | undefined
  readonly cause?: unknown
}

/** An object was used after `dispose()`, or after the object that owns it was disposed. */
export class DisposedError extends ShoalError {
  static {
    nameErrorClass(DisposedError, 'DisposedError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_DISPOSED'
  /** Class of the disposed object, such as `'Stream'`. */
  readonly object: string
  /** The attempted or awaited operation. */
  declare readonly operation?: string

  constructor(objectOrOptions: string | DisposedErrorOptions) {
    const options = typeof objectOrOptions === 'string' ? { object: objectOrOptions } : objectOrOptions
    super(
      `${options.object} was disposed${options.operation === undefined ? '' : ` before ${options.operation}`}. ` +
        'Keep it alive until the last use, or create a new one.',
      options,
    )
    this.object = options.object
    if (options.operation !== undefined) this.operation = options.operation
  }
}

/** Options of the {@link AbortedError} constructor. */
export interface AbortedErrorOptions {
  /** The aborted operation or wait. */
  readonly operation?: string | undefined
  /** Whether the wait was for device work, which continues. Default: true. */
  readonly ofDevice?: boolean | undefined
  /** The reason of the `AbortSignal`. */
  readonly cause?: unknown
}

/** An `AbortSignal` ended a wait. Work already queued on the GPU continues. */
export class AbortedError extends ShoalError {
  static {
    nameErrorClass(AbortedError, 'AbortedError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_ABORTED'
  /** The aborted operation or wait. */
  declare readonly operation?: string

  constructor(operationOrOptions: string | AbortedErrorOptions = {}) {
    const options: AbortedErrorOptions =
      typeof operationOrOptions === 'string' ? { operation: operationOrOptions } : operationOrOptions
    super(
      `${options.operation ?? 'The wait'} was aborted by its signal${reasonOf(options.cause)}.${goesOn(options)}`,
      options,
    )
    if (options.operation !== undefined) this.operation = options.operation
  }
}

/** Formats a signal's reason, except the default reason of every signal. */
function reasonOf(cause: unknown): string {
  if (typeof cause === 'string' && cause !== '') return `: ${cause}`
  if (!isInstance(cause, Error)) return ''
  // A program can pass any value as the reason.
  const message: unknown = propertyOf(cause, 'message')
  if (cause.name === 'AbortError' || typeof message !== 'string' || message === '') return ''
  return `: ${message.replace(/\.$/, '')}`
}

function goesOn({ ofDevice = true }: { readonly ofDevice?: boolean | undefined }): string {
  return ofDevice ? ' Work already queued on the GPU continues.' : ''
}

/** Options of the {@link TimeoutError} constructor. */
export interface TimeoutErrorOptions {
  /** The awaited operation. */
  readonly operation?: string | undefined
  /** The time limit in milliseconds. */
  readonly timeout?: number | undefined
  /** Whether the wait was for device work, which continues. Default: true. */
  readonly ofDevice?: boolean | undefined
  readonly cause?: unknown
}

/** A wait exceeded its time limit. Work already queued on the GPU continues. */
export class TimeoutError extends ShoalError {
  static {
    nameErrorClass(TimeoutError, 'TimeoutError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_TIMEOUT'
  /** The awaited operation. */
  declare readonly operation?: string
  /** The time limit in milliseconds. */
  declare readonly timeout?: number

  constructor(operationOrOptions: string | TimeoutErrorOptions = {}) {
    const options: TimeoutErrorOptions =
      typeof operationOrOptions === 'string' ? { operation: operationOrOptions } : operationOrOptions
    const limit = options.timeout === undefined ? 'its time limit' : `${options.timeout} ms`
    super(`${options.operation ?? 'The wait'} did not end within ${limit}.${goesOn(options)}`, options)
    if (options.operation !== undefined) this.operation = options.operation
    if (options.timeout !== undefined) this.timeout = options.timeout
  }
}
