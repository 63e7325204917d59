import type { OptionRules } from '@shoal/nvrtc/basics'

/** Options of a link. nvJitLink's defaults apply to omitted options. */
export interface LinkOptions {
  /** Target architecture: `'sm_90'` (`-arch`). */
  readonly architecture: `${'compute' | 'sm'}_${number}${'' | 'a' | 'f'}`
  /** Optimises LTO-IR across its inputs (`-lto`). */
  readonly linkTimeOptimization?: boolean | undefined
  /** Makes PTX instead of a cubin; requires `linkTimeOptimization` (`-ptx`). */
  readonly ptx?: boolean | undefined
  /** Makes code that can be linked again (`-r`). */
  readonly relocatable?: boolean | undefined
  /** Optimisation level from 0 to 3 (`-O`). */
  readonly optimizationLevel?: number | undefined
  /** Adds debug information (`-g`). */
  readonly deviceDebug?: boolean | undefined
  /** Adds line numbers for profilers (`-lineinfo`). */
  readonly lineInfo?: boolean | undefined
  /** Flushes denormal values to zero (`-ftz`). */
  readonly ftz?: boolean | undefined
  /** Rounds divisions as in IEEE 754 (`-prec-div`). */
  readonly precDiv?: boolean | undefined
  /** Rounds square roots as in IEEE 754 (`-prec-sqrt`). */
  readonly precSqrt?: boolean | undefined
  /** Contracts multiplications and additions to fused operations (`-fma`). */
  readonly fma?: boolean | undefined
  /** Maximum number of registers per thread (`-maxrregcount`). */
  readonly maxRegisters?: number | undefined
  /** Kernels that the program uses; the linker omits code that only other kernels need (`-kernels-used`). */
  readonly kernelsUsed?: readonly string[] | undefined
  /** Variables that the host uses (`-variables-used`). */
  readonly variablesUsed?: readonly string[] | undefined
  /** Omits unused variables (`-optimize-unused-variables`). */
  readonly optimizeUnusedVariables?: boolean | undefined
  /** Number of threads that optimise; 0 means one per processor (`-split-compile`). */
  readonly splitCompile?: number | undefined
  /** Like `splitCompile`, with separate code per thread (`-split-compile-extended`). */
  readonly splitCompileExtended?: number | undefined
  /** Density of jump tables from 0 to 101, in percent (`-jump-table-density`). */
  readonly jumpTableDensity?: number | undefined
  /** Logs the steps of the link (`-verbose`). */
  readonly verbose?: boolean | undefined
  /** Logs the time of the link (`-time`). */
  readonly time?: boolean | undefined
  /** Options of the assembler (`-Xptxas`). */
  readonly ptxasOptions?: readonly string[] | undefined
  /** Options of the optimizer (`-Xnvvm`). */
  readonly nvvmOptions?: readonly string[] | undefined
  /** Further nvJitLink options, placed after all others. */
  readonly raw?: readonly string[] | undefined
}

export const linkRules: OptionRules<LinkOptions> = {
  architecture: ['text', '-arch='],
  linkTimeOptimization: ['switch', '-lto'],
  ptx: ['switch', '-ptx'],
  relocatable: ['switch', '-r'],
  optimizationLevel: ['integer', '-O', 0, 3],
  deviceDebug: ['switch', '-g'],
  lineInfo: ['switch', '-lineinfo'],
  ftz: ['boolean', '-ftz='],
  precDiv: ['boolean', '-prec-div='],
  precSqrt: ['boolean', '-prec-sqrt='],
  fma: ['boolean', '-fma='],
  maxRegisters: ['integer', '-maxrregcount=', 1, 255],
  kernelsUsed: ['texts', '-kernels-used='],
  variablesUsed: ['texts', '-variables-used='],
  optimizeUnusedVariables: ['switch', '-optimize-unused-variables'],
  splitCompile: ['integer', '-split-compile=', 0, 1024],
  splitCompileExtended: ['integer', '-split-compile-extended=', 0, 1024],
  jumpTableDensity: ['integer', '-jump-table-density=', 0, 101],
  verbose: ['switch', '-verbose'],
  time: ['switch', '-time'],
  ptxasOptions: ['texts', '-Xptxas='],
  nvvmOptions: ['texts', '-Xnvvm='],
  raw: ['texts', ''],
}
