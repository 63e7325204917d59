import { absent, unboundDriver } from '../facts/driverSymbols.js'
import type { History } from '../spec/history.js'
import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { Declarations, type RecordDeclaration } from './declarations.js'
import { type DeclarationInfo, type HeaderFile, includeSource, readDeclarationInfo, standInHeaders } from './include.js'
import { Layouts } from './layouts.js'
import { isDefinedInHeader, readEnums, readNames, readSignature, readStructs } from './library.js'

/** The parts of a driver symbol: base name, ABI revision and default-stream variant. */
interface Revision {
  base: string
  variant: string
  revision: number
}

const ours = /^(cu[A-Z]|CU[a-zA-Z_]|CUDA_)/
/** The driver's names, and typedefs of other vendors that its prototypes use. */
const named =
  /^(cu[A-Z]|CU[a-zA-Z_]|CUDA_|GL(enum|uint)$|EGL\w+$|Vdp(Device|VideoSurface|OutputSurface|GetProcAddress)$|HGPUNV$)/

/** Declared outside of any group; undocumented by the vendor. */
const ungrouped = new Set(['cuGetExportTable'])

function splitSymbol(symbol: string): Revision {
  const match = /^(.*?)(?:_v(\d))?(_ptds|_ptsz)?$/.exec(symbol) as RegExpExecArray
  return { base: match[1] as string, revision: Number(match[2] ?? 1), variant: match[3] ?? '' }
}

/**
 * Returns the version of each exported symbol. cudaTypedefs.h has one function type per ABI, named after the version
 * that introduced it. cuda.h has one numbered symbol per ABI. Both are in order, so they pair up.
 * @param dateOf returns the version of a newest ABI without a function type
 */
export function pairVersions(
  symbols: Iterable<string>,
  typedefs: Iterable<string>,
  dateOf?: (symbol: string) => number,
): Map<string, number> {
  const groups = new Map<string, { symbols: { symbol: string; revision: number }[]; versions: number[] }>()
  const group = (key: string) => {
    const known = groups.get(key) ?? { symbols: [], versions: [] }
    groups.set(key, known)
    return known
  }
  for (const symbol of symbols) {
    const { base, variant, revision } = splitSymbol(symbol)
    group(base + variant).symbols.push({ symbol, revision })
  }
  for (const typedef of typedefs) {
    const match = /^PFN_(.*?)_v(\d+)(_ptds|_ptsz)?$/.exec(typedef)
    if (match) group(`${match[1]}${match[3] ?? ''}`).versions.push(Number(match[2]))
  }
  const result = new Map<string, number>()
  for (const [key, { symbols: revisions, versions }] of groups) {
    revisions.sort((a, b) => a.revision - b.revision)
    const newest = revisions.at(-1)
    if (dateOf && newest && revisions.length === versions.length + 1) versions.push(dateOf(newest.symbol))
    if (revisions.length !== versions.length) {
      throw new Error(`${key}: ${revisions.length} symbols in cuda.h but ${versions.length} versions in cudaTypedefs.h`)
    }
    versions.sort((a, b) => a - b)
    for (const [index, { symbol }] of revisions.entries()) result.set(symbol, versions[index] as number)
  }
  return result
}

/** All headers of the driver API, each with the function types of all its ABIs. */
const headerFiles: readonly HeaderFile[] = [
  { name: 'cuda.h' },
  { name: 'cudaTypedefs.h' },
  { name: 'cudaProfiler.h' },
  { name: 'cudaProfilerTypedefs.h' },
  { name: 'cudaGL.h', windows: true },
  { name: 'cudaGLTypedefs.h', windows: true },
  { name: 'cudaEGL.h', platform: 'linux' },
  { name: 'cudaEGLTypedefs.h', platform: 'linux' },
  // Must precede cudaVDPAU.h, which needs it but does not include it.
  { name: 'vdpau/vdpau.h' },
  { name: 'cudaVDPAU.h', platform: 'linux' },
  { name: 'cudaVDPAUTypedefs.h', platform: 'linux' },
]

/** The C source that includes everything in the driver's spec. */
export const driverSource = includeSource(headerFiles)

const isFunction = (name: string) => /^cu[A-Z]/.test(name)

