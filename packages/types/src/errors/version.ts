import { nameErrorClass, ShoalError } from './base.js'

/** Options of the {@link VersionTooOldError} constructor. */
export interface VersionTooOldErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The C function. */
  readonly api: string
  /** First version with the function, such as `'12.1'`. */
  readonly since: string
  /** Loaded version. */
  readonly installed: string
  readonly cause?: unknown
}

/** The loaded library is too old for a function. */
export class VersionTooOldError extends ShoalError {
  static {
    nameErrorClass(VersionTooOldError, 'VersionTooOldError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_VERSION_TOO_OLD'
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The function that was called. */
  readonly api: string
  /** First version with the function, such as `'12.1'`. */
  readonly since: string
  /** Version of the loaded library. */
  readonly installed: string

  constructor(options: VersionTooOldErrorOptions) {
    super(
      `${options.api} needs ${options.library} ${options.since} or newer; ${options.installed} is installed. ` +
        `Update ${options.library} to use it.`,
      options,
    )
    this.library = options.library
    this.api = options.api
    this.since = options.since
    this.installed = options.installed
  }
}

/** Options of the {@link VersionTooNewError} constructor. */
export interface VersionTooNewErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The C function. */
  readonly api: string
  /** Newest version whose signature of the function is known, such as `'13.0'`. */
  readonly known: string
  /** Loaded version. */
  readonly installed: string
  readonly cause?: unknown
}

/** The loaded library is too new: it changed the signature of a function. */
export class VersionTooNewError extends ShoalError {
  static {
    nameErrorClass(VersionTooNewError, 'VersionTooNewError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_VERSION_TOO_NEW'
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The function that was called. */
  readonly api: string
  /** Newest version whose signature of the function is known. */
  readonly known: string
  /** Version of the loaded library. */
  readonly installed: string

  constructor(options: VersionTooNewErrorOptions) {
    super(
      `${options.api} is bound with the signature of ${options.library} ${options.known}; ${options.installed} is installed, ` +
        `whose signature differs. Use a newer Shoal, or ${options.library} ${options.known}.`,
      options,
    )
    this.library = options.library
    this.api = options.api
    this.known = options.known
    this.installed = options.installed
  }
}

/** Options of the {@link FeatureNotSupportedError} constructor. */
export interface FeatureNotSupportedErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The C function, or words such as `'multicast objects'`. */
  readonly api: string
  /** Why the feature is missing: the library is too old, or the device or the platform lacks the feature. */
  readonly reason: string
  /** First version with the feature, if another version helps. */
  readonly since?: string | undefined
  /** Loaded version. */
  readonly installed?: string | undefined
  readonly cause?: unknown
}

/** The library, the device or the platform lacks a feature. */
export class FeatureNotSupportedError extends ShoalError {
  static {
    nameErrorClass(FeatureNotSupportedError, 'FeatureNotSupportedError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_FEATURE_NOT_SUPPORTED'
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The function that was called. */
  readonly api: string
  /** Why the feature is missing; a sentence without its full stop. */
  readonly reason: string
  /** First version with the feature. */
  declare readonly since?: string
  /** Loaded version. */
  declare readonly installed?: string

  constructor(options: FeatureNotSupportedErrorOptions) {
    super(`${options.library} does not support ${options.api} here: ${options.reason}`, options)
    this.library = options.library
    this.api = options.api
    this.reason = options.reason
    if (options.since !== undefined) this.since = options.since
    if (options.installed !== undefined) this.installed = options.installed
  }
}
