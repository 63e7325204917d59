import { isInstance, propertyOf } from '../anyValue.js'
import { nameErrorClass, ShoalError } from './base.js'

/** What a {@link DisposedError} says. */
export interface DisposedErrorOptions {
  /** What was used after it was disposed, such as `'Stream'`. */
  readonly object: string
  /** What was attempted, such as `'synchronize'`. */
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
  /** What was used, such as `'Stream'`. */
  readonly object: string
  /** What was attempted or waited for. */
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

/** What a {@link AbortedError} says. */
export interface AbortedErrorOptions {
  /** What was being done or waited for. */
  readonly operation?: string | undefined
  /** Whether it was the work of a device that was waited for, which goes on. Default: true. */
  readonly ofDevice?: boolean | undefined
  /** The reason of the `AbortSignal`. */
  readonly cause?: unknown
}

/** An `AbortSignal` ended a wait. Work already queued on the GPU goes on. */
export class AbortedError extends ShoalError {
  static {
    nameErrorClass(AbortedError, 'AbortedError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_ABORTED'
  /** What was being done or waited for. */
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

/** What a signal was given as its reason, unless it is the one that every signal has by itself. */
function reasonOf(cause: unknown): string {
  if (typeof cause === 'string' && cause !== '') return `: ${cause}`
  if (!isInstance(cause, Error)) return ''
  // A program may have put anything there.
  const message: unknown = propertyOf(cause, 'message')
  if (cause.name === 'AbortError' || typeof message !== 'string' || message === '') return ''
  return `: ${message.replace(/\.$/, '')}`
}

function goesOn({ ofDevice = true }: { readonly ofDevice?: boolean | undefined }): string {
  return ofDevice ? ' Work already queued on the GPU goes on.' : ''
}

/** What a {@link TimeoutError} says. */
export interface TimeoutErrorOptions {
  /** What was being waited for. */
  readonly operation?: string | undefined
  /** The limit that passed, in milliseconds. */
  readonly timeout?: number | undefined
  /** Whether it was the work of a device that was waited for, which goes on. Default: true. */
  readonly ofDevice?: boolean | undefined
  readonly cause?: unknown
}

/** A wait took longer than its limit. Work already queued on the GPU goes on. */
export class TimeoutError extends ShoalError {
  static {
    nameErrorClass(TimeoutError, 'TimeoutError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_TIMEOUT'
  /** What was being done or waited for. */
  declare readonly operation?: string
  /** The limit that passed, in milliseconds. */
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
