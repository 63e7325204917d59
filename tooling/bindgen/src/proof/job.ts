import type { LibrarySpecFile } from '../spec/types.js'

/** `koffi` calls the library without the package. `koffi block` replaces the addon below the package. */
export type Engine = 'block' | 'recording' | 'koffi' | 'koffi block' | 'refusals' | 'versions'

/** One library in one stream mode with one engine. Each job runs in a separate process. */
export interface Job {
  readonly spec: LibrarySpecFile
  /** The spec that the recorder was made from, if it is another one. */
  readonly library?: LibrarySpecFile
  /** The root of the repository. */
  readonly root: string
  readonly recorder: string
  readonly engine: Engine
  readonly perThread: boolean
  readonly seed: number
  /** The location of a package that is not one of the known ones; `file` is an absolute path. */
  readonly location?: { readonly file: string; readonly environment: string }
}

export interface Failure {
  readonly function: string
  readonly what: string
}

export interface Report {
  /** Functions that were called, or that got bad input. */
  functions: string[]
  /** The number of functions that had to refuse. */
  refused: number
  calls: number
  arguments: number
  failures: Failure[]
}

export function newReport(): Report {
  return { functions: [], refused: 0, calls: 0, arguments: 0, failures: [] }
}
