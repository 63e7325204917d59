import { nameErrorClass, ShoalError } from './base.js'

/** Options of the {@link BusyError} constructor. */
export interface BusyErrorOptions {
  /** Class of the busy object, such as `'Communicator'`. */
  readonly object: string
  /** The call that was refused. */
  readonly api: string
  /** The call in progress. */
  readonly underWay: string
  /** Advice for the caller; a sentence without its full stop. */
  readonly hint?: string | undefined
  readonly cause?: unknown
}

/** A call was refused because another call on the same object has not completed. */
export class BusyError extends ShoalError {
  static {
    nameErrorClass(BusyError, 'BusyError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_BUSY'
  /** Class of the busy object, such as `'Communicator'`. */
  readonly object: string
  /** The function that was called. */
  readonly api: string
  /** The call in progress. */
  readonly underWay: string

  constructor(options: BusyErrorOptions) {
    const { object, api, underWay, hint = `await ${underWay} first` } = options
    super(`${api}: the ${object} is busy with ${underWay}; ${hint}.`, options)
    this.object = object
    this.api = api
    this.underWay = underWay
  }
}

/** A setting was changed after its object was already in use. Change the setting before the first use. */
export class AlreadyInUseError extends ShoalError {
  static {
    nameErrorClass(AlreadyInUseError, 'AlreadyInUseError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_ALREADY_IN_USE'
  /** The function that changes the setting. */
  readonly api: string
  /** The object in use, such as `'NVIDIA CUDA driver'`. */
  readonly object: string

  constructor(options: { readonly api: string; readonly object: string; readonly reason: string }) {
    super(`${options.api}: ${options.reason}`)
    this.api = options.api
    this.object = options.object
  }
}
