import { type Diagnostic, parseLog } from '@shoal/nvrtc/basics'
import { inspectKey, inspectLine, PublicObject, requireMade } from '@shoal/types'

/** What a link gave, as plain data. */
export interface LinkedData {
  readonly cubin: Uint8Array | undefined
  readonly ptx: string | undefined
  readonly ltoIr: Uint8Array | undefined
  readonly log: string
}

/** The code that a link gave. Made by `Linker.link`. */
export class Linked extends PublicObject {
  /** Code for the architecture. Absent where PTX was asked for. */
  readonly cubin: Uint8Array | undefined
  /** With the option `ptx`. */
  readonly ptx: string | undefined
  /** The inputs' LTO-IR as one, from 13.4 on; with `linkTimeOptimization`. */
  readonly ltoIr: Uint8Array | undefined
  /** What the linker wrote. */
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

  /** What a module is loaded from: the cubin, or PTX. */
  get image(): string | Uint8Array {
    return this.cubin ?? (this.ptx as string)
  }

  override [inspectKey](): string {
    const kinds = (['cubin', 'ptx', 'ltoIr'] as const).filter((kind) => this[kind] !== undefined)
    return inspectLine('Linked', { has: kinds.join(', ') })
  }
}
