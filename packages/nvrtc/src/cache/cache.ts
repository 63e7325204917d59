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

/** What is known of a request before it is compiled. */
export interface Cached {
  readonly found?: CompiledData
  readonly origin?: Origin
  /** Under which the result is kept in the process; absent where it is kept nowhere. */
  readonly key?: string
  /** Where and under which name it is kept on disk. */
  readonly folder?: string
  readonly digest?: string
  readonly problem?: string
  /** Whether the headers are still those that the key tells of. */
  readonly isUnchanged?: () => boolean
}

let writes = 0

/** Looks for the result of a request, and tells where to keep it. */
export function lookUp(request: Request, options: CommandOptions, cache: boolean | string): Cached {
  return find(() => keyOf(request, options), cache)
}

/** The same for what is asked of the library itself. */
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

/** Keeps a result. @returns why it could not be written, if so */
export function store({ key, folder, digest, isUnchanged }: Cached, data: CompiledData): string | undefined {
  // A header that was changed while it was compiled: nobody knows which of the two NVRTC read. A library that was found
  // elsewhere: the key tells of another one.
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

/** Options that write files, and those of the command line that name files of which nothing is known here. */
const hasEffects = /^--?(I|i|include|pre-?include|create[-_]pch|use[-_]pch|pch|time|fdevice-time-trace)/

/** All that a result depends on, as text; undefined where that cannot be known, or compiling has effects of its own. */
function keyOf(request: Request, options: CommandOptions): string | undefined {
  const { pch, createPch, timeFile, timeTraceFile, usePch, raw = [], includeFolders = [], preIncludes = [] } = options
  if (pch === true || [createPch, timeFile, timeTraceFile].some((each) => each !== undefined)) return undefined
  if (raw.some((each) => hasEffects.test(each))) return undefined
  const { source, name, headers } = request
  const files = includedFiles(source, name, headers, includeFolders, preIncludes)
  if (files === undefined) return undefined
  if (usePch !== undefined) {
    const content = readRegularFile(usePch)
    if (typeof content === 'string') return undefined // NVRTC says what is wrong with it
    files[usePch] = createHash('sha256').update(content).digest('hex')
  }
  return keyed(request, files)
}

/** A key for what this NVRTC makes; none where it cannot be told from others. */
function keyed(...parts: readonly unknown[]): string | undefined {
  const identity = libraryIdentity()
  return identity === undefined ? undefined : JSON.stringify([identity, ...parts])
}
