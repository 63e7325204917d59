import { NativeMemory } from '@shoal/ffi'
import { type OptionKeys, optionalBoolean, requireInteger, requireOptions } from '@shoal/types'

/** How the driver compiles PTX; of no effect on binary code. */
export interface JitOptions {
  /** The most registers a thread may use. */
  readonly maxRegisters?: number | undefined
  /** 0 (none) to 4 (most, the default). */
  readonly optimizationLevel?: number | undefined
  /** Debug information, which turns optimisation off. Default: false. */
  readonly debugInfo?: boolean | undefined
  /** Line numbers for profilers. Default: false. */
  readonly lineInfo?: boolean | undefined
  /** A longer compiler log. Default: false. */
  readonly verbose?: boolean | undefined
}

const jitKeys: OptionKeys<JitOptions> = {
  maxRegisters: true,
  optimizationLevel: true,
  debugInfo: true,
  lineInfo: true,
  verbose: true,
}

// CUjit_option.
const option = {
  maxRegisters: 0,
  infoLog: 3,
  infoLogBytes: 4,
  errorLog: 5,
  errorLogBytes: 6,
  optimizationLevel: 7,
  debugInfo: 11,
  verbose: 12,
  lineInfo: 13,
} as const

const logBytes = 16 * 1024
const maximumOptions = 12

/** The option arrays of cuModuleLoadDataEx with room for its result and its two logs, all in one piece of memory. */
export class JitBlock {
  /** Receives the module handle in its first word. */
  readonly result: NativeMemory
  readonly #memory: NativeMemory
  readonly #infoOffset = maximumOptions * 12
  readonly #errorOffset = maximumOptions * 12 + logBytes
  #count = 0

  constructor(given: JitOptions, api: string) {
    const options = requireOptions<JitOptions>(given, api, jitKeys)
    const maxRegisters = optionalInteger(options.maxRegisters, api, 'maxRegisters', 1, 255)
    const level = optionalInteger(options.optimizationLevel, api, 'optimizationLevel', 0, 4)
    const debugInfo = optionalBoolean(options.debugInfo, api, 'debugInfo', false)
    const lineInfo = optionalBoolean(options.lineInfo, api, 'lineInfo', false)
    const verbose = optionalBoolean(options.verbose, api, 'verbose', false)
    this.result = NativeMemory.allocate(8)
    this.#memory = NativeMemory.allocate(maximumOptions * 12 + 2 * logBytes)
    const { address } = this.#memory
    this.#add(option.infoLog, address + BigInt(this.#infoOffset))
    this.#add(option.infoLogBytes, BigInt(logBytes))
    this.#add(option.errorLog, address + BigInt(this.#errorOffset))
    this.#add(option.errorLogBytes, BigInt(logBytes))
    if (maxRegisters !== undefined) this.#add(option.maxRegisters, BigInt(maxRegisters))
    if (level !== undefined) this.#add(option.optimizationLevel, BigInt(level))
    if (debugInfo) this.#add(option.debugInfo, 1n)
    if (lineInfo) this.#add(option.lineInfo, 1n)
    if (verbose) this.#add(option.verbose, 1n)
  }

  get count(): number {
    return this.#count
  }

  /** Address of the `void*` values; the words of the options follow them. */
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
    const bytes = this.#memory.bytes.subarray(offset, offset + logBytes)
    const end = bytes.indexOf(0)
    return new TextDecoder().decode(bytes.subarray(0, end < 0 ? bytes.length : end)).trim()
  }
}

function optionalInteger(value: unknown, api: string, name: string, least: number, most: number): number | undefined {
  return value === undefined ? undefined : requireInteger(value, api, name, least, most)
}
