import { describeValue, isArray, type LoadAttempt, propertyOf, ShoalError, wrongType } from '@shoal/types'
import { addon, type CallEngine, callEngine } from './addon/load.js'
import { definedLibraries, type NativeLibrary } from './library/nativeLibrary.js'

/** Report on one library. */
export interface LibraryReport {
  /** Short name, such as `'cuda'` or `'nccl'`. */
  readonly id: string
  /** Name for people, such as `'NVIDIA CUDA driver'`. */
  readonly title: string
  /** Whether it was found and loads. */
  readonly found: boolean
  /** The file. */
  readonly path?: string
  /** The step of the search that found it. */
  readonly step?: string
  /** Its version for people. */
  readonly version?: string
  /** The engine of its calls: the addon, or koffi if `SHOAL_FFI_ENGINE` chooses it. */
  readonly engine?: CallEngine
  /** All attempts, in order. */
  readonly attempts: readonly LoadAttempt[]
  /** Why it was not found, or why its version could not be read. */
  readonly error?: string
}

/**
 * Searches for libraries and reports the results; a missing library is not an error.
 *
 * Default: every library of the imported packages. Libraries that are found stay loaded.
 */
export function probe(libraries: readonly NativeLibrary[] = definedLibraries()): LibraryReport[] {
  if (!isArray(libraries)) throw wrongType('probe', 'libraries', 'an array of NativeLibrary', libraries)
  for (const [index, library] of libraries.entries()) {
    if (typeof propertyOf(library, 'load') !== 'function')
      throw wrongType('probe', `libraries[${index}]`, 'a NativeLibrary', library)
  }
  return libraries.map(report)
}

/** Report on the native call engine. */
export interface AddonReport {
  /** Whether calls can be made. */
  readonly loaded: boolean
  /** The engine in use. */
  readonly engine?: CallEngine
  /** Why it did not load, and how to install it. */
  readonly error?: string
}

/** Loads the addon, or the engine that `SHOAL_FFI_ENGINE` chooses, and reports. Never throws. */
export function probeAddon(): AddonReport {
  try {
    addon()
    return { loaded: true, engine: callEngine() }
  } catch (error) {
    return { loaded: false, error: messageOf(error) }
  }
}

function report(library: NativeLibrary): LibraryReport {
  const { id, title } = library
  let loaded: { readonly path: string; readonly step: string }
  try {
    loaded = library.load()
  } catch (error) {
    return { id, title, found: false, attempts: [...library.trace], error: messageOf(error) }
  }
  const base = {
    id,
    title,
    found: true,
    path: loaded.path,
    step: loaded.step,
    engine: callEngine(),
    attempts: [...library.trace],
  }
  try {
    const version = library.versionText
    return version === undefined ? base : { ...base, version }
  } catch (error) {
    return { ...base, error: messageOf(error) }
  }
}

function messageOf(error: unknown): string {
  if (error instanceof ShoalError) return `${error.code}: ${error.message}`
  return error instanceof Error ? error.message : describeValue(error)
}
