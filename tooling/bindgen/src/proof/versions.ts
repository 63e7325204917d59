// Every function with libraries of versions other than the generated one. It works, or it refuses with an error that
// states the reason, the same each time.

import { versionText } from '../emit/versions.js'
import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'
import { callOnce, fail, type Session } from './engines.js'
import type { SysFunction } from './packages.js'
import { loaderFunctions } from './recorder.js'
import { argumentsFor } from './values.js'

function hasOtherSignature({ otherMajors }: FunctionSpec, version: number): boolean {
  return otherMajors?.includes(Math.floor(version / 1000)) ?? false
}

/** A library of an earlier version. It lacks later functions, but has names whose signature was different. */
export function earlierLibrary(spec: LibrarySpecFile, version: number): LibrarySpecFile {
  const functions = spec.functions.filter((entry) => entry.since <= version || hasOtherSignature(entry, version))
  return { ...spec, headerVersion: version, functions }
}

/** A library of a later version. The driver's has a new ABI of every function under the same name. */
export function laterLibrary(spec: LibrarySpecFile, version: number): LibrarySpecFile {
  const functions = spec.functions.map((entry) => ({ ...entry, versions: [...entry.versions, version] }))
  return { ...spec, headerVersion: version, functions }
}

/** A library of the right version that only has the functions its package calls first. */
export function emptyLibrary(spec: LibrarySpecFile): LibrarySpecFile {
  const needed = loaderFunctions(spec.library)
  const lookups = spec.functions.filter(({ symbol }) => needed.includes(symbol)).map(({ lookup }) => lookup)
  return { ...spec, functions: spec.functions.filter(({ lookup }) => lookups.includes(lookup)) }
}

/** The code of the error that a function must throw, or undefined if it must work. */
function expectedRefusal(entry: FunctionSpec, spec: LibrarySpecFile, isThere: boolean): string | undefined {
  const version = spec.headerVersion
  if (hasOtherSignature(entry, version))
    return entry.since > version ? 'SHOAL_VERSION_TOO_OLD' : 'SHOAL_VERSION_TOO_NEW'
  if (isThere) return undefined
  return entry.since > version ? 'SHOAL_VERSION_TOO_OLD' : 'SHOAL_SYMBOL_NOT_FOUND'
}

export function runVersions(session: Session): void {
  const { job, sys, report } = session
  const library = job.library ?? job.spec
  const there = new Set(library.functions.map(({ name }) => name))
  for (const entry of job.spec.functions) {
    const wrapper = sys.exports[entry.name] as SysFunction
    const code = expectedRefusal(entry, library, there.has(entry.name))
    if (code === undefined) callOnce(session, entry, 'memory', true, (values) => wrapper(...values.map(({ js }) => js)))
    else expectRefusal(session, entry, wrapper, code, library)
    report.functions.push(entry.name)
  }
}

interface Refusal {
  readonly code?: string
  readonly installed?: string
  readonly since?: string
  readonly message: string
}

function expectRefusal(
  session: Session,
  entry: FunctionSpec,
  wrapper: SysFunction,
  code: string,
  library: LibrarySpecFile,
): void {
  const { log, memory, random, report } = session
  const refusalOf = (): Refusal | undefined => {
    const values = argumentsFor(entry, 'memory', random, memory)
    report.calls++
    report.arguments += values.length
    try {
      wrapper(...values.map(({ js }) => js))
      return undefined
    } catch (error) {
      return error as Refusal
    }
  }
  log.set(true, true)
  const first = refusalOf()
  log.clear()
  const again = refusalOf()
  const version = (number: number): string | undefined => versionText(session.job.spec.library, number).split(' ').pop()
  if (first === undefined) fail(session, entry, code, 'did not refuse')
  else if (first.code !== code) fail(session, entry, code, `threw ${String(first.message)}`)
  else if (code !== 'SHOAL_SYMBOL_NOT_FOUND' && first.installed !== version(library.headerVersion))
    fail(session, entry, code, `says that ${first.installed} is installed`)
  else if (code === 'SHOAL_VERSION_TOO_OLD' && first.since !== version(entry.since))
    fail(session, entry, code, `says that ${first.since} is needed, not ${version(entry.since)}`)
  if (again !== first) fail(session, entry, code, 'threw another error the second time')
  if (!log.isEmpty) fail(session, entry, code, 'asked the library again')
  report.refused++
}
