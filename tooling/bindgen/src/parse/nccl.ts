import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { deviceReason, deviceRecords, inlineReason, profilerNames, undeclaredNccl } from '../facts/ncclSymbols.js'
import type { History } from '../spec/history.js'
import type { FunctionSpec, LibrarySpecFile, UnboundSpec } from '../spec/types.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { Declarations } from './declarations.js'
import { Layouts } from './layouts.js'
import { readEnums, readNames, readSignature, readStructs } from './library.js'
import { readVersionedStructs } from './ncclStructs.js'

const ours = /^(nccl[A-Z]|NCCL_)/

/** The chapter of NCCL's user guide for each function, because the header has no groups. */
const chapters: readonly [RegExp, string][] = [
  [/^nccl(Send|Recv|PutSignal|Signal|WaitSignal)$/, 'p2p'],
  [/^nccl(AllReduce|Reduce|ReduceScatter|Broadcast|Bcast|AllGather|AlltoAll|Gather|Scatter)$/, 'colls'],
  [/^ncclGroup/, 'group'],
  [/^ncclRedOp/, 'ops'],
  [/^ncclParam/, 'params'],
  [/^nccl(DevComm|CommQueryProperties$|Get\w+DevicePointer$)/, 'device_setup'],
  [/^nccl(Team|Gin|LLA2A|LsaBarrier)/, 'device'],
  [/./, 'comms'],
]

/**
 * C or C++ source that includes everything in the spec.
 *
 * The host functions of the device API are among templates for kernels. C can include all of these headers except
 * gin.h, which has no host function. Two host functions for its subject are declared in the file that replaces gin.h on
 * Windows, although the library for Linux exports them, too. That file omits `struct` before its types.
 */
export const ncclSource = `#define NCCL_OS_LINUX
#include <nccl.h>
#include <nccl_device/core.h>
typedef struct ncclTeam ncclTeam;
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements;
typedef struct ncclGinOutboxHandle ncclGinOutboxHandle;
typedef struct ncclGinInboxA2AHandle ncclGinInboxA2AHandle;
#define NCCL_OS_WINDOWS
#include <nccl_device/gin_win_stub.h>
#undef NCCL_OS_WINDOWS
#include <nccl_device/impl/comm__types.h>
`

export function parseNccl(ncclInclude: string, cudaInclude: string, history: History): LibrarySpecFile {
  const unit: Translation = { source: ncclSource, includes: [ncclInclude, cudaInclude] }
  const declarations = new Declarations(dumpAst(unit))
  for (const name of deviceRecords) {
    const record = declarations.records.find(({ names }) => names.includes(name))
    if (!record) throw new Error(`the facts speak of a record ${name}, which the headers do not have`)
    record.complete = false
  }
  const macros = dumpMacros(unit)
  const layouts = new Layouts(unit, declarations, (record) => record.names.some((name) => ours.test(name)))
  const headerVersion = Number(macros.get('NCCL_VERSION_CODE'))
  const texts = readHeaders(ncclInclude)

  const functions: FunctionSpec[] = []
  const unbound: UnboundSpec[] = []
  for (const [name, node] of declarations.functions) {
    if (!/^nccl[A-Z]/.test(name)) continue
    if (node.inline) {
      unbound.push({ symbol: name, exported: false, nature: 'inline', reason: inlineReason })
      continue
    }
    const { header, isLinuxOnly } = whereDeclared(texts, name)
    functions.push({
      ...identity(name, history),
      ...readSignature(declarations, layouts, node, history),
      ...(isLinuxOnly ? { platform: 'linux' as const } : {}),
      header,
    })
  }
  for (const [name, undeclared] of Object.entries(undeclaredNccl)) {
    if (declarations.functions.has(name)) continue
    const entry = identity(name, history)
    functions.push({ ...entry, result: { kind: 'void' }, resultCtype: 'void', parameters: [], undeclared })
  }
  functions.sort((a, b) => (a.name < b.name ? -1 : 1))
  unbound.push(profilerNames(functions.filter(({ undeclared }) => undeclared === undefined).length))
  const known = new Set([...functions.map(({ name }) => name), ...unbound.map(({ symbol }) => symbol)])
  for (const name of kernelFunctions(texts)) {
    if (!known.has(name)) unbound.push({ symbol: name, exported: false, nature: 'device', reason: deviceReason })
  }

  const current = readStructs(declarations, layouts).map((entry) => ({
    ...entry,
    // `_Bool` is C's own name; C++ does not have it.
    fields: entry.fields.map((field) => (field.ctype === '_Bool' ? { ...field, ctype: 'bool' } : field)),
  }))
  const { structs, versionedStructs } = readVersionedStructs(unit, macros, current, history)
  return {
    format: 1,
    library: 'nccl',
    headerVersion,
    exports: history.previous.exports,
    headers: [...new Set(functions.flatMap(({ header }) => header ?? []))],
    functions,
    enums: readEnums(declarations, ours),
    structs,
    ...readNames(declarations, /^(nccl[A-Z]|cudaStream_t$)/),
    constants: readConstants(unit, declarations, macros, /^NCCL_(?!OS_|CHECK_)/),
    unbound: unbound.sort((a, b) => (a.symbol < b.symbol ? -1 : 1)),
    versionedStructs,
  }
}

function identity(
  name: string,
  history: History,
): Pick<FunctionSpec, 'name' | 'symbol' | 'lookup' | 'since' | 'versions' | 'group'> {
  const [, group] = chapters.find(([pattern]) => pattern.test(name)) as [RegExp, string]
  return { name, symbol: name, lookup: name, ...history.dates(name), group }
}

/** nccl.h and the headers of the device API without comments, keyed by their include name. */
function readHeaders(folder: string): Map<string, string> {
  const device = readdirSync(join(folder, 'nccl_device'), { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.h'))
    .map(({ name }) => `nccl_device/${name}`)
  const read = (name: string) => readFileSync(join(folder, name), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
  return new Map(['nccl.h', ...device.sort()].map((name) => [name, read(name)]))
}

function whereDeclared(texts: ReadonlyMap<string, string>, name: string): { header: string; isLinuxOnly: boolean } {
  for (const [header, text] of texts) {
    if (!new RegExp(`\\b${name}\\s*\\(`).test(text)) continue
    return { header, isLinuxOnly: new RegExp(`#ifdef NCCL_OS_LINUX[^#]*\\b${name}\\b`).test(text) }
  }
  throw new Error(`no header has the text of ${name}`)
}

/** Free functions that only kernels can call. */
function kernelFunctions(texts: ReadonlyMap<string, string>): string[] {
  const pattern = /\bNCCL_(?:HOST_)?DEVICE_INLINE\s+(?!constexpr|explicit)[\w<>:]+(?:\s|[*&])+(nccl[A-Z]\w*)\s*\(/g
  const names = [...texts.values()].flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1] as string))
  return [...new Set(names)]
}
