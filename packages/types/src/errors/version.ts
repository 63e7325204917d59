import { nameErrorClass, ShoalError } from './base.js'

/** What a {@link VersionTooOldError} says. */
export interface VersionTooOldErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The C function asked for. */
  readonly api: string
  /** First version that has it, as people write it: `'12.1'`. */
  readonly since: string
  /** Version that is loaded. */
  readonly installed: string
  readonly cause?: unknown
}

/** The loaded library is older than the function asked for. */
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
  /** First version that has it, as people write it: `'12.1'`. */
  readonly since: string
  /** Version of the loaded library, where it is known. */
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

/** What a {@link VersionTooNewError} says. */
export interface VersionTooNewErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The C function asked for. */
  readonly api: string
  /** Newest version whose signature of the function is known, as people write it: `'13.0'`. */
  readonly known: string
  /** Version that is loaded. */
  readonly installed: string
  readonly cause?: unknown
}

/**
 * In the loaded library the function has another signature than in the version that was bound; the library is newer.
 */
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
  /** Version of the loaded library, where it is known. */
  readonly installed: string

  constructor(options: VersionTooNewErrorOptions) {
    super(
      `${options.api} is bound as ${options.library} ${options.known} has it; ${options.installed} is installed, where its ` +
        `signature is another one. Use a newer Shoal, or ${options.library} ${options.known}.`,
      options,
    )
    this.library = options.library
    this.api = options.api
    this.known = options.known
    this.installed = options.installed
  }
}

/** What a {@link FeatureNotSupportedError} says. */
export interface FeatureNotSupportedErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** What was asked for: a C function, or in words such as `'multicast objects'`. */
  readonly api: string
  /** Why it is not there: too old a library, a device without it, a platform without it. */
  readonly reason: string
  /** First version that has it, where another version would help. */
  readonly since?: string | undefined
  /** Version that is loaded. */
  readonly installed?: string | undefined
  readonly cause?: unknown
}

/** The library, the device or the platform does not have a feature. */
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
  /** Why not; a sentence without its full stop. */
  readonly reason: string
  /** Version it came with. */
  declare readonly since?: string
  /** Version that is loaded. */
  declare readonly installed?: string

  constructor(options: FeatureNotSupportedErrorOptions) {
    super(`${options.library} cannot offer ${options.api} here: ${options.reason}`, options)
    this.library = options.library
    this.api = options.api
    this.reason = options.reason
    if (options.since !== undefined) this.since = options.since
    if (options.installed !== undefined) this.installed = options.installed
  }
}
