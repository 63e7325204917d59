import { nameErrorClass, ShoalError, type ShoalErrorJson } from './base.js'
import { defineUnprinted } from './print.js'

/** One place where a library was searched, and the result. */
export interface LoadAttempt {
  /**
   * The kind of place: `'option'`, `'environment'`, `'loaded'`, `'loader'`, `'cuda-home'`,
   * `'conda'`, `'system'`, `'toolkit'`, `'wheel'` or `'sim'`.
   */
  readonly step: string
  /** File name or path that was tried. */
  readonly candidate: string
  /** `'loaded'`, `'not there'`, or what the system's loader said. */
  readonly outcome: string
}

/** Formats the most useful attempts. For a file that exists, the line says why it did not load. */
function attemptLines(attempts: readonly LoadAttempt[]): string[] {
  const refused = attempts.filter(({ outcome }) => !isAbsence(outcome))
  const told = attempts.length <= mostAttempts ? attempts : refused.slice(0, mostAttempts)
  const lines = told.map(({ candidate, outcome }) => `  ${candidate}: ${oneLine(outcome)}`)
  const more = refused.length - mostAttempts
  return told === attempts || more <= 0 ? lines : [...lines, `  and ${more} more that do not load`]
}

/** Most attempts in a message. */
const mostAttempts = 3

function isAbsence(outcome: string): boolean {
  return outcome === 'not there' || outcome === 'not loaded' || /cannot open shared object file/.test(outcome)
}

function oneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
}

/** Formats failure, number of places, useful attempts and hints in at most 12 lines. */
function messageOf(what: string, attempts: readonly LoadAttempt[], hints: readonly string[]): string {
  const lines = attemptLines(attempts)
  const places = attempts.length === 1 ? '1 place' : `${attempts.length} places`
  const listed = attempts.length > lines.length ? ', listed in error.attempts' : ''
  return [
    `${what}. Looked at ${places}${listed}${lines.length === 0 ? '.' : ':'}`,
    ...lines,
    'What to do:',
    ...hints.slice(0, mostHints).map((hint) => `  - ${oneLine(hint)}`),
  ].join('\n')
}

/** Most hints in a message. */
const mostHints = 5

/** Options of the {@link LibraryNotFoundError} constructor. */
export interface LibraryNotFoundErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** All attempts, in order. */
  readonly attempts: readonly LoadAttempt[]
  /** How to get the library. */
  readonly hint?: string | undefined
  /** Environment variable that names the library's file, such as `'SHOAL_NCCL_LIBRARY'`. */
  readonly environment?: string | undefined
  /** Whether the software device can replace the library; the message then mentions this. Default: true. */
  readonly isOfDevice?: boolean | undefined
  readonly cause?: unknown
}

/**
 * A shared library could not be loaded.
 *
 * The message says what to do; `attempts` lists every place that was searched.
 *
 * @example
 * if (error instanceof LibraryNotFoundError) {
 *   for (const { candidate, outcome } of error.attempts) console.log(candidate, outcome)
 * }
 */
