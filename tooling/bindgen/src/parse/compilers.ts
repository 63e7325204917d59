import { releaseAlias, unboundByCompiler } from '../facts/compilerSymbols.js'
import type { History } from '../spec/history.js'
import type { FunctionSpec, LibrarySpecFile, UnboundSpec } from '../spec/types.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { Declarations } from './declarations.js'
import { headerVersion, mainHeaders } from './headers.js'
import { Layouts } from './layouts.js'
import { readEnums, readNames, readSignature } from './library.js'

/** The compiler libraries. Each has one header in plain C, without structs. */
export type CompilerName = 'nvrtc' | 'nvjitlink'

/** The C source that shows every function as the library exports it. By default, nvJitLink's functions are inline. */
export const compilerSources: Readonly<Record<CompilerName, string>> = {
  nvrtc: '#include <nvrtc.h>\n',
  nvjitlink: '#define NVJITLINK_NO_INLINE\n#include <nvJitLink.h>\n',
}

const names = {
  nvrtc: { ours: /^nvrtc[A-Z]/, constants: /^NVRTC_/, group: 'program' },
  nvjitlink: { ours: /^nvJitLink[A-Z]/, constants: /^NVJITLINK_(?!NO_INLINE)/, group: 'linker' },
} as const

export function parseCompiler(library: CompilerName, include: string, history: History): LibrarySpecFile {
  const { ours, constants, group } = names[library]
  const header = mainHeaders[library]
  const unit: Translation = { source: compilerSources[library], includes: [include] }
  const declarations = new Declarations(dumpAst(unit))
  const layouts = new Layouts(unit, declarations, () => false)
  const functions: FunctionSpec[] = [...declarations.functions]
    .filter(([name]) => ours.test(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, node]) => ({
      name,
      symbol: name,
      lookup: name,
      ...history.dates(name),
      group,
      ...readSignature(declarations, layouts, node, history),
      header,
    }))
  return {
    format: 1,
    library,
    headerVersion: headerVersion(library, include),
    exports: history.previous.exports,
    headers: [header],
    functions,
    enums: readEnums(declarations, ours),
    structs: [],
    ...readNames(declarations, ours),
    constants: readConstants(unit, declarations, dumpMacros(unit), constants),
    unbound: unboundOf(library, history),
  }
}

function unboundOf(library: CompilerName, history: History): UnboundSpec[] {
  const aliases = [...history.exported]
    .filter((symbol) => /^__nvJitLink\w+_\d+_\d+$/.test(symbol))
    .map((symbol): UnboundSpec => ({ symbol, exported: true, nature: 'function', reason: releaseAlias }))
  return [...unboundByCompiler[library], ...aliases]
}
