// Specs that are deliberately wrong, to show that the proof can fail.

import type { FunctionSpec, IntegerKind, LibrarySpecFile, Lowered, ParameterSpec } from '../spec/types.js'
import { recordedBytes } from './abi.js'
import { loaderFunctions } from './recorder.js'

export interface Mutation {
  readonly what: string
  /** Whether the native library differs from the generated code, or the expectation does. */
  readonly side: 'library' | 'expectation'
  /** Returns the wrong entry, or undefined if the function cannot be wrong in this way. */
  readonly apply: (entry: FunctionSpec) => FunctionSpec | undefined
}

function withParameters(entry: FunctionSpec, parameters: ParameterSpec[]): FunctionSpec {
  return { ...entry, parameters }
}

/** Changes the kind of the first parameter that allows it. */
function wrongParameter(side: Mutation['side'], what: string, change: (lowered: Lowered) => Lowered | false): Mutation {
  const apply = (entry: FunctionSpec): FunctionSpec | undefined => {
    for (const [index, parameter] of entry.parameters.entries()) {
      const lowered = change(parameter.lowered)
      if (lowered) return withParameters(entry, entry.parameters.with(index, { ...parameter, lowered }))
    }
    return undefined
  }
  return { what, side, apply }
}

const isInteger = (lowered: Lowered, type: IntegerKind): lowered is Lowered & { kind: 'integer' } =>
  lowered.kind === 'integer' && lowered.type === type
const integer = (type: IntegerKind): Lowered => ({ kind: 'integer', type })

export const mutations: readonly Mutation[] = [
  {
    what: 'two parameters swapped',
    side: 'library',
    apply: (entry) => {
      const at = entry.parameters.findIndex(({ lowered }, index) => {
        const next = entry.parameters[index + 1]
        return next !== undefined && recordedBytes(lowered) !== recordedBytes(next.lowered)
      })
      if (at < 0) return undefined
      const [first, second] = entry.parameters.slice(at, at + 2) as [ParameterSpec, ParameterSpec]
      return withParameters(entry, entry.parameters.toSpliced(at, 2, second, first))
    },
  },
  {
    what: 'a parameter too few',
    side: 'library',
    apply: (entry) => (entry.parameters.length < 2 ? undefined : withParameters(entry, entry.parameters.slice(0, -1))),
  },
  {
    what: 'a parameter too many',
    side: 'library',
    apply: (entry) => {
      const [first] = entry.parameters
      return first && withParameters(entry, [...entry.parameters, first])
    },
  },
  wrongParameter(
    'library',
    'a struct by value that is larger',
    (lowered) => lowered.kind === 'struct' && { ...lowered, size: lowered.size + 8 },
  ),
  wrongParameter(
    'library',
    'a struct by value that is taken by pointer',
    ({ kind }) => kind === 'struct' && { kind: 'pointer' },
  ),
  wrongParameter('library', '32 bits of a size', ({ kind }) => kind === 'size' && integer('u32')),
  wrongParameter(
    'library',
    'a float that is a double',
    (lowered) => lowered.kind === 'float' && { kind: 'float', type: lowered.type === 'f32' ? 'f64' : 'f32' },
  ),
  wrongParameter(
    'library',
    'a float in an integer register',
    (lowered) => lowered.kind === 'float' && integer(lowered.type === 'f32' ? 'u32' : 'u64'),
  ),
  wrongParameter(
    'expectation',
    'an unsigned parameter that is signed',
    (lowered) => isInteger(lowered, 'u32') && { ...lowered, type: 'i32' },
  ),
  wrongParameter(
    'expectation',
    'a signed parameter that is unsigned',
    (lowered) => isInteger(lowered, 'i32') && { ...lowered, type: 'u32' },
  ),
  {
    what: 'a signed result that is unsigned',
    side: 'expectation',
    apply: ({ result, ...entry }) => {
      if (result.kind === 'enum') return { ...entry, result: { ...result, signed: !result.signed } }
      return isInteger(result, 'i32') ? { ...entry, result: integer('u32') } : undefined
    },
  },
  {
    what: 'a result of 64 bits that has 32',
    side: 'expectation',
    apply: (entry) =>
      ['pointer', 'size'].includes(entry.result.kind) ? { ...entry, result: integer('u32') } : undefined,
  },
]

/** The fields by which a function is looked up. */
function identityOf({ symbol, lookup, since, versions }: FunctionSpec): Partial<FunctionSpec> {
  return { symbol, lookup, since, versions }
}

export interface BrokenSpec {
  /** The spec of the native library. */
  readonly library: LibrarySpecFile
  /** The spec of the expected results. */
  readonly expectation: LibrarySpecFile
  /** The broken functions, and how each is wrong. */
  readonly broken: ReadonlyMap<string, string>
}

/** Returns a spec with one function broken in each possible way. */
export function breakSpec(spec: LibrarySpecFile): BrokenSpec {
  const wrong = { library: new Map<string, FunctionSpec>(), expectation: new Map<string, FunctionSpec>() }
  const broken = new Map<string, string>()
  const isShared = (symbol: string): boolean => spec.functions.filter((other) => other.symbol === symbol).length > 1
  const usable = spec.functions.filter(
    ({ symbol }) => !isShared(symbol) && !loaderFunctions(spec.library).includes(symbol),
  )
  for (const { what, side, apply } of mutations) {
    for (const entry of usable) {
      const changed = broken.has(entry.name) ? undefined : apply(entry)
      if (changed === undefined) continue
      wrong[side].set(entry.name, changed)
      broken.set(entry.name, what)
      break
    }
  }
  // Two functions with swapped names.
  const [first, second] = usable.filter(
    ({ name, versions, perThreadSymbol }) => !broken.has(name) && versions.length <= 1 && perThreadSymbol === undefined,
  )
  if (first !== undefined && second !== undefined) {
    wrong.library.set(first.name, { ...first, ...identityOf(second) })
    wrong.library.set(second.name, { ...second, ...identityOf(first) })
    for (const { name } of [first, second]) broken.set(name, 'another function under the name')
  }
  const withWrong = (side: 'library' | 'expectation'): LibrarySpecFile => ({
    ...spec,
    functions: spec.functions.map((entry) => wrong[side].get(entry.name) ?? entry),
  })
  return { library: withWrong('library'), expectation: withWrong('expectation'), broken }
}
