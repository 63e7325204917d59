import { unboundRuntime } from '../facts/runtimeSymbols.js'
import type { History } from '../spec/history.js'
import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { Declarations } from './declarations.js'
import { type HeaderFile, includeSource, readDeclarationInfo, standInHeaders } from './include.js'
import { Layouts } from './layouts.js'
import { isDefinedInHeader, readEnums, readNames, readSignature, readStructs } from './library.js'

const ours = /^(cuda[A-Z]|CUuuid|dim3$|CUDA_)/
/** The runtime's names, and typedefs of other vendors that its prototypes use. */
const named =
  /^(cuda[A-Z]|CUuuid|dim3$|CUDA_|GL(enum|uint)$|EGL\w+$|Vdp(Device|VideoSurface|OutputSurface|GetProcAddress)$|HGPUNV$)/

/** All headers of the C API. */
const headerFiles: readonly HeaderFile[] = [
  { name: 'cuda_runtime_api.h' },
  { name: 'cuda_profiler_api.h' },
  { name: 'cuda_gl_interop.h', windows: true },
  { name: 'cuda_egl_interop.h', platform: 'linux' },
  { name: 'cuda_vdpau_interop.h', platform: 'linux' },
]

/**
 * The source that includes everything in the runtime's spec. The header for EGL includes cuda_runtime.h, the C++ API,
 * whose templates would hide the functions. So its include guard is defined beforehand.
 */
export const runtimeSource = `#define __CUDA_RUNTIME_H__\n#include <driver_functions.h>\n${includeSource(headerFiles)}`

export function parseRuntime(cudaInclude: string, history: History): LibrarySpecFile {
  const includes = [standInHeaders, cudaInclude]
  const unit: Translation = { source: runtimeSource, includes }
  const declarations = new Declarations(dumpAst(unit))
  const macros = dumpMacros(unit)
  const perThread = dumpMacros({ source: `#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n${unit.source}`, includes })
  const layouts = new Layouts(unit, declarations, (record) => record.names.some((name) => ours.test(name)))
  const describe = readDeclarationInfo(cudaInclude, headerFiles, ungrouped, history)

  const functions: FunctionSpec[] = []
  for (const [symbol, node] of [...declarations.functions].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!/^cuda[A-Z]/.test(symbol) || isDefinedInHeader(node)) continue
    const name = [...macros].find(([, body]) => body.trim() === symbol)?.[0] ?? symbol
    const variant = /__CUDART_API_(PTDS|PTSZ)\(\s*(\w+)\s*\)/.exec(perThread.get(name) ?? '')
    const { otherMajors, ...dates } = history.dates(symbol)
    functions.push({
      name,
      symbol,
      lookup: symbol,
      ...dates,
      ...(variant ? { perThreadSymbol: `${variant[2]}_${(variant[1] as string).toLowerCase()}` } : {}),
      ...describe([name, symbol]),
      ...readSignature(declarations, layouts, node, history),
      ...(otherMajors ? { otherMajors } : {}),
    })
  }
  return {
    format: 1,
    library: 'runtime',
    headerVersion: Number(macros.get('CUDART_VERSION')),
    exports: history.previous.exports,
    headers: headerFiles.map(({ name }) => name),
    functions,
    enums: readEnums(declarations, ours),
    structs: readStructs(declarations, layouts),
    ...readNames(declarations, named),
    constants: readConstants(unit, declarations, macros, /^(cuda[A-Z]|CUDA_IPC|CUDA_EGL|CUDART_VERSION$)/),
    unbound: [...unboundRuntime],
  }
}

/** Declared outside of any group; undocumented by the vendor. */
const ungrouped = new Set(['cudaGetExportTable'])
