import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { currentSignatureSince, otherMajors } from '../facts/runtimeMajors.js'
import { runtimeSince } from '../facts/runtimeSince.js'
import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { Declarations } from './declarations.js'
import { readGroups } from './groups.js'
import { Layouts } from './layouts.js'
import { readEnums, readNames, readSignature, readStructs } from './library.js'

const ours = /^(cuda[A-Z]|CUuuid|dim3$|CUDA_)/

export function parseRuntime(cudaInclude: string): LibrarySpecFile {
  const includes = [cudaInclude]
  const unit: Translation = { source: '#include <cuda_runtime_api.h>\n', includes }
  const declarations = new Declarations(dumpAst(unit))
  const macros = dumpMacros(unit)
  const perThread = dumpMacros({ source: `#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n${unit.source}`, includes })
  const layouts = new Layouts(unit, declarations, (record) => record.names.some((name) => ours.test(name)))
  const groups = readGroups(readFileSync(join(cudaInclude, 'cuda_runtime_api.h'), 'utf8'))

  const functions: FunctionSpec[] = []
  for (const [symbol, node] of [...declarations.functions].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!/^cuda[A-Z]/.test(symbol)) continue
    const name = [...macros].find(([, body]) => body.trim() === symbol)?.[0] ?? symbol
    const group = groups.get(name) ?? groups.get(symbol)
    if (group === undefined && !ungrouped.has(name)) throw new Error(`${name} stands in no documentation group`)
    const flavour = /__CUDART_API_(PTDS|PTSZ)\(\s*(\w+)\s*\)/.exec(perThread.get(name) ?? '')
    const majors = otherMajors[symbol]
    const first = runtimeSince[symbol]
    if (first === undefined) throw new Error(`the facts do not tell since which CUDA version libcudart has ${symbol}`)
    const since = majors ? currentSignatureSince(majors) : first
    functions.push({
      name,
      symbol,
      lookup: symbol,
      since,
      versions: since === first ? [first] : [first, since],
      ...(flavour ? { perThreadSymbol: `${flavour[2]}_${(flavour[1] as string).toLowerCase()}` } : {}),
      group: group ?? '',
      ...readSignature(declarations, layouts, node),
      ...(majors ? { otherMajors: majors } : {}),
    })
  }
  for (const name of Object.keys(otherMajors)) {
    if (!declarations.functions.has(name))
      throw new Error(`the facts speak of ${name}, which the headers do not declare`)
  }

  return {
    format: 1,
    library: 'runtime',
    headerVersion: Number(macros.get('CUDART_VERSION')),
    headers: ['cuda_runtime_api.h'],
    functions,
    enums: readEnums(declarations, ours),
    structs: readStructs(declarations, layouts),
    ...readNames(declarations, ours),
    constants: readConstants(unit, declarations, macros, /^(cuda[A-Z]|CUDA_IPC|CUDART_VERSION$)/),
  }
}

/** Declared between the groups, undocumented by the vendor. */
const ungrouped = new Set(['cudaGetExportTable'])
