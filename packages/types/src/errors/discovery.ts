import { nameErrorClass, ShoalError } from './base.js'

/** One place where a library was looked for, and how that ended. */
export interface LoadAttempt {
  /** The kind of place: `'option'`, `'environment'`, `'loaded'`, `'loader'`, `'cuda-home'`, `'toolkit'`, `'wheel'` or `'sim'`. */
  readonly step: string
  /** File name or path that was tried. */
  readonly candidate: string
  /** `'loaded'`, `'not there'`, or what the system's loader said. */
  readonly outcome: string
}

/** The attempts as an indented table, one line each: what was tried, where, and what came of it. */
export function formatLoadAttempts(attempts: readonly LoadAttempt[]): string {
  if (attempts.length === 0) return '  (nothing was tried)'
  const stepWidth = Math.max(...attempts.map((attempt) => attempt.step.length))
  const continuation = `\n${' '.repeat(stepWidth + 6)}`
  return attempts
    .map(({ step, candidate, outcome }) => {
      // A loader may answer with several lines; keep them inside the column.
      const words = outcome.trim().replaceAll('\n', continuation)
      return `  ${step.padEnd(stepWidth)}  ${candidate}: ${words}`
    })
    .join('\n')
}

/** What a {@link LibraryNotFoundError} says. */
export interface LibraryNotFoundErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** Everything that was tried, in order. */
  readonly attempts: readonly LoadAttempt[]
  /** How to get the library. */
  readonly hint?: string | undefined
  /** Environment variable that names the library's file, such as `'SHOAL_NCCL_LIBRARY'`. */
  readonly environment?: string | undefined
  /** Whether the software device could stand in for it, which is told then. Default `true`. */
  readonly isOfDevice?: boolean | undefined
  readonly cause?: unknown
}

/**
 * A shared library could not be loaded. The message lists every place tried and what to do.
 *
 * @example
 * if (error instanceof LibraryNotFoundError) for (const { candidate, outcome } of error.attempts) console.log(candidate, outcome)
 */
export class LibraryNotFoundError extends ShoalError {
  static {
    nameErrorClass(LibraryNotFoundError, 'LibraryNotFoundError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_LIBRARY_NOT_FOUND'
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** Everything that was tried, in order. */
  readonly attempts: readonly LoadAttempt[]
  /** How to get the library. */
  declare readonly hint?: string
  /** Environment variable that names the library's file. */
  declare readonly environment?: string

  constructor(options: LibraryNotFoundErrorOptions) {
    const hints = []
    if (options.hint) hints.push(options.hint)
    if (options.environment) {
      hints.push(`If it is installed somewhere else, name its file: ${options.environment}=/path/to/the/library.`)
    }
    if (options.isOfDevice !== false && options.attempts.every(({ step }) => step !== 'sim')) {
      hints.push('To run without a GPU on the software device, install @shoal/sim and set SHOAL_DEVICE=sim.')
    }
    super(
      `Cannot load ${options.library}. Tried, in this order:\n${formatLoadAttempts(options.attempts)}\n` +
        `What to do:\n${hints.map((hint) => `  - ${hint}`).join('\n')}`,
      options,
    )
    this.library = options.library
    this.attempts = options.attempts
    if (options.hint !== undefined) this.hint = options.hint
    if (options.environment !== undefined) this.environment = options.environment
  }
}

/** What a {@link SymbolNotFoundError} says. */
export interface SymbolNotFoundErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The function that is not in it. */
  readonly symbol: string
  /** File of the library that was loaded. */
  readonly path?: string | undefined
  /** Version of the loaded library, where it is known. */
  readonly installed?: string | undefined
  /** Version whose signature was wanted, where the library knows the name and not with that signature. */
  readonly signatureOf?: string | undefined
  readonly cause?: unknown
}

/** The library was loaded and has no such function, or none with the signature that was wanted. */
export class SymbolNotFoundError extends ShoalError {
  static {
    nameErrorClass(SymbolNotFoundError, 'SymbolNotFoundError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_SYMBOL_NOT_FOUND'
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The function that is missing. */
  readonly symbol: string
  /** The file of the library. */
  declare readonly path?: string
  /** Version of the loaded library, where it is known. */
  declare readonly installed?: string
  /** Version whose signature was wanted, where the library knows the name and not with that signature. */
  declare readonly signatureOf?: string

  constructor(options: SymbolNotFoundErrorOptions) {
    const version = options.installed === undefined ? '' : ` ${options.installed}`
    const path = options.path === undefined ? '' : ` (${options.path})`
    const signature =
      options.signatureOf === undefined ? '' : ` with the signature that it has in ${options.signatureOf}`
    super(
      `${options.library}${version}${path} has no function ${options.symbol}${signature}. ` +
        'Another version of the library, or another platform, may have it; has() tells before calling.',
      options,
    )
    this.library = options.library
    this.symbol = options.symbol
    if (options.path !== undefined) this.path = options.path
    if (options.installed !== undefined) this.installed = options.installed
    if (options.signatureOf !== undefined) this.signatureOf = options.signatureOf
  }
}

/** What a {@link AddonLoadError} says. */
export interface AddonLoadErrorOptions {
  /** Every file tried, in order. */
  readonly attempts: readonly LoadAttempt[]
  /** Platform, C library and architecture, such as `'linux-x64'`, or `'linuxmusl-x64'`. */
  readonly platform?: string | undefined
  /** Advice that fits this platform and failure, put before the general advice. */
  readonly hints?: readonly string[] | undefined
  readonly cause?: unknown
}

/** The native addon of `@shoal/ffi` could not be loaded. The message says how to get it. */
export class AddonLoadError extends ShoalError {
  static {
    nameErrorClass(AddonLoadError, 'AddonLoadError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_ADDON_NOT_LOADED'
  /** Everything that was tried, in order. */
  readonly attempts: readonly LoadAttempt[]
  /** Platform the addon was looked for, such as `'linux-x64'`, or `'linuxmusl-x64'`. */
  readonly platform: string

  constructor(options: AddonLoadErrorOptions) {
    const platform = options.platform ?? `${process.platform}-${process.arch}`
    const hints = [
      ...(options.hints ?? []),
      `Reinstall @shoal/ffi on this machine: its addon comes in an optional dependency, @shoal/ffi-${platform}; a copy that ` +
        'leaves out *.node files loses it.',
      'Where it has none for this platform, build it, with a C++17 compiler and make: npm install @shoal/ffi-source ' +
        'node-addon-api node-api-headers && make -C node_modules/@shoal/ffi-source',
      'Or name a file built elsewhere for this platform: SHOAL_FFI_ADDON=/path/to/the/addon.node.',
      'For raw calls alone, npm install koffi@^3.3.4 and set SHOAL_FFI_ENGINE=koffi.',
    ]
    super(
      `Cannot load the native addon of @shoal/ffi on ${platform} (Node ${process.version}). Tried, in this order:\n` +
        `${formatLoadAttempts(options.attempts)}\nWhat to do:\n${hints.map((hint) => `  - ${hint}`).join('\n')}`,
      options,
    )
    this.attempts = options.attempts
    this.platform = platform
  }
}
