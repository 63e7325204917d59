import {
  AlreadyInUseError,
  inspectKey,
  inspectLine,
  type LoadAttempt,
  loadedFrom,
  PublicObject,
  requireInteger,
  requireMade,
  requireText,
  ShoalError,
  StatusError,
  SymbolNotFoundError,
  VersionTooOldError,
} from '@shoal/types'
import { dropCallContext } from '../addon/block.js'
import { addon } from '../addon/load.js'
import {
  type BigNativeCall,
  type BigResult,
  bindBigCall,
  bindCall,
  bindStructCall,
  type CallArguments,
  type NativeCall,
  type NumberResult,
  type StructNativeCall,
} from '../calls/bind.js'
import {
  type BoundFunction,
  bindSignature,
  type Parameter,
  type ResultTypes,
  type Signature,
  type StructByValue,
} from '../calls/signature.js'
import type { StatusText } from '../context.js'
import { markLibraryUsed } from '../software.js'
import { findLibrary, type LoadedLibrary, locateLibrary, openCompanions } from './discovery.js'
import { bindForeignFunction, type ForeignFunction } from './foreign.js'
import type { LibraryPlaces } from './places.js'

const defined = new Map<string, NativeLibrary>()

/**
 * Defines a library; it is opened when its first symbol is needed. Returns one object per id.
 *
 * @example
 * const cufile = defineLibrary({
 *   id: 'cufile', title: 'cuFile', environment: 'CUFILE_LIBRARY', linux: ['libcufile.so.0'],
 *   hint: 'install the CUDA toolkit',
 * })
 */
export function defineLibrary(spec: LibrarySpec): NativeLibrary {
  const known = defined.get(spec.id)
  if (known !== undefined) return known
  const library = new NativeLibrary(spec)
  defined.set(spec.id, library)
  return library
}

/** How to find a native library and read its symbols and version. */
export interface LibrarySpec extends LibraryPlaces {
  /**
   * Returns a symbol's address for the version whose signature is known, or `undefined`.
   *
   * Default: symbols are looked up by name.
   */
  readonly resolve?: (library: NativeLibrary, symbol: string, since: number) => bigint | undefined
  /** Returns the version of the loaded library, in its own encoding. */
  readonly versionOf?: (library: NativeLibrary) => number | undefined
  /** Formats a version for people. Default: the number. */
  readonly formatVersion?: (version: number) => string
  /** Name and text of a status that a function returns, for errors. */
  readonly statusText?: (status: number) => StatusText | undefined
}

/** Returns every library that the imported packages can use. */
export function definedLibraries(): readonly NativeLibrary[] {
  return [...defined.values()]
}

/**
 * A native library whose symbols resolve individually on first use.
 *
 * @example
 * import { driver } from '@shoal/cuda-sys'
 * if (driver.has('cuMulticastCreate', 12_010)) console.log(driver.versionText)
 */