export class LibraryNotFoundError extends ShoalError {
  static {
    nameErrorClass(LibraryNotFoundError, 'LibraryNotFoundError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_LIBRARY_NOT_FOUND'
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** All attempts, in order. Not printed. */
  declare readonly attempts: readonly LoadAttempt[]
  /** How to get the library. */
  declare readonly hint?: string
  /** Environment variable that names the library's file. */
  declare readonly environment?: string

  constructor(options: LibraryNotFoundErrorOptions) {
    const hints = []
    if (options.hint) hints.push(options.hint)
    if (options.environment) {
      hints.push(`If it is installed somewhere else, set its file: ${options.environment}=/path/to/the/library.`)
    }
    if (options.isOfDevice !== false && options.attempts.every(({ step }) => step !== 'sim')) {
      hints.push('To run without a GPU on the software device, install @shoal/sim and set SHOAL_DEVICE=sim.')
    }
    super(messageOf(`Cannot load ${options.library}`, options.attempts, hints), options)
    this.library = options.library
    defineUnprinted(this, { attempts: options.attempts })
    if (options.hint !== undefined) this.hint = options.hint
    if (options.environment !== undefined) this.environment = options.environment
  }

  override toJSON(): ShoalErrorJson {
    return { ...super.toJSON(), attempts: this.attempts }
  }
}

/** Options of the {@link SymbolNotFoundError} constructor. */
export interface SymbolNotFoundErrorOptions {
  /** Title of the library, such as `'NCCL'`. */
  readonly library: string
  /** The missing function. */
  readonly symbol: string
  /** File of the library that was loaded. */
  readonly path?: string | undefined
  /** Version of the loaded library, if known. */
  readonly installed?: string | undefined
  /** The wanted signature's version, if the library has the function only with another signature. */
  readonly signatureOf?: string | undefined
  readonly cause?: unknown
}

/** The loaded library lacks a function, or has it with another signature only. */
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
  /** Version of the loaded library, if known. */
  declare readonly installed?: string
  /** The wanted signature's version, if the library has the function only with another signature. */
  declare readonly signatureOf?: string

  constructor(options: SymbolNotFoundErrorOptions) {
    const version = options.installed === undefined ? '' : ` ${options.installed}`
    const path = options.path === undefined ? '' : ` (${options.path})`
    const signature =
      options.signatureOf === undefined ? '' : ` with the signature that it has in ${options.signatureOf}`
    super(
      `${options.library}${version}${path} has no function ${options.symbol}${signature}. ` +
        'Another version of the library, or another platform, may have it; check with has() before the call.',
      options,
    )
    this.library = options.library
    this.symbol = options.symbol
    if (options.path !== undefined) this.path = options.path
    if (options.installed !== undefined) this.installed = options.installed
    if (options.signatureOf !== undefined) this.signatureOf = options.signatureOf
  }
}

/** Options of the {@link AddonLoadError} constructor. */
export interface AddonLoadErrorOptions {
  /** All attempts, in order. */
  readonly attempts: readonly LoadAttempt[]
  /** Platform, C library and architecture, such as `'linux-x64'` or `'linuxmusl-x64'`. */
  readonly platform?: string | undefined
  /** Hints for this platform and failure, placed before the general hints. */
  readonly hints?: readonly string[] | undefined
  readonly cause?: unknown
}

/** The native addon of `@shoal/ffi` could not be loaded. The message says how to install it. */
export class AddonLoadError extends ShoalError {
  static {
    nameErrorClass(AddonLoadError, 'AddonLoadError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_ADDON_NOT_LOADED'
  /** All attempts, in order. Not printed. */
  declare readonly attempts: readonly LoadAttempt[]
  /** Platform, C library and architecture, such as `'linux-x64'` or `'linuxmusl-x64'`. */
  readonly platform: string

  constructor(options: AddonLoadErrorOptions) {
    const platform = options.platform ?? `${process.platform}-${process.arch}`
    const hints = [
      ...(options.hints ?? []),
      `Reinstall @shoal/ffi on this machine: its addon comes in an optional dependency, @shoal/ffi-${platform}; copying ` +
        'without *.node files loses it.',
      'If there is none for this platform, build it with a C++17 compiler and make: npm install @shoal/ffi-source ' +
        'node-addon-api node-api-headers && make -C node_modules/@shoal/ffi-source',
      'Or name a file built elsewhere for this platform: SHOAL_FFI_ADDON=/path/to/the/addon.node.',
      'For raw calls only, npm install koffi@^3.3.4 and set SHOAL_FFI_ENGINE=koffi.',
    ]
    const what = `Cannot load the native addon of @shoal/ffi on ${platform} (Node ${process.version})`
    super(messageOf(what, options.attempts, hints), options)
    defineUnprinted(this, { attempts: options.attempts })
    this.platform = platform
  }

  override toJSON(): ShoalErrorJson {
    return { ...super.toJSON(), attempts: this.attempts }
  }
}
