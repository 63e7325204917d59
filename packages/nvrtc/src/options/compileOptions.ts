import { isAbsolute } from 'node:path'
import { type OptionKeys, outOfRange, requireText } from '@shoal/types'
import type { OptionRules } from './encode.js'

/**
 * `compute_90` is PTX for devices of 9.0 and later; `sm_90` is code for 9.0, with PTX; `a` and `f` stand for features
 * of one device or family.
 */
export type Architecture = `${'compute' | 'sm'}_${number}${'' | 'a' | 'f'}`

/** The options of NVRTC's command line. What is left out is as NVRTC has it. */
export interface CommandOptions {
  /** What the code is for (`--gpu-architecture`). */
  readonly architecture?: Architecture | undefined
  /** Code that is linked with other code (`--relocatable-device-code`). */
  readonly relocatableDeviceCode?: boolean | undefined
  /** Whole-program code that calls into libcudadevrt (`--extensible-whole-program`). */
  readonly extensibleWholeProgram?: boolean | undefined
  /** Debug information, without optimisation (`--device-debug`). */
  readonly deviceDebug?: boolean | undefined
  /** Line numbers for profilers (`--generate-line-info`). */
  readonly lineInfo?: boolean | undefined
  /** Optimises in spite of `deviceDebug` (`--dopt=on`). */
  readonly optimizeDebug?: boolean | undefined
  /** Compiles faster, for slower code (`--Ofast-compile`). */
  readonly fastCompile?: '0' | 'min' | 'mid' | 'max' | undefined
  /** Options of the assembler, such as `'-v'` (`--ptxas-options`). */
  readonly ptxasOptions?: readonly string[] | undefined
  /** The most registers that a thread may use (`--maxrregcount`). */
  readonly maxRegisters?: number | undefined
  /** Flushes denormal values to zero (`--ftz`). */
  readonly ftz?: boolean | undefined
  /** Square roots rounded as IEEE says (`--prec-sqrt`). */
  readonly precSqrt?: boolean | undefined
  /** Divisions rounded as IEEE says (`--prec-div`). */
  readonly precDiv?: boolean | undefined
  /** Contracts multiplications and additions (`--fmad`). */
  readonly fmad?: boolean | undefined
  /** Fast, less exact functions; includes `ftz` and what goes with it (`--use_fast_math`). */
  readonly useFastMath?: boolean | undefined
  /** `--extra-device-vectorization` */
  readonly extraDeviceVectorization?: boolean | undefined
  /** Lets compilations raise the process's limit of the stack (`--modify-stack-limit`). */
  readonly modifyStackLimit?: boolean | undefined
  /** Makes LTO-IR for a linker instead of PTX (`--dlink-time-opt`). */
  readonly linkTimeOptimization?: boolean | undefined
  /** Optimises LTO-IR before it is linked (`--gen-opt-lto`). */
  readonly genOptLto?: boolean | undefined
  /** Makes OptiX IR instead of PTX (`--optix-ir`). */
  readonly optixIr?: boolean | undefined
  /** From 0 to 101, in per cent (`--jump-table-density`). */
  readonly jumpTableDensity?: number | undefined
  /** `--device-stack-protector` */
  readonly deviceStackProtector?: boolean | undefined
  /** Seed of names that are made up (`--frandom-seed`). */
  readonly randomSeed?: string | undefined
  /** Macros: `{ BLOCK: 256, FAST: true }` (`--define-macro`); `false` defines none. */
  readonly defines?: Readonly<Record<string, string | number | bigint | boolean | undefined>> | undefined
  /** Macros that are not to be defined (`--undefine-macro`). */
  readonly undefines?: readonly string[] | undefined
  /** Folders of headers (`--include-path`). CUDA's own headers beside the loaded NVRTC are searched after these. */
  readonly includeFolders?: readonly string[] | undefined
  /** Headers that are included before all else (`--pre-include`). */
  readonly preIncludes?: readonly string[] | undefined
  /** Does not look for headers in the folder of the source (`--no-source-include`). */
  readonly noSourceInclude?: boolean | undefined
  /** `--std` */
  readonly standard?: 'c++03' | 'c++11' | 'c++14' | 'c++17' | 'c++20' | undefined
  /** `--builtin-move-forward` */
  readonly builtinMoveForward?: boolean | undefined
  /** `--builtin-initializer-list` */
  readonly builtinInitializerList?: boolean | undefined
  /** Makes and uses precompiled headers by itself (`--pch`). */
  readonly pch?: boolean | undefined
  /** Makes a precompiled header, in this file (`--create-pch`). */
  readonly createPch?: string | undefined
  /** Uses the precompiled header of this file (`--use-pch`). */
  readonly usePch?: string | undefined
  /** Folder of precompiled headers (`--pch-dir`). */
  readonly pchFolder?: string | undefined
  /** Says why a precompiled header was not used (`--pch-verbose`). */
  readonly pchVerbose?: boolean | undefined
  /** Says that one was made or used (`--pch-messages`). */
  readonly pchMessages?: boolean | undefined
  /** `--instantiate-templates-in-pch` */
  readonly instantiateTemplatesInPch?: boolean | undefined
  /** No warnings (`--disable-warnings`). */
  readonly disableWarnings?: boolean | undefined
  /** Pointer parameters of kernels do not overlap (`--restrict`). */
  readonly restrict?: boolean | undefined
  /** Functions without a word are `__device__` (`--device-as-default-execution-space`). */
  readonly deviceAsDefaultExecutionSpace?: boolean | undefined
  /** The type `__int128` (`--device-int128`). */
  readonly deviceInt128?: boolean | undefined
  /** The type `__float128`, from sm_100 on (`--device-float128`). */
  readonly deviceFloat128?: boolean | undefined
  /** Says what was optimised (`--optimization-info`). */
  readonly optimizationInfo?: 'inline' | undefined
  /** Whether warnings have their numbers (`--display-error-number`, `--no-display-error-number`). */
  readonly displayErrorNumber?: boolean | undefined
  /** Numbers of messages that are errors (`--diag-error`). */
  readonly diagnosticErrors?: readonly number[] | undefined
  /** Numbers of messages that are left out (`--diag-suppress`). */
  readonly diagnosticSuppress?: readonly number[] | undefined
  /** Numbers of messages that are warnings (`--diag-warn`). */
  readonly diagnosticWarnings?: readonly number[] | undefined
  /** Messages without the line of the source (`--brief-diagnostics`). */
  readonly briefDiagnostics?: boolean | undefined
  /** A file for the times of the compiler's phases (`--time`). */
  readonly timeFile?: string | undefined
  /** A file for a trace of them (`--fdevice-time-trace`). */
  readonly timeTraceFile?: string | undefined
  /** Threads that optimise: 0 is as many as there are processors (`--split-compile`). */
  readonly splitCompile?: number | undefined
  /** Checks the source and makes nothing (`--fdevice-syntax-only`). */
  readonly syntaxOnly?: boolean | undefined
  /** Leaves out what NVRTC declares by itself, to compile faster (`--minimal`). */
  readonly minimal?: boolean | undefined
  /** Further options as NVRTC takes them, behind all others: `['--uumn']`. */
  readonly raw?: readonly string[] | undefined
}

