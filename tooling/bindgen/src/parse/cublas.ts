import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cublasGroup, inlineReason, otherHeaders, undeclaredReason, unexported } from '../facts/cublas.js'
import type { History } from '../spec/history.js'
import type { FunctionSpec, LibrarySpecFile, UnboundSpec } from '../spec/types.js'
import { dumpAst, dumpMacros, type Translation } from './clang.js'
import { readConstants } from './constants.js'
import { Declarations } from './declarations.js'
import { headerVersion } from './headers.js'
import { Layouts } from './layouts.js'
import { isDefinedInHeader, readEnums, readNames, readSignature, readStructs } from './library.js'

/** The libraries of cuBLAS. Each has one header; that of cuBLASLt includes the other. */
export type CublasName = 'cublas' | 'cublasLt'

/** The source that includes everything in the spec. The macros of cublas_v2.h name the newest ABIs. */
export const cublasSources: Readonly<Record<CublasName, string>> = {
  cublas: '#include <cublas_v2.h>\n',
  cublasLt: '#include <cublasLt.h>\n',
}

const shared = 'cudaDataType|libraryPropertyType|cudaEmulation'
const rules = {
  cublas: {
    header: 'cublas_api.h',
    ours: /^cublas(?!Lt)[A-Z]/,
    enums: new RegExp(`^(cublas[A-Z]|${shared})`),
    structs: /^cu(Double)?Complex$/,
    constants: /^CUBLAS_(?!H_|API_H_|V2_H_)/,
  },
  cublasLt: {
    header: 'cublasLt.h',
    ours: /^cublasLt[A-Z]/,
    // Attributes take values of these enumerations.
    enums: new RegExp(`^(cublasLt[A-Z]|cublas(Status|ComputeType|Operation|FillMode)_t$|${shared})`),
    structs: /^cublasLt[A-Z]/,
    constants: /^CUBLASLT_/,
  },
} as const

/**
 * The prototypes that `cublas_api.h` only has for C++, because they take 16-bit floats. C passes an unsigned short in
 * place of these classes.
 */
function sixteenBitPrototypes(text: string): string {
  const sections = [...text.matchAll(/^#if defined\(__cplusplus\)\n([^#]*)^#endif/gm)].map(([, body]) => body as string)
  const prototypes = sections.filter((body) => body.includes('CUBLASWINAPI') && body.includes('__half'))
  return ['typedef unsigned short __half;', 'typedef unsigned short __nv_bfloat16;', ...prototypes].join('\n')
}

export function parseCublas(
  library: CublasName,
  include: string,
  cudaInclude: string,
  history: History,
): LibrarySpecFile {
  const { header, ours, enums, structs, constants } = rules[library]
  const text = (file: string) => readFileSync(join(include, file), 'utf8')
  const more = library === 'cublas' ? sixteenBitPrototypes(text('cublas_api.h')) : ''
  const unit: Translation = { source: `${cublasSources[library]}${more}\n`, includes: [include, cudaInclude] }
  const declarations = new Declarations(dumpAst(unit))
  const macros = dumpMacros(unit)
  const layouts = new Layouts(unit, declarations, ({ names }) => names.some((name) => structs.test(name)))
  // Programs may allocate these descriptors, so their sizes are in the spec. Only the library knows their content.
  for (const record of declarations.records)
    if (record.names.some((name) => /^cublasLt\w+Opaque_t$/.test(name))) record.complete = false
  const newest = new Map([...macros].map(([name, symbol]) => [symbol.trim(), name]))
  const functions: FunctionSpec[] = []
  const unbound: UnboundSpec[] = []
  for (const [symbol, node] of [...declarations.functions].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!ours.test(symbol)) continue
    const reason = isDefinedInHeader(node) ? inlineReason : unexported[symbol]
    if (reason !== undefined) {
      unbound.push({ symbol, exported: false, nature: reason === inlineReason ? 'inline' : 'function', reason })
      continue
    }
    const name = newest.get(symbol) ?? symbol
    functions.push({
      name,
      symbol,
      lookup: symbol,
      ...history.dates(symbol),
      group: cublasGroup(name),
      ...readSignature(declarations, layouts, node, history),
      header,
    })
  }
  return {
    format: 1,
    library,
    headerVersion: headerVersion(library, include),
    exports: history.previous.exports,
    headers: [header],
    functions,
    enums: readEnums(declarations, enums).filter(({ name }) => library === 'cublasLt' || !/^cublasLt/.test(name)),
    structs: readStructs(declarations, layouts),
    ...readNames(declarations, new RegExp(`${ours.source}|^cudaStream_t$`)),
    constants: readConstants(unit, declarations, macros, constants),
    unbound: [...unbound, ...otherExports(library, functions, text, history)],
  }
}

/** Exports that no bound header declares: older interfaces, and the library's own. */
function otherExports(
  library: CublasName,
  functions: readonly FunctionSpec[],
  text: (file: string) => string,
  history: History,
): UnboundSpec[] {
  const bound = new Set(functions.map(({ symbol }) => symbol))
  const others = library === 'cublas' ? Object.entries(otherHeaders) : []
  const declared = others.map(([file, reason]) => [new Set(text(file).match(/\bcublas\w+/g)), reason] as const)
  return [...history.exported]
    .filter((symbol) => !bound.has(symbol))
    .map((symbol): UnboundSpec => {
      const reason = declared.find(([names]) => names.has(symbol))?.[1] ?? undeclaredReason(symbol, history)
      return { symbol, exported: true, nature: 'function', reason }
    })
}
