import { NativeMemory, textIn } from '@shoal/ffi'
import { type OptionKeys, optionalBoolean, requireInteger, requireKeyOf, requireOptions } from '@shoal/types'

/** Options for the driver's compilation of PTX. Binary code ignores them. */
export interface JitOptions {
  /** Maximum number of registers per thread. */
  readonly maxRegisters?: number | undefined
  /** Optimization level from 0 (none) to 4 (highest, the default). */
  readonly optimizationLevel?: number | undefined
  /** Generates debug information, which disables optimization. Default: false. */
  readonly debugInfo?: boolean | undefined
  /** Generates line numbers for profilers. Default: false. */
  readonly lineInfo?: boolean | undefined
  /** Makes the compiler log more detailed. Default: false. */
  readonly verbose?: boolean | undefined
  /**
   * Loads that use the L1 cache: no loads (`'cg'`) or all loads (`'ca'`) (`-dlcm`). Default: `'none'`, the compiler's
   * choice.
   */
  readonly cacheMode?: 'none' | 'cg' | 'ca' | undefined
  /** Generates position-independent code. Default: false. */
  readonly positionIndependentCode?: boolean | undefined
  /**
   * Minimum number of blocks that must fit on a multiprocessor, for PTX that does not set it. Requires
   * `maxThreadsPerBlock`.
   */
  readonly minBlocksPerMultiprocessor?: number | undefined
  /** Maximum number of threads per block, for PTX that does not set it. */
  readonly maxThreadsPerBlock?: number | undefined
  /**
   * Applies `maxRegisters`, `minBlocksPerMultiprocessor` and `maxThreadsPerBlock` even if the PTX has other values.
   * Default: false.
   */
  readonly overrideDirectives?: boolean | undefined
}

/** The named options of `CUjit_option`, with their codes and values. */
const integers = {
  maxRegisters: [0, 1, 255],
  optimizationLevel: [7, 0, 4],
  minBlocksPerMultiprocessor: [31, 1, 1024],
  maxThreadsPerBlock: [32, 1, 1024],
} as const
const switches = {
  debugInfo: 11,
  verbose: 12,
  lineInfo: 13,
  positionIndependentCode: 30,
  overrideDirectives: 33,
} as const
const cacheMode = 14
const cacheModes = { none: 0, cg: 1, ca: 2 } as const
const logs = { infoLog: 3, infoLogBytes: 4, errorLog: 5, errorLogBytes: 6 } as const

export const jitKeys: OptionKeys<JitOptions> = {
  maxRegisters: true,
  optimizationLevel: true,
  debugInfo: true,
  lineInfo: true,
  verbose: true,
  cacheMode: true,
  positionIndependentCode: true,
  minBlocksPerMultiprocessor: true,
  maxThreadsPerBlock: true,
  overrideDirectives: true,
}

const logBytes = 16 * 1024
const maximumOptions = 16

/**
 * The option arrays of `cuModuleLoadDataEx` and similar functions, with cells for the result and two logs, in one piece
 * of memory.
 */
export class JitBlock {
  /** Memory whose first word receives the handle. */
  readonly result: NativeMemory
  readonly #memory: NativeMemory
  readonly #infoOffset = maximumOptions * 12
  readonly #errorOffset = maximumOptions * 12 + logBytes
  #count = 0

  /** @param given checked options; may include keys of other options */
  constructor(given: JitOptions, api: string, more: readonly (readonly [code: number, value: bigint])[] = []) {
    const entries = [...more]
    for (const [name, [code, least, most]] of Object.entries(integers)) {
      const value = given[name as keyof typeof integers]
      if (value !== undefined) entries.push([code, BigInt(requireInteger(value, api, name, least, most))])
    }
    for (const [name, code] of Object.entries(switches)) {
      if (optionalBoolean(given[name as keyof typeof switches], api, name, false)) entries.push([code, 1n])
    }
    const { cacheMode: mode } = given
    if (mode !== undefined) entries.push([cacheMode, BigInt(requireKeyOf(mode, api, 'cacheMode', cacheModes))])
    this.result = NativeMemory.allocate(8)
    this.#memory = NativeMemory.allocate(maximumOptions * 12 + 2 * logBytes)
    const { address } = this.#memory
    this.#add(logs.infoLog, address + BigInt(this.#infoOffset))
    this.#add(logs.infoLogBytes, BigInt(logBytes))
    this.#add(logs.errorLog, address + BigInt(this.#errorOffset))
    this.#add(logs.errorLogBytes, BigInt(logBytes))
    for (const [code, value] of entries) this.#add(code, value)
  }

  /** Checks and encodes options. @throws TypeError, RangeError */
  static of(given: JitOptions, api: string): JitBlock {
    return new JitBlock(requireOptions<JitOptions>(given, api, jitKeys), api)
  }

  get count(): number {
    return this.#count
  }

  /** Address of the `void*` values. The option codes follow them. */
  get values(): NativeMemory {
    return this.#memory
  }

  get options(): bigint {
    return this.#memory.address + BigInt(maximumOptions * 8)
  }

  get infoLog(): string {
    return this.#text(this.#infoOffset)
  }

  get errorLog(): string {
    return this.#text(this.#errorOffset)
  }

  dispose(): void {
    this.result.dispose()
    this.#memory.dispose()
  }

  #add(code: number, value: bigint): void {
    this.#memory.u64[this.#count] = value
    this.#memory.u32[maximumOptions * 2 + this.#count] = code
    this.#count += 1
  }

  #text(offset: number): string {
    return textIn(this.#memory.bytes.subarray(offset, offset + logBytes)).trim()
  }
}
