import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ncclSince } from '../facts/ncclSince.js'
import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { Declarations } from './declarations.js'
import { Layouts } from './layouts.js'
import { readEnums, readNames, readSignature, readStructs } from './library.js'

const ours = /^(nccl[A-Z]|NCCL_)/

/** Which chapter of NCCL's user guide a function belongs to; the header has no groups. */
const chapters: readonly [RegExp, string][] = [
  [/^nccl(Send|Recv|PutSignal|Signal|WaitSignal)$/, 'p2p'],
  [/^nccl(AllReduce|Reduce|ReduceScatter|Broadcast|Bcast|AllGather|AlltoAll|Gather|Scatter)$/, 'colls'],
  [/^ncclGroup/, 'group'],
  [/^ncclRedOp/, 'ops'],
  [/^ncclParam/, 'params'],
  [/./, 'comms'],
]

export function parseNccl(ncclInclude: string, cudaInclude: string): LibrarySpecFile {
  const headers = ['nccl.h']
  const unit: Translation = {
    source: '#define NCCL_OS_LINUX\n#include <nccl.h>\n',
    includes: [ncclInclude, cudaInclude],
  }
  const declarations = new Declarations(dumpAst(unit))
  const macros = dumpMacros(unit)
  const layouts = new Layouts(unit, declarations, (record) => record.names.some((name) => ours.test(name)))
  const headerVersion = Number(macros.get('NCCL_VERSION_CODE'))
  // A platform macro hides this one from some headers' users; the library of the platform exports it all the same.
  const text = readFileSync(join(ncclInclude, 'nccl.h'), 'utf8')

  const functions: FunctionSpec[] = []
  for (const [name, node] of [...declarations.functions].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!/^nccl[A-Z]/.test(name)) continue
    const since = ncclSince[name] ?? headerVersion
    functions.push({
      name,
      symbol: name,
      lookup: name,
      since,
      versions: [since],
      group: (chapters.find(([pattern]) => pattern.test(name)) as [RegExp, string])[1],
      ...readSignature(declarations, layouts, node),
      ...(isLinuxOnly(text, name) ? { platform: 'linux' as const } : {}),
    })
  }
  for (const name of Object.keys(ncclSince)) {
    if (!functions.some((entry) => entry.name === name))
      throw new Error(`the facts speak of ${name}, which the header does not declare`)
  }

  return {
    format: 1,
    library: 'nccl',
    headerVersion,
    headers,
    functions,
    enums: readEnums(declarations, ours),
    structs: readStructs(declarations, layouts),
    ...readNames(declarations, /^(nccl[A-Z]|cudaStream_t$)/),
    constants: readConstants(unit, declarations, macros, /^NCCL_(?!OS_)/),
  }
}

function isLinuxOnly(text: string, name: string): boolean {
  return new RegExp(`#ifdef NCCL_OS_LINUX[^#]*\\b${name}\\b`).test(text)
}
