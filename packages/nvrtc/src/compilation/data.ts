/** The complete input of one compilation. */
export interface Request {
  readonly source: string
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly nameExpressions: readonly string[]
  readonly options: readonly string[]
}

/** Result of a compilation as plain data. */
export interface CompiledData {
  readonly ptx: string | undefined
  readonly cubin: Uint8Array | undefined
  readonly ltoIr: Uint8Array | undefined
  readonly optixIr: Uint8Array | undefined
  readonly log: string
  /** Names in the compiled code, by name expression. */
  readonly lowered: Readonly<Record<string, string>>
  /** Heap bytes that a precompiled header would have needed, if the heap was too small. */
  readonly pchHeapRequired: number | undefined
}

/** Origin of a result: NVRTC, the cache of the process, or the cache on disk. */
export type Origin = 'compiler' | 'memory' | 'disk'
