import { nameErrorClass, ShoalError } from './base.js'

/** What a {@link BusyError} says. */
export interface BusyErrorOptions {
  /** What cannot be used now, such as `'Communicator'`. */
  readonly object: string
  /** The call that was refused. */
  readonly api: string
  /** The call that is under way. */
  readonly underWay: string
  /** What to do instead; a sentence without its full stop. */
  readonly hint?: string | undefined
  readonly cause?: unknown
}

/** A call was refused because another one on the same object has not ended, and the two must not overlap. */
export class BusyError extends ShoalError {
  static {
    nameErrorClass(BusyError, 'BusyError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_BUSY'
  /** What is busy, such as `'Communicator'`. */
  readonly object: string
  /** The function that was called. */
  readonly api: string
  /** The call that is under way. */
  readonly underWay: string

  constructor(options: BusyErrorOptions) {
    const { object, api, underWay, hint = `await ${underWay} first` } = options
    super(`${api}: the ${object} is busy with ${underWay}; ${hint}.`, options)
    this.object = object
    this.api = api
    this.underWay = underWay
  }
}

/** A choice came too late: what it is about is in use already. Make it before the first use. */
export class AlreadyInUseError extends ShoalError {
  static {
    nameErrorClass(AlreadyInUseError, 'AlreadyInUseError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_ALREADY_IN_USE'
  /** The function that chooses. */
  readonly api: string
  /** What is in use, such as `'NVIDIA CUDA driver'`. */
  readonly object: string

  constructor(options: { readonly api: string; readonly object: string; readonly reason: string }) {
    super(`${options.api}: ${options.reason}`)
    this.api = options.api
    this.object = options.object
  }
}
