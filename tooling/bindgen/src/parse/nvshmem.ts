import { nvshmemDirection, nvshmemPage, parameterNames, undeclared, unexported } from '../facts/nvshmem.js'
import type { History } from '../spec/history.js'
import type { EnumSpec, FunctionSpec, LibrarySpecFile, ParameterSpec, UnboundSpec } from '../spec/types.js'
import { type AstNode, childrenOf } from './ast.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { parseType } from './ctypes.js'
import { Declarations } from './declarations.js'
import { readFamilies, readTypeSets } from './families.js'
import { Layouts } from './layouts.js'
import { isDefinedInHeader, readEnums, readNames, readSignature, readStructs } from './library.js'
import { functionLocations } from './locations.js'

const ours = /^(nvshmem|gpu_coll_env_params|g_elem_t$|fcollect_algo_t$|rdxn_ops)/
/** The header names the enumeration of bootstrap flags just `flags`. */
const enumNames: Readonly<Record<string, string>> = { flags: 'nvshmemx_init_flags' }
/** An `int` that identifies an object. A plain number must not take its place. */
const branded = new Set(['nvshmem_team_t', 'nvshmemx_team_t'])

export function parseNvshmem(nvshmemInclude: string, cudaInclude: string, history: History): LibrarySpecFile {
  const unit: Translation = {
    // The 16-bit floating-point types are C++ classes with one unsigned short. C code passes an unsigned short.
    source: `#include <assert.h>
#include <stdbool.h>
#include <cuda.h>
#include <cuda_runtime.h>
typedef unsigned short half;
typedef unsigned short __nv_bfloat16;
#undef __device__
#define __device__ __attribute__((annotate("device")))
#include <nvshmem_host.h>
`,
    includes: [nvshmemInclude, cudaInclude],
  }
  const nodes = dumpAst(unit)
  const declarations = new Declarations(nodes)
  const macros = dumpMacros(unit)
  const layouts = new Layouts(unit, declarations, (record) => record.names.some((name) => ours.test(name)))
  const headerVersion = readVersion(macros)

  const declared = new Map([...declarations.functions].filter(([name]) => /^nvshmem/.test(name)))
  const typeSets = readTypeSets(unit)
  const { families, entries } = readFamilies(declared, functionLocations(nodes), typeSets)
  const patterns = new Map([...entries].map(([name, { pattern }]) => [name, pattern]))
  const exported = exportedBy(declared, patterns, history)

  const functions: FunctionSpec[] = []
  for (const [name, node] of [...declared].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!exported.has(name)) continue
    const entry = entries.get(name)
    functions.push({
      name,
      symbol: name,
      lookup: name,
      ...history.dates(name),
      group: nvshmemPage(name),
      ...refine(declarations, name, readSignature(declarations, layouts, node, history), history),
      ...(entry ? { family: entry.family, type: entry.type } : {}),
    })
  }

  const { handles, callbacks, scalars } = readNames(declarations, /^(nvshmem|cudaStream_t$|CUmodule$|CUlibrary$)/)
  const used = new Set(functions.flatMap(({ family }) => family ?? []))
  const kept = families.filter(({ name }) => used.has(name))
  const usedSets = new Set(kept.flatMap(({ patterns }) => patterns.flatMap(({ sets }) => sets)))
  return {
    format: 1,
    library: 'nvshmem',
    headerVersion,
    exports: history.previous.exports,
    headers: ['nvshmem_host.h'],
    platform: 'linux',
    functions,
    enums: readEnums(declarations, new RegExp(`${ours.source}|^flags$`)).map(nameEnum),
    structs: readStructs(declarations, layouts),
    handles,
    callbacks,
    scalars: scalars.map((scalar) => (branded.has(scalar.name) ? { ...scalar, branded: true } : scalar)),
    constants: readConstants(unit, declarations, macros, /^NVSHMEMX?_(?!TEAM_UNIQUID)/),
    families: kept,
    typeSets: typeSets.filter(({ name }) => usedSets.has(name)),
    unbound: readUnbound(declared, exported, patterns, history),
  }
}

function readVersion(macros: ReadonlyMap<string, string>): number {
  const part = (name: string) => Number(macros.get(`NVSHMEM_VENDOR_${name}_VERSION`))
  return part('MAJOR') * 10000 + part('MINOR') * 100 + part('PATCH')
}

/**
 * The exports of the library. The headers do not distinguish host functions from device functions and inline functions.
 * A function that is newer than the listed library counts as exported if it looks like the exported functions.
 */
