import { inspectKey, inspectLine, PublicObject, requireMade, requireText } from '@shoal/types'
import type { CompiledData, Origin } from '../compilation/data.js'
import { type Diagnostic, parseLog } from '../log/diagnostic.js'

/**
 * Compiled code of a program, made by `Program.compile`.
 *
 * @example
 * ```ts
 * const compiled = await program.compile({ architecture: 'sm_90' })
 * using module = await Module.load(device, compiled.image)
 * ```
 */
export class Compiled extends PublicObject {
  /** The program's name. */
  readonly name: string
  /** PTX. Absent if LTO-IR or OptiX IR was requested. */
  readonly ptx: string | undefined
  /** Code for one architecture, if the target is an `sm_…`. */
  readonly cubin: Uint8Array | undefined
  /** LTO-IR for a linker, with `linkTimeOptimization`. */
  readonly ltoIr: Uint8Array | undefined
  /** OptiX IR, with `optixIr`. */
  readonly optixIr: Uint8Array | undefined
  /** The compiler's log: warnings, and output that `ptxasOptions` request. */
  readonly log: string
  /** Whether this call compiled the program, or a cache contained the result. */
  readonly origin: Origin
  /** Why the cache on disk could not be read or written. The result is still valid. */
  readonly cacheProblem: string | undefined
  /**
   * Heap bytes that a precompiled header needs, if the heap was too small.
   *
   * See `setPchHeapSize`.
   */
  readonly pchHeapRequired: number | undefined
  readonly #lowered: Readonly<Record<string, string>>

  /** @internal */
  constructor(name: string, data: CompiledData, origin: Origin, cacheProblem?: string) {
    requireMade(data?.log, 'Compiled', 'Program.compile', 'string')
    super()
    this.name = name
    this.ptx = data.ptx
    // Each result gets a copy, because the cache returns its bytes again.
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

  /** Code for `Module.load`: the cubin, or the PTX if there is no cubin. @throws RangeError if neither exists */
  get image(): string | Uint8Array {
    const image = this.cubin ?? this.ptx
    if (image === undefined)
      throw new RangeError('Compiled.image: linkTimeOptimization, optixIr and syntaxOnly must be left out for it')
    return image
  }

  /**
   * Returns the name of a name expression in the code (`nvrtcGetLoweredName`).
   *
   * @throws RangeError for an expression that is not in the program's `nameExpressions`; TypeError
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
