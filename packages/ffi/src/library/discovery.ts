import { existsSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { LibraryNotFoundError, type LoadAttempt, withJson } from '@shoal/types'
import { addon } from '../addon/load.js'
import { loadRefusal } from '../loadRefusal.js'
import { announceSoftwareDevice, isSoftwareDevice, softwareFolders, softwareHint } from '../software.js'
import { condaFolders, installedToolkits, list, sitePackages, targetFolders, toolkitsOfEnvironment } from './folders.js'
import { loaderPlaces } from './loaderSearch.js'
import type { LibraryPlaces } from './places.js'

/** An open library, and how it was found. */
export interface LoadedLibrary {
  /** Handle from `dlopen`. */
  readonly handle: bigint
  /** File path, as the loader names it. */
  readonly path: string
  /** The step of the search that found it. */
  readonly step: string
}

interface Candidate {
  readonly step: string
  readonly file: string
}

function fileNames(spec: LibraryPlaces): readonly string[] {
  if (process.platform === 'win32') return spec.win32 ?? []
  if (process.platform === 'darwin') return spec.darwin ?? []
  return spec.linux
}

/** True for a link-time stub library. Its folder, or the folder of its link target, is called `stubs`. */
function isStub(file: string): boolean {
  try {
    return /[\\/]stubs[\\/]/.test(`${file}\n${realpathSync(file)}`)
  } catch {
    return false // missing
  }
}

/** Yields files to try after the loader's own search, most specific first. */
function* filesOf(spec: LibraryPlaces): Generator<Candidate> {
  const names = fileNames(spec)
  const below = function* (step: string, roots: readonly string[], folders: readonly string[]): Generator<Candidate> {
    for (const root of roots)
      for (const folder of folders) for (const name of names) yield { step, file: join(root, folder, name) }
  }
  const inToolkits = function* (step: string, roots: readonly string[]): Generator<Candidate> {
    for (const root of roots) {
      yield* below(step, [root], [...new Set([...(spec.toolkitFolders ?? []), ...targetFolders(root)])])
    }
  }
  yield* inToolkits('cuda-home', toolkitsOfEnvironment())
  yield* below('conda', condaFolders(), ['.'])
  if (spec.systemFolders !== undefined) yield* below('system', spec.systemFolders, ['.'])
  yield* inToolkits('toolkit', installedToolkits())
  if (spec.wheelFolders !== undefined) yield* below('wheel', sitePackages(), spec.wheelFolders)
}

/** Opens a file, or returns why it failed. `onlyIfLoaded` finds only a library that the process has loaded. */
type Open = (file: string, onlyIfLoaded: boolean) => { readonly handle: bigint; readonly path: string } | string

/**
 * Returns the file that {@link findLibrary} would open first, without opening it.
 *
 * Finds also a library that the process has already loaded. Undefined if only opening can find it.
 */
export function locateLibrary(spec: LibraryPlaces, explicit: string | undefined): LoadedLibrary | undefined {
  const look: Open = (file, onlyIfLoaded) => {
    if (onlyIfLoaded) return addon().open(file, true)
    return isAbsolute(file) && existsSync(file) ? { handle: 0n, path: file } : 'known to the system alone'
  }
  try {
    return search(spec, explicit, [], look)
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return undefined
    throw error
  }
}

/**
 * Finds and opens a library.
 *
 * Search order: the explicit path, the library's environment variable, the software device if it was chosen, the
 * libraries that the process has loaded, the system's loader, CUDA_HOME and similar variables, the conda environment,
 * system folders, toolkits, Python wheels. An explicit path or variable that does not load is an error immediately,
 * without fallback.
 * @param attempts receives all attempts.
 */
export function findLibrary(spec: LibraryPlaces, explicit: string | undefined, attempts: LoadAttempt[]): LoadedLibrary {
  const found = search(spec, explicit, attempts, (file, onlyIfLoaded) => addon().open(file, onlyIfLoaded))
  if (found.step === 'sim') announceSoftwareDevice()
  return found
}

function search(spec: LibraryPlaces, explicit: string | undefined, attempts: LoadAttempt[], open: Open): LoadedLibrary {
  const attempt = (step: string, file: string, onlyIfLoaded = false): LoadedLibrary | undefined => {
    const refusal = isStub(file) ? 'a stub for linking, skipped' : isAbsolute(file) ? loadRefusal(file) : undefined
    if (refusal !== undefined) {
      attempts.push({ step, candidate: file, outcome: refusal })
      return undefined
    }
    const opened = open(file, onlyIfLoaded)
    if (typeof opened === 'string') {
      attempts.push({ step, candidate: file, outcome: onlyIfLoaded ? 'not loaded' : opened })
      return undefined
    }
    if (isStub(opened.path)) {
      attempts.push({ step, candidate: file, outcome: `${opened.path} is a stub for linking, skipped` })
      return undefined
    }
    attempts.push({ step, candidate: file, outcome: 'loaded' })
    return withJson({ handle: opened.handle, path: opened.path === '' ? file : opened.path, step })
  }
  const byLoader = (name: string): LoadedLibrary | undefined => {
    if (process.platform !== 'linux') return attempt('loader', name)
    let isNowhere = true
    for (const place of loaderPlaces(name)) {
      if ('refusal' in place) attempts.push({ step: 'loader', candidate: place.entry, outcome: place.refusal })
      else if (existsSync(place.file)) {
        isNowhere = false
        const found = attempt('loader', place.file)
        if (found !== undefined) return found
      }
    }
    if (isNowhere)
      attempts.push({
        step: 'loader',
        candidate: name,
        outcome: 'cannot open shared object file: in no folder of the loader',
      })
    return undefined
  }
  const notFound = (hint = spec.hint): LibraryNotFoundError =>
    new LibraryNotFoundError({
      library: spec.title,
      attempts,
      hint,
      environment: spec.environment,
      isOfDevice: spec.sim !== undefined,
    })

  const named = explicit !== undefined ? { step: 'option', file: explicit } : fromEnvironment(spec)
  if (named !== undefined) {
    if (!isAbsolute(named.file)) {
      attempts.push({ step: named.step, candidate: named.file, outcome: 'not an absolute path' })
      throw notFound()
    }
    const found = attempt(named.step, named.file)
    if (found === undefined) throw notFound()
    return found
  }

  if (spec.worksWithoutDevice !== true && isSoftwareDevice()) {
    if (spec.sim === undefined) {
      attempts.push({ step: 'sim', candidate: spec.title, outcome: 'the software device has no such library' })
      throw notFound('use it on a GPU, without SHOAL_DEVICE=sim')
    }
    for (const folder of softwareFolders()) {
      const file = join(folder, spec.sim)
      if (!isAbsolute(folder)) {
        attempts.push({ step: 'sim', candidate: folder, outcome: 'SHOAL_SIM_FOLDER is not an absolute path' })
        continue
      }
      if (!existsSync(file)) {
        attempts.push({ step: 'sim', candidate: file, outcome: 'not there' })
        continue
      }
      const found = attempt('sim', file)
      if (found !== undefined) return found
    }
    throw new LibraryNotFoundError({
      library: spec.title,
      attempts,
      hint: softwareHint(),
      environment: spec.environment,
    })
  }

  for (const name of fileNames(spec)) {
    const found = attempt('loaded', name, true) ?? byLoader(name)
    if (found !== undefined) return found
  }
  for (const { step, file } of filesOf(spec)) {
    if (!existsSync(file)) {
      attempts.push({ step, candidate: file, outcome: 'not there' })
      continue
    }
    const found = attempt(step, file)
    if (found !== undefined) return found
  }
  throw notFound()
}

/** Opens a library's companion files, so that the loader knows them by name. The library reports one that fails. */
export function openCompanions({ companions }: LibraryPlaces, path: string): void {
  if (companions === undefined || !isAbsolute(path)) return
  for (const name of list(dirname(path))) if (companions.test(name)) addon().open(join(dirname(path), name), false)
}

function fromEnvironment(spec: LibraryPlaces): Candidate | undefined {
  const file = process.env[spec.environment]
  return file === undefined || file === '' ? undefined : { step: 'environment', file }
}
