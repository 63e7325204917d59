import type { LibrarySpecFile } from '../spec/types.js'

/** `koffi` makes calls of its own, beside the package; `koffi block` stands in for the addon below the package. */
export type Engine = 'block' | 'recording' | 'koffi' | 'koffi block' | 'refusals' | 'versions'

/** One library, one stream mode, one way to call: a process of its own. */
export interface Job {
  readonly spec: LibrarySpecFile
  /** What the recorder was made from, where that is another spec. */
  readonly library?: LibrarySpecFile
  /** Root of the repository. */
  readonly root: string
  readonly recorder: string
  readonly engine: Engine
  readonly perThread: boolean
  readonly seed: number
  /** Where the package is, when it is none of those known; the file as an absolute path. */
  readonly location?: { readonly file: string; readonly environment: string }
}

export interface Failure {
  readonly function: string
  readonly what: string
}

export interface Report {
  /** Functions that were called, or handed bad input. */
  functions: string[]
  /** Number of functions that had to refuse. */
  refused: number
  calls: number
  arguments: number
  failures: Failure[]
}

export function newReport(): Report {
  return { functions: [], refused: 0, calls: 0, arguments: 0, failures: [] }
}
