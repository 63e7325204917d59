import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { nvshmemDirection, nvshmemPage, parameterNames, undeclared, unexported } from '../facts/nvshmem.js'
import { nvshmemSinceOf } from '../facts/nvshmemSince.js'
import type { EnumSpec, FunctionSpec, LibrarySpecFile, ParameterSpec, UnboundSpec } from '../spec/types.js'
import { type AstNode, childrenOf } from './ast.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { parseType } from './ctypes.js'
import { Declarations } from './declarations.js'
import { readFamilies, readTypeSets } from './families.js'
import { Layouts } from './layouts.js'
import { readEnums, readNames, readSignature, readStructs } from './library.js'
import { functionLocations } from './locations.js'

const ours = /^(nvshmem|gpu_coll_env_params|g_elem_t$|fcollect_algo_t$|rdxn_ops)/
/** The header calls the bootstrap flags just `flags`. */
const enumNames: Readonly<Record<string, string>> = { flags: 'nvshmemx_init_flags' }
/** An `int` that names an object: no plain number may stand in for it. */
const branded = new Set(['nvshmem_team_t', 'nvshmemx_team_t'])

export function parseNvshmem(nvshmemInclude: string, cudaInclude: string): LibrarySpecFile {
  const unit: Translation = {
    // The 16-bit floating-point types are classes of C++, of one unsigned short: C code passes them as that.
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
  const exported = readManifest(headerVersion)

  const declared = new Map([...declarations.functions].filter(([name]) => /^nvshmem/.test(name)))
  const typeSets = readTypeSets(unit)
  const { families, entries } = readFamilies(declared, functionLocations(nodes), typeSets)

  const functions: FunctionSpec[] = []
  for (const [name, node] of [...declared].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!exported.has(name)) continue
    const since = nvshmemSinceOf(name)
    const entry = entries.get(name)
    functions.push({
      name,
      symbol: name,
      lookup: name,
      since,
      versions: [since],
      group: nvshmemPage(name),
      ...refine(declarations, name, readSignature(declarations, layouts, node)),
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
    unbound: readUnbound(declared, exported, new Map([...entries].map(([name, { pattern }]) => [name, pattern]))),
  }
}

function readVersion(macros: ReadonlyMap<string, string>): number {
  const part = (name: string) => Number(macros.get(`NVSHMEM_VENDOR_${name}_VERSION`))
  return part('MAJOR') * 10000 + part('MINOR') * 100 + part('PATCH')
}

/** What the library of the headers' version exports: the headers declare device functions and inlines all alike. */
function readManifest(version: number): Set<string> {
  const text = `${Math.floor(version / 10000)}.${Math.floor((version % 10000) / 100)}.${version % 100}`
  const file = fileURLToPath(new URL(`../../abi/libnvshmem_host-${text}.symbols.txt`, import.meta.url))
  if (!existsSync(file)) throw new Error(`no list of what NVSHMEM ${text} exports: ${file}`)
  return new Set(readFileSync(file, 'utf8').trim().split('\n'))
}

type Signature = ReturnType<typeof readSignature>

/** Puts in what no type tells: names, directions, and which integers name a team. */
function refine(declarations: Declarations, name: string, signature: Signature): Signature {
  const parameters = signature.parameters.map((parameter, index): ParameterSpec => {
    const known = parameterNames[name]?.[index] ?? parameter.name
    if (/^argument\d+$/.test(known)) throw new Error(`${name}: parameter ${index} has no name`)
    const { ctype, lowered } = parameter
    if (lowered.kind === 'integer' && branded.has(ctype))
      return { ...parameter, name: known, lowered: { ...lowered, brand: 'nvshmem_team_t' } }
    // No function takes text: `const char *` is an array of that type of the table.
    if (lowered.kind === 'cstring') return { ...parameter, name: known, lowered: { kind: 'pointer' }, direction: 'in' }
    if (lowered.kind !== 'pointer') return { ...parameter, name: known, direction: 'in' }
    const { target } = declarations.resolve(parseType(ctype))
    const isRead = target.kind === 'pointer' && target.to.const
    return { ...parameter, name: known, direction: isRead ? 'in' : nvshmemDirection(name, known) }
  })
  return { ...signature, parameters }
}

function nameEnum(entry: EnumSpec): EnumSpec {
  const renamed = { ...entry, name: enumNames[entry.name] ?? entry.name }
  if (renamed.name === 'nvshmem_team_id_t') return { ...renamed, brand: 'nvshmem_team_t' }
  // Of two names the public one: nvshmemi_ is for the library's own use.
  const better = /^nvshmemi_/.test(renamed.name) ? renamed.aliases.find((alias) => /^nvshmemx_/.test(alias)) : undefined
  if (better === undefined) return renamed
  return {
    ...renamed,
    name: better,
    aliases: renamed.aliases.map((alias) => (alias === better ? renamed.name : alias)),
  }
}

function readUnbound(
  declared: ReadonlyMap<string, AstNode>,
  exported: ReadonlySet<string>,
  patterns: ReadonlyMap<string, string>,
): UnboundSpec[] {
  const rows = new Map<string, UnboundSpec>()
  for (const symbol of exported) {
    if (declared.has(symbol)) continue
    const reason = undeclared[symbol]
    if (reason === undefined)
      throw new Error(`the library exports ${symbol}, which no header declares and no fact explains`)
    const nature = /^a variable/.test(reason) ? 'data' : 'function'
    rows.set(symbol, { symbol, exported: true, nature, reason })
  }
  for (const [name, node] of declared) {
    if (exported.has(name)) continue
    const symbol = patterns.get(name) ?? name
    const known = rows.get(symbol)
    if (known) {
      known.count = (known.count ?? 1) + 1
      continue
    }
    const isDevice = childrenOf(node, 'AnnotateAttr').length > 0
    const nature = isDevice ? 'device' : node.inline ? 'inline' : 'function'
    rows.set(symbol, {
      symbol,
      exported: false,
      nature,
      reason: isDevice ? 'a device function: it runs on the GPU' : whyUnexported(symbol),
    })
  }
  return [...rows.values()].sort((a, b) => (a.symbol < b.symbol ? -1 : 1))
}

function whyUnexported(symbol: string): string {
  const reason = unexported.find(([pattern]) => pattern.test(symbol))?.[1]
  if (reason === undefined) throw new Error(`the library does not export ${symbol}, and no fact says why`)
  return reason
}
