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
import { markLibraryUsed } from '../software.js'
import { findLibrary, type LoadedLibrary, locateLibrary, openCompanions } from './discovery.js'
import { bindForeignFunction, type ForeignFunction } from './foreign.js'
import type { LibraryPlaces } from './places.js'

const defined = new Map<string, NativeLibrary>()

/**
 * Describes a library. Nothing is opened until its first symbol is needed. One object for each id.
 *
 * @example
 * const nvml = defineLibrary({
 *   id: 'nvml', title: 'NVML', environment: 'NVML_LIBRARY', linux: ['libnvidia-ml.so.1'],
 *   hint: 'install the NVIDIA driver',
 * })
 */
export function defineLibrary(spec: LibrarySpec): NativeLibrary {
  const known = defined.get(spec.id)
  if (known !== undefined) return known
  const library = new NativeLibrary(spec)
  defined.set(spec.id, library)
  return library
}

/** How one native library is found, and how its symbols and its version are read. */
export interface LibrarySpec extends LibraryPlaces {
  /**
   * Address of a symbol at the version whose signature is known; `undefined` where there is none. Without it symbols
   * are looked up by name.
   */
  readonly resolve?: (library: NativeLibrary, symbol: string, since: number) => bigint | undefined
  /** Version of the loaded library, in its own encoding. */
  readonly versionOf?: (library: NativeLibrary) => number | undefined
  /** A version as people write it. Default: the number. */
  readonly formatVersion?: (version: number) => string
}

/** Every library that the packages imported so far can use. */
export function definedLibraries(): readonly NativeLibrary[] {
  return [...defined.values()]
}

/**
 * A native library whose symbols resolve on first use, each alone.
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
  #versionRead = false

  /** Use {@link defineLibrary}. */
  constructor(spec: LibrarySpec) {
    requireMade(spec?.id, 'NativeLibrary', 'defineLibrary', 'string')
    super()
    this.#spec = spec
  }

  /** Short name, as in `cuda`, `nccl`. */
  get id(): string {
    return this.#spec.id
  }

  /** Name for people, as in `NVIDIA CUDA driver`. */
  get title(): string {
    return this.#spec.title
  }

  /** Whether the library was found and opened. Reading it loads nothing. */
  get isLoaded(): boolean {
    return this.#loaded !== undefined
  }

  /** Everything tried so far to find the library, in order. */
  get trace(): readonly LoadAttempt[] {
    return this.#attempts
  }

  /** Names the file to load. @throws AlreadyInUseError when the library is loaded; TypeError, RangeError. */
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
    // What was not found among real libraries may be found on the software device, if it is chosen after that.
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
   * What {@link load} would open first, or has opened: the file, and the step of the search that finds it. Nothing is
   * opened. `undefined` where there is none, and where only the system's loader knows, as on Windows and macOS.
   */
  locate(): Omit<LoadedLibrary, 'handle'> | undefined {
    return this.#loaded ?? locateLibrary(this.#spec, this.#explicit)
  }

  /** Version in the library's own encoding; `undefined` where it does not tell. */
  get version(): number | undefined {
    if (!this.#versionRead) {
      this.load()
      this.#version = this.#spec.versionOf?.(this)
      this.#versionRead = true
    }
    return this.#version
  }

  /** The version for people, as in `13.0`. */
  get versionText(): string | undefined {
    const version = this.version
    return version === undefined ? undefined : (this.#spec.formatVersion?.(version) ?? String(version))
  }

  /** Address that the system's loader knows for a name; `undefined` where it knows none. */
  rawSymbol(name: string): bigint | undefined {
    requireText(name, 'NativeLibrary.rawSymbol', 'name')
    const address = addon().symbol(this.load().handle, name)
    return address === 0n ? undefined : address
  }

  /** Whether the library is there and has the symbol. Never throws for a missing library or symbol. */
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
   * Address of a function.
   * @param since the version whose signature the caller knows, in the library's encoding; 0 when any will do.
   * @throws LibraryNotFoundError, VersionTooOldError, SymbolNotFoundError: the same error each time.
   */
  address(symbol: string, since = 0): bigint {
    try {
      return this.#address(symbol, since)
    } catch (error) {
      dropCallContext() // the call that it was meant for is not made
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
   * Binds a function that the block cannot serve, such as one with variable arguments, through koffi.
   * @param prototype the C prototype, with `%s` where the name stands, in koffi's types.
   */
  bindForeign(symbol: string, since: number, prototype: string): ForeignFunction {
    this.address(symbol, since)
    return bindForeignFunction(this.load().path, symbol, prototype)
  }

  override [inspectKey](): string {
    return inspectLine('NativeLibrary', {
      id: this.id,
      path: this.#loaded?.path,
      version: this.#versionRead ? this.versionText : undefined,
    })
  }
}

function requireSymbol(symbol: unknown, since: unknown, api: string): void {
  requireText(symbol, api, 'symbol')
  requireInteger(since, api, 'since', 0)
}
