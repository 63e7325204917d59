import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { Declarations } from './declarations.js'
import { readGroups } from './groups.js'
import { Layouts } from './layouts.js'
import { readEnums, readNames, readSignature, readStructs } from './library.js'

/** A driver entry point: base name, ABI revision and default-stream flavour taken from the symbol. */
interface Revision {
  base: string
  flavour: string
  revision: number
}

const ours = /^(cu[A-Z]|CU[a-zA-Z_]|CUDA_)/

/** Declared between the groups, undocumented by the vendor. */
const ungrouped = new Set(['cuGetExportTable'])

function splitSymbol(symbol: string): Revision {
  const match = /^(.*?)(?:_v(\d))?(_ptds|_ptsz)?$/.exec(symbol) as RegExpExecArray
  return { base: match[1] as string, revision: Number(match[2] ?? 1), flavour: match[3] ?? '' }
}

/**
 * Version of each exported symbol. cudaTypedefs.h has one function type per ABI, named after the version that
 * introduced it; cuda.h has one symbol per ABI, numbered. Both in order, they pair up.
 */
export function pairVersions(symbols: Iterable<string>, typedefs: Iterable<string>): Map<string, number> {
  const groups = new Map<string, { symbols: { symbol: string; revision: number }[]; versions: number[] }>()
  const group = (key: string) => {
    const known = groups.get(key) ?? { symbols: [], versions: [] }
    groups.set(key, known)
    return known
  }
  for (const symbol of symbols) {
    const { base, flavour, revision } = splitSymbol(symbol)
    group(base + flavour).symbols.push({ symbol, revision })
  }
  for (const typedef of typedefs) {
    const match = /^PFN_(.*?)_v(\d+)(_ptds|_ptsz)?$/.exec(typedef)
    if (match) group(`${match[1]}${match[3] ?? ''}`).versions.push(Number(match[2]))
  }
  const result = new Map<string, number>()
  for (const [key, { symbols: revisions, versions }] of groups) {
    if (revisions.length !== versions.length) {
      throw new Error(`${key}: ${revisions.length} symbols in cuda.h but ${versions.length} versions in cudaTypedefs.h`)
    }
    revisions.sort((a, b) => a.revision - b.revision)
    versions.sort((a, b) => a - b)
    for (const [index, { symbol }] of revisions.entries()) result.set(symbol, versions[index] as number)
  }
  return result
}

export function parseDriver(cudaInclude: string): LibrarySpecFile {
  const includes = [cudaInclude]
  const unit: Translation = { source: '#include <cuda.h>\n#include <cudaTypedefs.h>\n', includes }
  const declarations = new Declarations(dumpAst(unit))
  const macros = dumpMacros(unit)
  const internal = new Declarations(
    dumpAst({ source: `#define __CUDA_API_VERSION_INTERNAL\n${unit.source}`, includes }),
  )
  const perThread = dumpMacros({ source: `#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n${unit.source}`, includes })

  const isFunction = (name: string) => /^cu[A-Z]/.test(name)
  const versions = pairVersions([...internal.functions.keys()].filter(isFunction), internal.typedefs.keys())
  const byBase = new Map<string, number[]>()
  for (const [symbol, version] of versions) {
    const { base, flavour } = splitSymbol(symbol)
    if (flavour === '')
      byBase.set(
        base,
        [...(byBase.get(base) ?? []), version].sort((a, b) => a - b),
      )
  }
  const layouts = new Layouts(unit, declarations, (record) => record.names.some((name) => ours.test(name)))
  const groups = readGroups(readFileSync(join(cudaInclude, 'cuda.h'), 'utf8'))

  // A name is exported when it is declared under it or when a macro sends it to another ABI.
  const exported = new Map<string, string>()
  for (const name of declarations.functions.keys()) if (isFunction(name)) exported.set(name, name)
  for (const [name, body] of macros) {
    const target = /^__CUDA_API_PT[DS][SZ]\((\w+)\)\s*$/.exec(body)?.[1] ?? body.trim()
    if (isFunction(name) && declarations.functions.has(target)) exported.set(name, target)
  }
  // The target of a macro is reached under its plain name; keep the suffixed one only where both ABIs are public.
  for (const [name, symbol] of [...exported]) {
    const { base, revision } = splitSymbol(name)
    if (name === symbol && revision > 1 && exported.get(base) === symbol) exported.delete(name)
  }

  const functions: FunctionSpec[] = []
  for (const [name, symbol] of [...exported].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const node = declarations.functions.get(symbol)
    const since = versions.get(symbol)
    if (!node || since === undefined) throw new Error(`${name}: no declaration or version of ${symbol}`)
    const { base } = splitSymbol(symbol)
    const names = [
      name,
      symbol,
      base,
      ...[...exported].filter(([, target]) => target === symbol).map(([other]) => other),
    ]
    const group = names.map((other) => groups.get(other)).find((found) => found !== undefined)
    if (group === undefined && !ungrouped.has(name)) throw new Error(`${name} stands in no documentation group`)
    const threadSymbol = expandFlavour(perThread.get(name), symbol) ?? expandFlavour(perThread.get(symbol), symbol)
    const threadSince = threadSymbol === undefined ? undefined : versions.get(threadSymbol)
    if (threadSymbol !== undefined && threadSince === undefined) throw new Error(`no version for ${threadSymbol}`)
    functions.push({
      name,
      symbol,
      lookup: base,
      since,
      versions: byBase.get(base) ?? [since],
      ...(threadSymbol === undefined ? {} : { perThreadSymbol: threadSymbol, perThreadSince: threadSince as number }),
      group: group ?? '',
      ...readSignature(declarations, layouts, node),
    })
  }

  return {
    format: 1,
    library: 'driver',
    headerVersion: Number(macros.get('CUDA_VERSION')),
    headers: ['cuda.h', 'cudaTypedefs.h'],
    functions,
    enums: readEnums(declarations, ours),
    structs: readStructs(declarations, layouts),
    ...readNames(declarations, ours),
    constants: readConstants(unit, declarations, macros, /^CU(DA)?_(?!CB$|UUID_HAS)/),
  }
}

/** Reads `__CUDA_API_PTSZ(cuMemFreeAsync)` and the like. */
function expandFlavour(body: string | undefined, symbol: string): string | undefined {
  const match = /__CUDA(?:RT)?_API_(PTDS|PTSZ)\(\s*(\w+)\s*\)/.exec(body ?? '')
  if (!match || match[2] !== symbol) return undefined
  return `${match[2]}_${(match[1] as string).toLowerCase()}`
}
