import { inspectKey, inspectLine, PublicObject, requireMade, requireText } from '@shoal/types'
import type { CompiledData, Origin } from '../compilation/data.js'
import { type Diagnostic, parseLog } from '../log/diagnostic.js'

/** The code that was made of a program. Made by `Program.compile`. */
export class Compiled extends PublicObject {
  /** The program's name. */
  readonly name: string
  /** PTX. Absent where LTO-IR or OptiX IR was asked for. */
  readonly ptx: string | undefined
  /** Code for one architecture: where that is an `sm_…`. */
  readonly cubin: Uint8Array | undefined
  /** For a linker: with `linkTimeOptimization`. */
  readonly ltoIr: Uint8Array | undefined
  /** With `optixIr`. */
  readonly optixIr: Uint8Array | undefined
  /** What the compiler wrote: warnings, and what `ptxasOptions` asked for. */
  readonly log: string
  /** Whether it was compiled now or is from the cache. */
  readonly origin: Origin
  /** Why the cache on disk could not be read or written; the result is as good. */
  readonly cacheProblem: string | undefined
  /**
   * Bytes of heap that a precompiled header would have needed, where it was not made for want of it. See
   * `setPchHeapSize`.
   */
  readonly pchHeapRequired: number | undefined
  readonly #lowered: Readonly<Record<string, string>>

  /** @internal */
  constructor(name: string, data: CompiledData, origin: Origin, cacheProblem?: string) {
    requireMade(data?.log, 'Compiled', 'Program.compile', 'string')
    super()
    this.name = name
    this.ptx = data.ptx
    // Each result has bytes of its own: those of the cache are handed out again.
    this.cubin = data.cubin?.slice()
    this.ltoIr = data.ltoIr?.slice()
    this.optixIr = data.optixIr?.slice()
    this.log = data.log
    this.origin = origin
    this.cacheProblem = cacheProblem
    this.pchHeapRequired = data.pchHeapRequired
    this.#lowered = data.lowered
  }

  /** The messages of {@link log}. */
  get diagnostics(): readonly Diagnostic[] {
    return parseLog(this.log)
  }

  /** What a module is loaded from: the cubin, or PTX where there is none. @throws RangeError where there is neither */
  get image(): string | Uint8Array {
    const image = this.cubin ?? this.ptx
    if (image === undefined)
      throw new RangeError('Compiled.image: linkTimeOptimization, optixIr and syntaxOnly must be left out for it')
    return image
  }

  /**
   * The name that a name expression of the program has in the code (`nvrtcGetLoweredName`).
   * @throws RangeError for one that the program was not made with; TypeError
   */
  lowered(expression: string): string {
    requireText(expression, 'Compiled.lowered', 'expression')
    if (!Object.hasOwn(this.#lowered, expression)) {
      const known = Object.keys(this.#lowered).map((each) => `'${each}'`)
      throw new RangeError(
        `Compiled.lowered: expression must be one of the nameExpressions of the program (${known.join(', ') || 'there are none'}), not '${expression}'`,
      )
    }
    return this.#lowered[expression] as string
  }

  /** @internal Names in the code, by name expression. */
  get _names(): Readonly<Record<string, string>> {
    return this.#lowered
  }

  override [inspectKey](): string {
    const kinds = (['ptx', 'cubin', 'ltoIr', 'optixIr'] as const).filter((kind) => this[kind] !== undefined)
    return inspectLine('Compiled', { name: this.name, has: kinds.join(', '), origin: this.origin })
  }
}
