import type { FunctionSpec, LibrarySpecFile, UnboundSpec } from '../spec/types.js'

/** The bound and unbound parts of a library. */
export interface Coverage {
  readonly spec: LibrarySpecFile
  /** Bound functions; each ABI counts. */
  readonly bound: number
  /** Bound functions that no header declares. */
  readonly undeclared: number
  readonly earlierAbis: number
  readonly windowsAlone: number
  readonly linuxAlone: number
  /** Bound functions that the listed library does not export. */
  readonly notExported: readonly FunctionSpec[]
  readonly otherMajors: readonly FunctionSpec[]
  /** Symbols that the library exports, including per-thread variants. */
  readonly exportedSymbols: number
  readonly boundSymbols: number
  readonly unboundSymbols: number
  /** Declarations in headers that cannot be bound, including device code. */
  readonly declaredUnbound: number
  readonly unbound: readonly UnboundSpec[]
}

/** @param exported the exports of the library that the spec names in `exports` */
export function count(spec: LibrarySpecFile, exported: ReadonlySet<string>): Coverage {
  const { functions, unbound = [] } = spec
  const number = (test: (entry: FunctionSpec) => boolean) => functions.filter(test).length
  const symbols = new Set(functions.flatMap(({ symbol, perThreadSymbol }) => [symbol, perThreadSymbol ?? symbol]))
  const boundSymbols = [...symbols].filter((symbol) => exported.has(symbol)).length
  const unboundSymbols = sum(unbound.filter((entry) => entry.exported))
  return {
    spec,
    bound: functions.length,
    undeclared: number(({ undeclared }) => undeclared !== undefined),
    earlierAbis: number(({ supersededBy }) => supersededBy !== undefined),
    windowsAlone: number(({ platform }) => platform === 'win32'),
    linuxAlone: spec.platform === 'linux' ? functions.length : number(({ platform }) => platform === 'linux'),
    notExported: functions.filter(({ symbol }) => !exported.has(symbol)),
    otherMajors: functions.filter(({ otherMajors }) => otherMajors !== undefined),
    exportedSymbols: boundSymbols + unboundSymbols,
    boundSymbols,
    unboundSymbols,
    declaredUnbound: sum(unbound.filter((entry) => !entry.exported)),
    unbound,
  }
}

/** An entry may stand for several names. */
export function sum(entries: readonly UnboundSpec[]): number {
  return entries.reduce((total, entry) => total + (entry.count ?? 1), 0)
}
