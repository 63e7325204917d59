import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isNvmlArray, nvmlDirection, unboundNvml } from '../facts/nvml.js'
import type { History } from '../spec/history.js'
import type { ConstantSpec, FunctionSpec, LibrarySpecFile, ParameterSpec } from '../spec/types.js'
import { childrenOf } from './ast.js'
import { dumpAst, dumpMacros, evaluate, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { parseType } from './ctypes.js'
import { Declarations } from './declarations.js'
import { readGroups } from './groups.js'
import { headerVersion } from './headers.js'
import { Layouts } from './layouts.js'
import { readEnums, readNames, readSignature, readStructs } from './library.js'

const header = 'nvml.h'
const ours = /^nvml[A-Z]/
const constants = /^(NVML_(?!MCDM_SUPPORT|STRUCT_VERSION)|nvml[A-Z]|MAX_CLK_DOMAINS$|INVALID_GPU_)/

/** The C source that shows every ABI under its symbol. Without the macro, `nvmlInit` names `nvmlInit_v2`. */
export const nvmlSource = '#define NVML_NO_UNVERSIONED_FUNC_DEFS\n#include <nvml.h>\n'

export function parseNvml(include: string, history: History): LibrarySpecFile {
  const includes = [include]
  const unit: Translation = { source: nvmlSource, includes }
  const declarations = new Declarations(dumpAst(unit))
  const macros = dumpMacros(unit)
  const layouts = new Layouts(unit, declarations, (record) => record.names.some((name) => ours.test(name)))
  const groups = readGroups(readFileSync(join(include, header), 'utf8').replace(/\/\/.*$/gm, ''))
  const symbols = [...declarations.functions.keys()].filter((name) => ours.test(name)).sort()
  const current = currentAbis(dumpMacros({ source: '#include <nvml.h>\n', includes }), symbols)

  const functions = symbols.map((symbol): FunctionSpec => {
    const node = declarations.functions.get(symbol)
    if (node === undefined) throw new Error(`${symbol}: no declaration`)
    const { base, revision } = splitSymbol(symbol)
    const newest = current.get(base)
    const isEarlier = newest !== undefined && newest !== symbol && revision < splitSymbol(newest).revision
    const { since } = history.dates(symbol)
    const group = groups.get(symbol) ?? groups.get(newest ?? symbol) ?? ''
    if (group === '') history.guess(symbol, `${symbol} stands in no documentation group`, undefined)
    return {
      name: newest === symbol ? base : isEarlier ? `${base}_v${revision}` : symbol,
      symbol,
      lookup: symbol,
      since,
      versions: newest === undefined ? [since] : versionsOf(base, symbols, since, history),
      group,
      ...withDirections(declarations, symbol, readSignature(declarations, layouts, node, history)),
      header,
      ...(isEarlier ? { supersededBy: base } : {}),
    }
  })
  return {
    format: 1,
    library: 'nvml',
    headerVersion: headerVersion('nvml', include),
    exports: history.previous.exports,
    headers: [header],
    functions: functions.sort((a, b) => (a.name < b.name ? -1 : 1)),
    enums: readEnums(declarations, ours),
    structs: readStructs(declarations, layouts),
    ...readNames(declarations, ours),
    constants: [...readConstants(unit, declarations, macros, constants), ...structVersions(unit, macros)].sort(
      (a, b) => (a.name < b.name ? -1 : 1),
    ),
    unbound: [...unboundNvml],
  }
}

function splitSymbol(symbol: string): { base: string; revision: number } {
  const [, base = symbol, revision = '1'] = /^(.*)_v(\d+)$/.exec(symbol) ?? []
  return { base, revision: Number(revision) }
}

/** The symbol that a macro of the header gives to programs under the plain name. */
function currentAbis(macros: ReadonlyMap<string, string>, symbols: readonly string[]): Map<string, string> {
  const known = new Set(symbols)
  const found = new Map<string, string>()
  for (const [name, body] of macros) {
    const symbol = body.trim()
    if (known.has(symbol) && splitSymbol(symbol).base === name) found.set(name, symbol)
  }
  return found
}

/** The first version of each ABI up to the one since a version. */
function versionsOf(base: string, symbols: readonly string[], since: number, history: History): number[] {
  const dates = symbols.filter((each) => splitSymbol(each).base === base).map((each) => history.dates(each).since)
  return [...new Set(dates)].filter((date) => date <= since).sort((a, b) => a - b)
}

type Signature = ReturnType<typeof readSignature>

/** Adds the directions, which C types do not show. */
function withDirections(declarations: Declarations, functionName: string, signature: Signature): Signature {
  const names = signature.parameters.map(({ name }) => name)
  const hasArray = names.some((name) => isNvmlArray(names, name))
  const parameters = signature.parameters.map((parameter): ParameterSpec => {
    const { name, ctype, lowered } = parameter
    const { target } = declarations.resolve(parseType(ctype))
    if (lowered.kind !== 'pointer' || target.kind !== 'pointer' || target.to.const)
      return { ...parameter, direction: 'in' }
    const to = declarations.resolve(target.to).target
    const fields = to.kind === 'record' ? childrenOf(to.record.node, 'FieldDecl') : []
    const isVersioned = fields.some((field) => field.name === 'version' && field.type?.qualType === 'unsigned int')
    const counts = (hasArray && /count$/i.test(name)) || /^(size|bufferSize)$/.test(name)
    return { ...parameter, direction: nvmlDirection(functionName, name, isVersioned, counts) }
  })
  return { ...signature, parameters }
}

/** The value of each struct's `version` field: its size, and the version in the upper byte. */
function structVersions(unit: Translation, macros: ReadonlyMap<string, string>): ConstantSpec[] {
  const names = [...macros].filter(([, body]) => /^NVML_STRUCT_VERSION\(/.test(body.trim())).map(([name]) => name)
  const values = evaluate(unit, names)
  return names.map((name, index) => ({ name, value: String(values[index]), kind: 'number' }))
}
