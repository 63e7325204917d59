import { isAbsolute } from 'node:path'
import { type OptionKeys, outOfRange, requireText } from '@shoal/types'
import type { OptionRules } from './encode.js'

/**
 * A GPU architecture.
 *
 * `compute_90` makes PTX for devices of compute capability 9.0 and later. `sm_90` makes code for compute capability
 * 9.0, and PTX. The suffixes `a` and `f` select features of one device or family.
 */
export type Architecture = `${'compute' | 'sm'}_${number}${'' | 'a' | 'f'}`

/** Options of NVRTC's command line. NVRTC's defaults apply to omitted options. */
export interface CommandOptions {
  /** Target architecture (`--gpu-architecture`). */
  readonly architecture?: Architecture | undefined
  /** Makes code to be linked with other code (`--relocatable-device-code`). */
  readonly relocatableDeviceCode?: boolean | undefined
  /** Makes whole-program code that calls libcudadevrt (`--extensible-whole-program`). */
  readonly extensibleWholeProgram?: boolean | undefined
  /** Adds debug information and disables optimisation (`--device-debug`). */
  readonly deviceDebug?: boolean | undefined
  /** Adds line numbers for profilers (`--generate-line-info`). */
  readonly lineInfo?: boolean | undefined
  /** Optimises despite `deviceDebug` (`--dopt=on`). */
  readonly optimizeDebug?: boolean | undefined
  /** Compiles in less time, but makes slower code (`--Ofast-compile`). */
  readonly fastCompile?: '0' | 'min' | 'mid' | 'max' | undefined
  /** Options of the assembler, such as `'-v'` (`--ptxas-options`). */
  readonly ptxasOptions?: readonly string[] | undefined
  /** Maximum number of registers per thread (`--maxrregcount`). */
  readonly maxRegisters?: number | undefined
  /** Flushes denormal values to zero (`--ftz`). */
  readonly ftz?: boolean | undefined
  /** Rounds square roots as in IEEE 754 (`--prec-sqrt`). */
  readonly precSqrt?: boolean | undefined
  /** Rounds divisions as in IEEE 754 (`--prec-div`). */
  readonly precDiv?: boolean | undefined
  /** Contracts multiplications and additions to fused operations (`--fmad`). */
  readonly fmad?: boolean | undefined
  /** Uses fast, less exact functions; implies `ftz` and related options (`--use_fast_math`). */
  readonly useFastMath?: boolean | undefined
  /** `--extra-device-vectorization` */
  readonly extraDeviceVectorization?: boolean | undefined
  /** Lets a compilation raise the stack limit of the process (`--modify-stack-limit`). */
  readonly modifyStackLimit?: boolean | undefined
  /** Makes LTO-IR for a linker instead of PTX (`--dlink-time-opt`). */
  readonly linkTimeOptimization?: boolean | undefined
  /** Optimises LTO-IR before linking (`--gen-opt-lto`). */
  readonly genOptLto?: boolean | undefined
  /** Makes OptiX IR instead of PTX (`--optix-ir`). */
  readonly optixIr?: boolean | undefined
  /** Density of jump tables from 0 to 101, in percent (`--jump-table-density`). */
  readonly jumpTableDensity?: number | undefined
  /** `--device-stack-protector` */
  readonly deviceStackProtector?: boolean | undefined
  /** Seed of generated names (`--frandom-seed`). */
  readonly randomSeed?: string | undefined
  /** Macros: `{ BLOCK: 256, FAST: true }` (`--define-macro`); `false` omits the macro. */
  readonly defines?: Readonly<Record<string, string | number | bigint | boolean | undefined>> | undefined
  /** Macros to undefine (`--undefine-macro`). */
  readonly undefines?: readonly string[] | undefined
  /** Folders of headers (`--include-path`), searched before CUDA's own headers of the loaded NVRTC. */
  readonly includeFolders?: readonly string[] | undefined
  /** Headers to include first (`--pre-include`). */
  readonly preIncludes?: readonly string[] | undefined
  /** Does not search the folder of the source for headers (`--no-source-include`). */
  readonly noSourceInclude?: boolean | undefined
  /** `--std` */
  readonly standard?: 'c++03' | 'c++11' | 'c++14' | 'c++17' | 'c++20' | undefined
  /** `--builtin-move-forward` */
  readonly builtinMoveForward?: boolean | undefined
  /** `--builtin-initializer-list` */
  readonly builtinInitializerList?: boolean | undefined
  /** Makes and uses precompiled headers automatically (`--pch`). */
  readonly pch?: boolean | undefined
  /** File to create with a precompiled header (`--create-pch`). */
  readonly createPch?: string | undefined
  /** File of a precompiled header to use (`--use-pch`). */
  readonly usePch?: string | undefined
  /** Folder of precompiled headers (`--pch-dir`). */
  readonly pchFolder?: string | undefined
  /** Reports why a precompiled header was not used (`--pch-verbose`). */
  readonly pchVerbose?: boolean | undefined
  /** Reports that a precompiled header was made or used (`--pch-messages`). */
  readonly pchMessages?: boolean | undefined
  /** `--instantiate-templates-in-pch` */
  readonly instantiateTemplatesInPch?: boolean | undefined
  /** Disables warnings (`--disable-warnings`). */
  readonly disableWarnings?: boolean | undefined
  /** Assumes that pointer parameters of kernels do not overlap (`--restrict`). */
  readonly restrict?: boolean | undefined
  /** Treats functions without an execution space as `__device__` (`--device-as-default-execution-space`). */
  readonly deviceAsDefaultExecutionSpace?: boolean | undefined
  /** Enables the type `__int128` (`--device-int128`). */
  readonly deviceInt128?: boolean | undefined
  /** Enables the type `__float128`, from sm_100 on (`--device-float128`). */
  readonly deviceFloat128?: boolean | undefined
  /** Reports optimisations (`--optimization-info`). */
  readonly optimizationInfo?: 'inline' | undefined
  /** Whether warnings show their numbers (`--display-error-number`, `--no-display-error-number`). */
  readonly displayErrorNumber?: boolean | undefined
  /** Message numbers to report as errors (`--diag-error`). */
  readonly diagnosticErrors?: readonly number[] | undefined
  /** Message numbers to suppress (`--diag-suppress`). */
  readonly diagnosticSuppress?: readonly number[] | undefined
  /** Message numbers to report as warnings (`--diag-warn`). */
  readonly diagnosticWarnings?: readonly number[] | undefined
  /** Omits the source line from messages (`--brief-diagnostics`). */
  readonly briefDiagnostics?: boolean | undefined
  /** File for the times of the compiler's phases (`--time`). */
  readonly timeFile?: string | undefined
  /** File for a trace of the compiler's phases (`--fdevice-time-trace`). */
  readonly timeTraceFile?: string | undefined
  /** Number of threads that optimise; 0 means one per processor (`--split-compile`). */
  readonly splitCompile?: number | undefined
  /** Checks the source without output (`--fdevice-syntax-only`). */
  readonly syntaxOnly?: boolean | undefined
  /** Omits NVRTC's built-in declarations, to compile faster (`--minimal`). */
  readonly minimal?: boolean | undefined
  /** Further NVRTC options, placed after all others: `['--uumn']`. */
  readonly raw?: readonly string[] | undefined
}

/** Options of a compilation. */
export interface CompileOptions extends CommandOptions {
  /**
   * Where to cache results. Default: true.
   *
   * `true`: in the process and on disk (in `SHOAL_CACHE_FOLDER`, or `shoal` in the user's cache folder). An absolute
   * path: on disk in that folder. `false`: nowhere.
   */
  readonly cache?: boolean | string | undefined
}

/** Returns the checked `cache` option. @throws TypeError, RangeError */
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

/** Keys of {@link CompileOptions}. */
export const compileKeys = {
  ...Object.fromEntries(Object.keys(commandRules).map((key) => [key, true])),
  cache: true,
} as OptionKeys<CompileOptions>