/** How a program is compiled. */
export interface CompileOptions extends CommandOptions {
  /**
   * Whether results are kept: `true` in the process and on disk (in `SHOAL_CACHE_FOLDER`, or `shoal` in the user's
   * cache folder), an absolute path in that folder, `false` nowhere. Default: true.
   */
  readonly cache?: boolean | string | undefined
}

/** Where results are kept. @throws TypeError, RangeError */
export function requireCache(value: unknown, api: string): boolean | string {
  if (value === undefined) return true
  if (typeof value === 'boolean') return value
  const folder = requireText(value, api, 'cache')
  if (isAbsolute(folder)) return folder
  throw outOfRange(api, 'cache', 'a boolean or an absolute path', folder)
}

export const commandRules: OptionRules<CommandOptions> = {
  architecture: ['text', '--gpu-architecture='],
  relocatableDeviceCode: ['boolean', '--relocatable-device-code='],
  extensibleWholeProgram: ['switch', '--extensible-whole-program'],
  deviceDebug: ['switch', '--device-debug'],
  lineInfo: ['switch', '--generate-line-info'],
  optimizeDebug: ['switch', '--dopt=on'],
  fastCompile: ['word', '--Ofast-compile=', '0', 'min', 'mid', 'max'],
  ptxasOptions: ['texts', '--ptxas-options='],
  maxRegisters: ['integer', '--maxrregcount=', 1, 255],
  ftz: ['boolean', '--ftz='],
  precSqrt: ['boolean', '--prec-sqrt='],
  precDiv: ['boolean', '--prec-div='],
  fmad: ['boolean', '--fmad='],
  useFastMath: ['switch', '--use_fast_math'],
  extraDeviceVectorization: ['switch', '--extra-device-vectorization'],
  modifyStackLimit: ['boolean', '--modify-stack-limit='],
  linkTimeOptimization: ['switch', '--dlink-time-opt'],
  genOptLto: ['switch', '--gen-opt-lto'],
  optixIr: ['switch', '--optix-ir'],
  jumpTableDensity: ['integer', '--jump-table-density=', 0, 101],
  deviceStackProtector: ['boolean', '--device-stack-protector='],
  randomSeed: ['text', '--frandom-seed='],
  defines: ['defines', '--define-macro='],
  undefines: ['texts', '--undefine-macro='],
  includeFolders: ['texts', '--include-path='],
  preIncludes: ['texts', '--pre-include='],
  noSourceInclude: ['switch', '--no-source-include'],
  standard: ['word', '--std=', 'c++03', 'c++11', 'c++14', 'c++17', 'c++20'],
  builtinMoveForward: ['boolean', '--builtin-move-forward='],
  builtinInitializerList: ['boolean', '--builtin-initializer-list='],
  pch: ['switch', '--pch'],
  createPch: ['text', '--create-pch='],
  usePch: ['text', '--use-pch='],
  pchFolder: ['text', '--pch-dir='],
  pchVerbose: ['boolean', '--pch-verbose='],
  pchMessages: ['boolean', '--pch-messages='],
  instantiateTemplatesInPch: ['boolean', '--instantiate-templates-in-pch='],
  disableWarnings: ['switch', '--disable-warnings'],
  restrict: ['switch', '--restrict'],
  deviceAsDefaultExecutionSpace: ['switch', '--device-as-default-execution-space'],
  deviceInt128: ['switch', '--device-int128'],
  deviceFloat128: ['switch', '--device-float128'],
  optimizationInfo: ['word', '--optimization-info=', 'inline'],
  displayErrorNumber: ['flags', '--display-error-number', '--no-display-error-number'],
  diagnosticErrors: ['numbers', '--diag-error='],
  diagnosticSuppress: ['numbers', '--diag-suppress='],
  diagnosticWarnings: ['numbers', '--diag-warn='],
  briefDiagnostics: ['boolean', '--brief-diagnostics='],
  timeFile: ['text', '--time='],
  timeTraceFile: ['text', '--fdevice-time-trace='],
  splitCompile: ['integer', '--split-compile=', 0, 1024],
  syntaxOnly: ['switch', '--fdevice-syntax-only'],
  minimal: ['switch', '--minimal'],
  raw: ['texts', ''],
}

/** What {@link CompileOptions} has. */
export const compileKeys = {
  ...Object.fromEntries(Object.keys(commandRules).map((key) => [key, true])),
  cache: true,
} as OptionKeys<CompileOptions>