export function parseDriver(cudaInclude: string, history: History): LibrarySpecFile {
  const includes = [standInHeaders, cudaInclude]
  const unit: Translation = { source: driverSource, includes }
  const declarations = new Declarations(dumpAst(unit))
  const macros = dumpMacros(unit)
  const everyAbi: Translation = { source: `#define __CUDA_API_VERSION_INTERNAL\n${unit.source}`, includes }
  const internal = new Declarations(dumpAst(everyAbi))
  const perThread = dumpMacros({ source: `#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n${unit.source}`, includes })

  const versions = pairVersions([...internal.functions.keys()].filter(isFunction), internal.typedefs.keys(), (symbol) =>
    history.guess(
      symbol,
      `${symbol} has no function type in cudaTypedefs.h, which would tell its version`,
      history.dates(symbol).since,
    ),
  )
  const byBase = new Map<string, number[]>()
  for (const [symbol, version] of versions) {
    const { base, variant } = splitSymbol(symbol)
    if (variant === '')
      byBase.set(
        base,
        [...(byBase.get(base) ?? []), version].sort((a, b) => a - b),
      )
  }
  const isOurs = (record: RecordDeclaration) => record.names.some((name) => ours.test(name))
  const layouts = new Layouts(unit, declarations, isOurs)
  const earlierLayouts = new Layouts(everyAbi, internal, isOurs)
  const headers = headerFiles.filter(({ name }) => name.startsWith('cuda'))
  const describe = readDeclarationInfo(cudaInclude, headers, ungrouped, history)

  // A name is exported if it is declared, or if a macro redirects it to another ABI.
  const exported = new Map<string, string>()
  const isLibrarys = (name: string) => isFunction(name) && !isDefinedInHeader(declarations.functions.get(name))
  for (const name of declarations.functions.keys()) if (isLibrarys(name)) exported.set(name, name)
  for (const [name, body] of macros) {
    const target = /^__CUDA_API_PT[DS][SZ]\((\w+)\)\s*$/.exec(body)?.[1] ?? body.trim()
    if (isFunction(name) && declarations.functions.has(target)) exported.set(name, target)
  }
  // Programs reach a macro's target under its plain name. Keep the suffixed name only if both ABIs are public.
  for (const [name, symbol] of [...exported]) {
    const { base, revision } = splitSymbol(name)
    if (name === symbol && revision > 1 && exported.get(base) === symbol) exported.delete(name)
  }

  const functions: FunctionSpec[] = []
  for (const [name, symbol] of exported) {
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
    const threadSymbol = expandVariant(perThread.get(name), symbol) ?? expandVariant(perThread.get(symbol), symbol)
    functions.push({
      name,
      symbol,
      lookup: base,
      since,
      versions: byBase.get(base) ?? [since],
      ...perThreadVariant(threadSymbol, versions),
      ...describe(names),
      ...readSignature(declarations, layouts, node, history),
      ...(absent[name] === undefined ? {} : { reason: absent[name] }),
    })
  }
  functions.push(...readEarlier(internal, earlierLayouts, versions, byBase, exported, describe, history))
  functions.sort((a, b) => (a.name < b.name ? -1 : 1))

  const structs = readStructs(declarations, layouts)
  const known = new Set(structs.map(({ name }) => name))
  for (const entry of readStructs(internal, earlierLayouts))
    if (!known.has(entry.name)) structs.push({ ...entry, earlier: true })

  return {
    format: 1,
    library: 'driver',
    headerVersion: Number(macros.get('CUDA_VERSION')),
    exports: history.previous.exports,
    headers: headers.map(({ name }) => name),
    functions,
    enums: readEnums(declarations, ours),
    structs: structs.sort((a, b) => (a.name < b.name ? -1 : 1)),
    ...readNames(declarations, named),
    constants: readConstants(unit, declarations, macros, /^(CU(DA)?_(?!CB$|UUID_HAS)|MAX_PLANES$)/),
    unbound: unboundDriver(history.exported),
  }
}

/**
 * Reads the superseded ABIs. Each is exported under the base name plus the version that introduced it, with the
 * function type of that version.
 */
function readEarlier(
  internal: Declarations,
  layouts: Layouts,
  versions: ReadonlyMap<string, number>,
  byBase: ReadonlyMap<string, number[]>,
  exported: ReadonlyMap<string, string>,
  describe: DeclarationInfo,
  history: History,
): FunctionSpec[] {
  const bound = new Set(exported.values())
  const functions: FunctionSpec[] = []
  for (const [symbol, node] of internal.functions) {
    const { base, variant } = splitSymbol(symbol)
    if (!isFunction(symbol) || variant !== '' || bound.has(symbol)) continue
    const since = versions.get(symbol) as number
    if (!exported.has(base)) throw new Error(`${symbol}: nothing is exported as ${base}`)
    const threadSymbol = [`${symbol}_ptds`, `${symbol}_ptsz`].find((other) => internal.functions.has(other))
    functions.push({
      name: `${base}_v${since}`,
      symbol,
      lookup: base,
      since,
      versions: byBase.get(base) as number[],
      ...perThreadVariant(threadSymbol, versions),
      ...describe([base, symbol, exported.get(base) as string]),
      ...readSignature(internal, layouts, node, history),
      supersededBy: base,
    })
  }
  return functions
}

function perThreadVariant(
  symbol: string | undefined,
  versions: ReadonlyMap<string, number>,
): Pick<FunctionSpec, 'perThreadSymbol' | 'perThreadSince'> {
  if (symbol === undefined) return {}
  const since = versions.get(symbol)
  if (since === undefined) throw new Error(`no version for ${symbol}`)
  return { perThreadSymbol: symbol, perThreadSince: since }
}

/** Resolves macro bodies such as `__CUDA_API_PTSZ(cuMemFreeAsync)`. */
function expandVariant(body: string | undefined, symbol: string): string | undefined {
  const match = /__CUDA(?:RT)?_API_(PTDS|PTSZ)\(\s*(\w+)\s*\)/.exec(body ?? '')
  if (!match || match[2] !== symbol) return undefined
  return `${match[2]}_${(match[1] as string).toLowerCase()}`
}
