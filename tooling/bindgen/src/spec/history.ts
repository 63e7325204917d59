import { versionText } from '../emit/versions.js'
import { changedSignatures } from './changes.js'
import type { FunctionSpec, LibrarySpecFile, UnboundSpec } from './types.js'

/**
 * Facts that the committed spec has and headers do not: the first version of each function, and decisions that no rule
 * covers. While a version is added, a function that is new to the spec gets this version, and each guess is noted.
 * Otherwise, both cases stop the generator.
 */
export class History {
  readonly previous: LibrarySpecFile
  /** the version that is being added, in the library's numbering */
  readonly added: number | undefined
  /** the exports of the library that the spec is compared with, which may be older than the headers */
  readonly exported: ReadonlySet<string>
  /** one line per guess */
  readonly notes: string[] = []
  readonly #functions: ReadonlyMap<string, FunctionSpec>
  readonly #known: ReadonlySet<string>

  constructor(previous: LibrarySpecFile, exported: ReadonlySet<string>, added?: number) {
    this.previous = previous
    this.exported = exported
    this.added = added
    this.#functions = new Map(previous.functions.map((entry) => [entry.symbol, entry]))
    this.#known = new Set([
      ...previous.functions.flatMap(({ name, symbol }) => [name, symbol]),
      ...(previous.unbound ?? []).map(({ symbol }) => symbol),
    ])
  }

  function(symbol: string): FunctionSpec | undefined {
    return this.#functions.get(symbol)
  }

  /**
   * The first version of a symbol with its present signature, all its versions, and the majors with another signature.
   */
  dates(symbol: string): Pick<FunctionSpec, 'since' | 'versions' | 'otherMajors'> {
    const known = this.#functions.get(symbol)
    if (known === undefined) {
      const since = this.added ?? this.#stop(`the spec does not tell since which version there is ${symbol}`)
      return { since, versions: [since] }
    }
    const { since, versions, otherMajors } = known
    return { since, versions, ...(otherMajors === undefined ? {} : { otherMajors }) }
  }

  /**
   * Returns `value`, for a case without a rule, and notes the problem.
   * @param name the function or symbol; if the spec has it, the guess was noted when it was added
   * @throws Error for a new name if no version is being added
   */
  guess<T>(name: string, problem: string, value: T): T {
    if (this.#known.has(name)) return value
    if (this.added === undefined) this.#stop(problem)
    this.notes.push(problem)
    return value
  }

  /**
   * Adds the results of a comparison with the committed spec: majors of libcudart in which a symbol has another
   * signature, and symbols that the library exports but no header declares.
   */
  complete(spec: LibrarySpecFile): LibrarySpecFile {
    return { ...this.#withMajors(spec), unbound: this.#unboundOf(spec) }
  }

  #withMajors(spec: LibrarySpecFile): LibrarySpecFile {
    const { added, previous } = this
    if (added === undefined || spec.library !== 'runtime') return spec
    const major = (version: number) => Math.floor(version / 1000)
    const changed = new Set(changedSignatures(previous, spec))
    const functions = spec.functions.map((entry) => {
      const [first, last] = [major(entry.versions[0] ?? 0), major(added) - 1]
      if (!changed.has(entry) || last < major(previous.headerVersion)) return entry
      const otherMajors = Array.from({ length: last - Math.max(first, 11) + 1 }, (_, index) => last - index).reverse()
      return { ...entry, since: added, versions: [...entry.versions, added], otherMajors }
    })
    return { ...spec, functions }
  }

  #unboundOf({ functions, unbound = [] }: LibrarySpecFile): UnboundSpec[] {
    const bound = new Set(functions.flatMap(({ symbol, perThreadSymbol }) => [symbol, perThreadSymbol ?? symbol]))
    const rows = unbound.filter(({ symbol }) => !bound.has(symbol))
    const told = new Set(rows.map(({ symbol }) => symbol))
    for (const symbol of this.exported) {
      if (bound.has(symbol) || told.has(symbol)) continue
      const reason = 'no header declares it, and what it is for is not known'
      this.guess(symbol, `the library exports ${symbol}, which no header declares`, undefined)
      rows.push({ symbol, exported: true, nature: 'function', reason })
    }
    return rows
  }

  #stop(problem: string): never {
    const { library, headerVersion } = this.previous
    throw new Error(
      `${problem}; the spec is of ${versionText(library, headerVersion)}, and pnpm bindgen --add adds a version to it`,
    )
  }
}
