// How the C calling convention passes each kind of value. Independent of the emitters, because the proofs check those.

import { type FunctionSpec, type LibrarySpecFile, type Lowered, type StructSpec, scalarBytes } from '../spec/types.js'

/**
 * The number of bytes that the recorder keeps of an argument. Integers below 32 bits are recorded as 32 bits, because
 * callees compiled by clang rely on the caller to extend them.
 */
export function recordedBytes(lowered: Lowered): number {
  switch (lowered.kind) {
    case 'enum':
    case 'bool':
      return 4
    case 'integer':
      return Math.max(4, scalarBytes(lowered.type))
    case 'float':
      return lowered.type === 'f32' ? 4 : 8
    case 'struct':
      return lowered.size
    case 'void':
      throw new Error('an argument of type void')
    default:
      return 8
  }
}

/** A function of the recorder: an exported symbol, or one that must never be called. */
export interface RecorderSymbol {
  /** The position in the list, and the number under which it records calls. */
  readonly id: number
  readonly symbol: string
  readonly entry: FunctionSpec
  /** `other`: an older or newer ABI of the same name, with a signature other than the generated one. */
  readonly variant: 'plain' | 'per-thread' | 'other'
  /** The version that the symbol belongs to. */
  readonly since: number
}

/** All functions in the recorder of a library. The order depends only on names and versions. */
export function recorderSymbols(spec: LibrarySpecFile): RecorderSymbol[] {
  const found = new Map<string, Omit<RecorderSymbol, 'id'>>()
  const typed = new Set(spec.functions.map(({ lookup, since }) => `${lookup}@${since}`))
  for (const entry of spec.functions) {
    const { symbol, perThreadSymbol, since, lookup } = entry
    found.set(symbol, { symbol, entry, variant: 'plain', since })
    if (perThreadSymbol)
      found.set(perThreadSymbol, {
        symbol: perThreadSymbol,
        entry,
        variant: 'per-thread',
        since: entry.perThreadSince ?? since,
      })
    if (spec.library !== 'driver') continue
    for (const version of entry.versions) {
      if (typed.has(`${lookup}@${version}`)) continue
      const other = `shoal_proof_other_${lookup}_${version}`
      found.set(other, { symbol: other, entry, variant: 'other', since: version })
    }
  }
  return [...found.values()].map((each, id) => ({ id, ...each }))
}

/** True if a struct contains a floating-point number, which may be passed in other registers. */
export function holdsFloat(structs: ReadonlyMap<string, StructSpec>, name: string): boolean {
  const entry = structs.get(name)
  if (entry === undefined) return false
  return entry.fields.some(({ type }) =>
    type.kind === 'struct' ? holdsFloat(structs, type.type) : type.kind === 'f32' || type.kind === 'f64',
  )
}

export function structsByName(spec: LibrarySpecFile): Map<string, StructSpec> {
  return new Map(spec.structs.map((entry) => [entry.name, entry]))
}