function exportedBy(
  declared: ReadonlyMap<string, AstNode>,
  patterns: ReadonlyMap<string, string>,
  history: History,
): Set<string> {
  const { added, exported, previous } = history
  const names = new Set([...exported, ...previous.functions.map(({ name }) => name)])
  if (added === undefined || added === previous.exports.version) return names
  const unexportedBefore = new Set((previous.unbound ?? []).map(({ symbol }) => symbol))
  for (const [name, node] of declared) {
    const symbol = patterns.get(name) ?? name
    if (names.has(name) || unexportedBefore.has(symbol) || unexported.some(([pattern]) => pattern.test(symbol)))
      continue
    if (isDeviceFunction(node) || isDefinedInHeader(node)) continue
    names.add(name)
    history.notes.push(`${name}: taken to be exported, since no library of this version was at hand`)
  }
  return names
}

const isDeviceFunction = (node: AstNode): boolean => childrenOf(node, 'AnnotateAttr').length > 0

type Signature = ReturnType<typeof readSignature>

/** Adds facts that C types do not show: names, directions, and integers that identify a team. */
function refine(declarations: Declarations, name: string, signature: Signature, history: History): Signature {
  const parameters = signature.parameters.map((parameter, index): ParameterSpec => {
    const known = parameterNames[name]?.[index] ?? parameter.name
    if (/^argument\d+$/.test(known)) history.guess(name, `${name}: parameter ${index} has no name`, undefined)
    const { ctype, lowered } = parameter
    if (lowered.kind === 'integer' && branded.has(ctype))
      return { ...parameter, name: known, lowered: { ...lowered, brand: 'nvshmem_team_t' } }
    // No function takes text: `const char *` is an array of the table's type `char`.
    if (lowered.kind === 'cstring') return { ...parameter, name: known, lowered: { kind: 'pointer' }, direction: 'in' }
    if (lowered.kind !== 'pointer') return { ...parameter, name: known, direction: 'in' }
    const { target } = declarations.resolve(parseType(ctype))
    const isRead = target.kind === 'pointer' && target.to.const
    return { ...parameter, name: known, direction: isRead ? 'in' : nvshmemDirection(name, known, history) }
  })
  return { ...signature, parameters }
}

function nameEnum(entry: EnumSpec): EnumSpec {
  const renamed = { ...entry, name: enumNames[entry.name] ?? entry.name }
  if (renamed.name === 'nvshmem_team_id_t') return { ...renamed, brand: 'nvshmem_team_t' }
  // Prefer the public name: nvshmemi_ is for the library's internal use.
  const better = /^nvshmemi_/.test(renamed.name) ? renamed.aliases.find((alias) => /^nvshmemx_/.test(alias)) : undefined
  if (better === undefined) return renamed
  return {
    ...renamed,
    name: better,
    aliases: renamed.aliases.map((alias) => (alias === better ? renamed.name : alias)),
  }
}

/** Declarations in the headers that the library does not export. */
function readUnbound(
  declared: ReadonlyMap<string, AstNode>,
  exported: ReadonlySet<string>,
  patterns: ReadonlyMap<string, string>,
  history: History,
): UnboundSpec[] {
  const rows = new Map<string, UnboundSpec>()
  for (const [symbol, reason] of Object.entries(undeclared)) {
    const nature = /^a variable/.test(reason) ? 'data' : 'function'
    if (exported.has(symbol) && !declared.has(symbol)) rows.set(symbol, { symbol, exported: true, nature, reason })
  }
  for (const [name, node] of declared) {
    if (exported.has(name)) continue
    const symbol = patterns.get(name) ?? name
    const known = rows.get(symbol)
    if (known) {
      known.count = (known.count ?? 1) + 1
      continue
    }
    const isDevice = isDeviceFunction(node)
    const nature = isDevice ? 'device' : node.inline ? 'inline' : 'function'
    const reason = isDevice ? 'a device function: it runs on the GPU' : whyUnexported(symbol, history)
    rows.set(symbol, { symbol, exported: false, nature, reason })
  }
  return [...rows.values()].sort((a, b) => (a.symbol < b.symbol ? -1 : 1))
}

function whyUnexported(symbol: string, history: History): string {
  const reason = unexported.find(([pattern]) => pattern.test(symbol))?.[1]
  const problem = `${symbol}: the library does not export it, and facts/nvshmem.ts does not tell why`
  return reason ?? history.guess(symbol, problem, 'declared, and not exported by the library; why is not known')
}
