import { type Diagnostic, parseLog } from '@shoal/nvrtc/basics'
import { inspectKey, inspectLine, PublicObject, requireMade } from '@shoal/types'

/** Result of a link as plain data. */
export interface LinkedData {
  readonly cubin: Uint8Array | undefined
  readonly ptx: string | undefined
  readonly ltoIr: Uint8Array | undefined
  readonly log: string
}

/**
 * Linked code, made by `Linker.link`.
 *
 * @example
 * ```ts
 * const linked = await linker.link()
 * using module = await Module.load(device, linked.image)
 * ```
 */
export class Linked extends PublicObject {
  /** Code for the architecture. Absent if PTX was requested. */
  readonly cubin: Uint8Array | undefined
  /** PTX, if the option `ptx` was set. */
  readonly ptx: string | undefined
  /** The LTO-IR of all inputs, if `linkTimeOptimization` was requested. Requires nvJitLink 13.4. */
  readonly ltoIr: Uint8Array | undefined
  /** The linker's log. */
  readonly log: string

  /** @internal */
  constructor(data: LinkedData) {
    requireMade(data?.log, 'Linked', 'Linker.link', 'string')
    super()
    this.cubin = data.cubin
    this.ptx = data.ptx
    this.ltoIr = data.ltoIr
    this.log = data.log
  }

  /** The messages of {@link log}. */
  get diagnostics(): readonly Diagnostic[] {
    return parseLog(this.log)
  }

  /** Code for `Module.load`: the cubin, or the PTX if there is no cubin. */
  get image(): string | Uint8Array {
    return this.cubin ?? (this.ptx as string)
  }

  override [inspectKey](): string {
    const kinds = (['cubin', 'ptx', 'ltoIr'] as const).filter((kind) => this[kind] !== undefined)
    return inspectLine('Linked', { has: kinds.join(', ') })
  }
}