export class NativeLibrary extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  readonly #spec: LibrarySpec
  readonly #attempts: LoadAttempt[] = []
  readonly #addresses = new Map<string, bigint>()
  readonly #failures = new Map<string, ShoalError>()
  #explicit: string | undefined
  #loaded: LoadedLibrary | undefined
  #loadFailure: ShoalError | undefined
  #failedChoice: string | undefined
  #version: number | undefined

  /** Use {@link defineLibrary}. */
  constructor(spec: LibrarySpec) {
    requireMade(spec?.id, 'NativeLibrary', 'defineLibrary', 'string')
    super()
    this.#spec = spec
  }

  /** Short name, such as `cuda` or `nccl`. */
  get id(): string {
    return this.#spec.id
  }

  /** Name for people, such as `NVIDIA CUDA driver`. */
  get title(): string {
    return this.#spec.title
  }

  /** Whether the library was found and opened. Reading this property loads nothing. */
  get isLoaded(): boolean {
    return this.#loaded !== undefined
  }

  /** All attempts to find the library so far, in order. */
  get trace(): readonly LoadAttempt[] {
    return this.#attempts
  }

  /** Sets the file to load. @throws AlreadyInUseError if the library is loaded; TypeError, RangeError. */
  setPath(path: string): void {
    requireText(path, 'NativeLibrary.setPath', 'path')
    if (this.#loaded !== undefined) {
      const reason = `${this.title} is loaded already, from ${this.#loaded.path}`
      throw new AlreadyInUseError({ api: 'NativeLibrary.setPath', object: this.title, reason })
    }
    this.#explicit = path
    this.#forgetFailure()
  }

  #forgetFailure(): void {
    this.#loadFailure = undefined
    this.#attempts.length = 0
    this.#failures.clear()
  }

  /** Opens the library. @throws LibraryNotFoundError, the same each time. */
  load(): LoadedLibrary {
    if (this.#loaded !== undefined) return this.#loaded
    // Retry after the program chose the software device, which may have the library.
    const choice = process.env['SHOAL_DEVICE'] ?? ''
    if (choice !== this.#failedChoice) this.#forgetFailure()
    if (this.#loadFailure !== undefined) throw this.#loadFailure
    this.#failedChoice = choice
    try {
      this.#loaded = findLibrary(this.#spec, this.#explicit, this.#attempts)
      openCompanions(this.#spec, this.#loaded.path)
    } catch (error) {
      if (error instanceof ShoalError) this.#loadFailure = error
      throw error
    }
    if (this.#spec.worksWithoutDevice !== true) markLibraryUsed()
    return this.#loaded
  }

  /**
   * Returns the file that {@link load} would open or has opened, with its search step.
   *
   * Opens nothing.
   *
   * `undefined` if nothing is found, or if only the system's loader knows, as on Windows and macOS.
   */
  locate(): Omit<LoadedLibrary, 'handle'> | undefined {
    return this.#loaded ?? locateLibrary(this.#spec, this.#explicit)
  }

  /** Version in the library's own encoding; `undefined` if the library does not report it. */
  get version(): number | undefined {
    this.load()
    // Some libraries only know their version after their initialization, so an unknown one is asked for again.
    this.#version ??= this.#spec.versionOf?.(this)
    return this.#version
  }

  /** Version for people, such as `13.0`. */
  get versionText(): string | undefined {
    const version = this.version
    return version === undefined ? undefined : (this.#spec.formatVersion?.(version) ?? String(version))
  }

  /** Returns the loader's address of a symbol; `undefined` if the library lacks it. */
  rawSymbol(name: string): bigint | undefined {
    requireText(name, 'NativeLibrary.rawSymbol', 'name')
    const address = addon().symbol(this.load().handle, name)
    return address === 0n ? undefined : address
  }

  /** True if the library loads and has the symbol. Never throws for a missing library or symbol. */
  has(symbol: string, since = 0): boolean {
    requireSymbol(symbol, since, 'NativeLibrary.has')
    try {
      this.address(symbol, since)
      return true
    } catch (error) {
      if (error instanceof ShoalError) return false
      throw error
    }
  }

  /**
   * Returns the address of a function.
   *
   * @param since the version whose signature the caller knows, in the library's encoding; 0 for any version.
   * @throws LibraryNotFoundError, VersionTooOldError, SymbolNotFoundError: the same error each time.
   */
  address(symbol: string, since = 0): bigint {
    try {
      return this.#address(symbol, since)
    } catch (error) {
      dropCallContext() // the call that the context was set for is not made
      throw error
    }
  }

  #address(symbol: string, since: number): bigint {
    const key = since === 0 ? symbol : typeof since === 'number' ? `${symbol}@${since}` : ''
    const known = this.#addresses.get(key)
    if (known !== undefined) return known
    requireSymbol(symbol, since, 'NativeLibrary.address')
    this.load()
    const failed = this.#failures.get(key)
    if (failed !== undefined) throw failed
    try {
      const address =
        this.#spec.resolve === undefined ? this.rawSymbol(symbol) : this.#spec.resolve(this, symbol, since)
      if (address === undefined || address === 0n) throw this.#missing(symbol, since)
      this.#addresses.set(key, address)
      return address
    } catch (error) {
      if (error instanceof ShoalError) this.#failures.set(key, error)
      throw error
    }
  }

  #missing(symbol: string, since: number): ShoalError {
    const format = this.#spec.formatVersion ?? String
    const installed = this.#spec.versionOf === undefined ? undefined : this.version
    if (installed !== undefined && since > installed) {
      return new VersionTooOldError({
        library: this.title,
        api: symbol,
        since: format(since),
        installed: format(installed),
      })
    }
    return new SymbolNotFoundError({
      library: this.title,
      symbol,
      path: this.#loaded?.path,
      installed: installed === undefined ? undefined : format(installed),
    })
  }

  /**
   * Binds a function by its signature. The symbol is looked up at the first call, and each call checks its arguments.
   *
   * @example
   * const fill = library.function('fill', { parameters: ['target: ptr', 'bytes: usize'], result: 'status' })
   * fill(new Uint8Array(16), 16)
   * @throws TypeError, RangeError for a signature that no call can have. A call throws these for an argument, and what
   * {@link address} throws.
   */
  function<const P extends readonly Parameter[], const R extends keyof ResultTypes | StructByValue>(
    symbol: string,
    signature: Signature<P, R>,
  ): BoundFunction<P, R> {
    return bindSignature(this, symbol, signature)
  }

  /** @internal The error of a function whose status is not 0. */
  _statusError(api: string, status: number): StatusError {
    const { name = `status ${status}`, description = '' } = this.#spec.statusText?.(status) ?? {}
    return new StatusError({ library: this.title, api, status, code: name, description })
  }

  /** Binds a function that takes its arguments from the block and returns a number or nothing. */
  bind(symbol: string, since: number, layout: CallArguments, result: NumberResult = 'i32'): NativeCall {
    return bindCall(this.address(symbol, since), layout, result, symbol)
  }

  /** Binds a function whose result has 64 bits. */
  bindBig(symbol: string, since: number, layout: CallArguments, result: BigResult): BigNativeCall {
    return bindBigCall(this.address(symbol, since), layout, result, symbol)
  }

  /** Binds a function that returns a structure of `byteLength` bytes by value. */
  bindStruct(symbol: string, since: number, layout: CallArguments, byteLength: number): StructNativeCall {
    return bindStructCall(this.address(symbol, since), layout, byteLength, symbol)
  }

  /**
   * Binds a function through koffi, such as one with variable arguments.
   *
   * @param prototype the C prototype in koffi's types, with `%s` in place of the name.
   */
  bindForeign(symbol: string, since: number, prototype: string): ForeignFunction {
    this.address(symbol, since)
    return bindForeignFunction(this.load().path, symbol, prototype)
  }

  override [inspectKey](): string {
    return inspectLine('NativeLibrary', {
      id: this.id,
      path: this.#loaded?.path,
      version: this.#version === undefined ? undefined : this.versionText,
    })
  }
}

function requireSymbol(symbol: unknown, since: unknown, api: string): void {
  requireText(symbol, api, 'symbol')
  requireInteger(since, api, 'since', 0)
}
