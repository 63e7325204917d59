import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { CompiledData, Origin, Request } from '../compilation/data.js'
import type { CommandOptions } from '../options/compileOptions.js'
import { readEntry, writeEntry } from './entry.js'
import { defaultFolder, folderProblem } from './folder.js'
import { includedFiles } from './includes.js'
import { identityProblem, isAsIdentified, libraryIdentity } from './library.js'
import { recall, remember } from './memory.js'
import { prune } from './prune.js'
import { readRegularFile } from './regularFile.js'

/** Result of a cache look-up. */
export interface Cached {
  readonly found?: CompiledData
  readonly origin?: Origin
  /** Key in the cache of the process; absent if the result is not cached. */
  readonly key?: string
  /** Folder and file name in the cache on disk. */
  readonly folder?: string
  readonly digest?: string
  readonly problem?: string
  /** Whether headers and library still match the key. */
  readonly isUnchanged?: () => boolean
}

let writes = 0

/** Looks up the result of a request, and returns where to store it. */
export function lookUp(request: Request, options: CommandOptions, cache: boolean | string): Cached {
  return find(() => keyOf(request, options), cache)
}

/** Like {@link lookUp}, for facts about the library itself. */
export function lookUpFact(name: string, cache: boolean | string): Cached {
  return find(() => keyed(name), cache)
}

function find(makeKey: () => string | undefined, cache: boolean | string): Cached {
  if (cache === false) return {}
  const key = makeKey()
  const unknown = identityProblem()
  if (key === undefined) return unknown === undefined ? {} : { problem: unknown }
  const known = recall(key)
  if (known !== undefined) return { found: known, origin: 'memory' }
  const folder = join(typeof cache === 'string' ? cache : defaultFolder(), 'nvrtc')
  const problem = folderProblem(folder)
  const isUnchanged = (): boolean => isAsIdentified() && makeKey() === key
  if (problem !== undefined) return { key, problem, isUnchanged }
  const digest = createHash('sha256').update(key).digest('hex')
  try {
    const found = readEntry(folder, digest)
    if (found === undefined) return { key, folder, digest, isUnchanged }
    remember(key, found)
    return { found, origin: 'disk' }
  } catch (error) {
    return { key, problem: (error as Error).message, isUnchanged }
  }
}

/** Stores a result. @returns why it could not be written, or undefined */
export function store({ key, folder, digest, isUnchanged }: Cached, data: CompiledData): string | undefined {
  // Do not store the result if a header changed during compilation, because NVRTC may have read either version. The
  // same holds if another library was loaded than the key names.
  if (key === undefined || isUnchanged?.() === false) return undefined
  remember(key, data)
  if (folder === undefined || digest === undefined) return undefined
  try {
    writeEntry(folder, digest, data)
    writes += 1
    if (writes % 64 === 1) prune(folder)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** Options that write files, and command line options that name files which the key does not cover. */
const hasEffects = /^--?(I|i|include|pre-?include|create[-_]pch|use[-_]pch|pch|time|fdevice-time-trace)/

/**
 * Returns everything that a result depends on, as text.
 *
 * Undefined if that is unknown, or if compiling has side effects.
 */
function keyOf(request: Request, options: CommandOptions): string | undefined {
  const { pch, createPch, timeFile, timeTraceFile, usePch, raw = [], includeFolders = [], preIncludes = [] } = options
  if (pch === true || [createPch, timeFile, timeTraceFile].some((each) => each !== undefined)) return undefined
  if (raw.some((each) => hasEffects.test(each))) return undefined
  const { source, name, headers } = request
  const files = includedFiles(source, name, headers, includeFolders, preIncludes)
  if (files === undefined) return undefined
  if (usePch !== undefined) {
    const content = readRegularFile(usePch)
    if (typeof content === 'string') return undefined // NVRTC reports the problem
    files[usePch] = createHash('sha256').update(content).digest('hex')
  }
  return keyed(request, files)
}

/** Returns a key for results of this NVRTC; undefined if the library cannot be identified. */
function keyed(...parts: readonly unknown[]): string | undefined {
  const identity = libraryIdentity()
  return identity === undefined ? undefined : JSON.stringify([identity, ...parts])
}
