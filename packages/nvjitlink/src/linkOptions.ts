import type { OptionRules } from '@shoal/nvrtc/basics'

/** How code is linked. What is left out is as nvJitLink has it. */
export interface LinkOptions {
  /** What the code is for: `'sm_90'` (`-arch`). */
  readonly architecture: `${'compute' | 'sm'}_${number}${'' | 'a' | 'f'}`
  /** Optimises LTO-IR across its inputs (`-lto`). */
  readonly linkTimeOptimization?: boolean | undefined
  /** Gives PTX instead of a cubin; with `linkTimeOptimization` (`-ptx`). */
  readonly ptx?: boolean | undefined
  /** Gives code that is linked again (`-r`). */
  readonly relocatable?: boolean | undefined
  /** From 0 to 3 (`-O`). */
  readonly optimizationLevel?: number | undefined
  /** Debug information (`-g`). */
  readonly deviceDebug?: boolean | undefined
  /** Line numbers for profilers (`-lineinfo`). */
  readonly lineInfo?: boolean | undefined
  /** Flushes denormal values to zero (`-ftz`). */
  readonly ftz?: boolean | undefined
  /** Divisions rounded as IEEE says (`-prec-div`). */
  readonly precDiv?: boolean | undefined
  /** Square roots rounded as IEEE says (`-prec-sqrt`). */
  readonly precSqrt?: boolean | undefined
  /** Contracts multiplications and additions (`-fma`). */
  readonly fma?: boolean | undefined
  /** The most registers that a thread may use (`-maxrregcount`). */
  readonly maxRegisters?: number | undefined
  /** The kernels that are used; what only others need is left out (`-kernels-used`). */
  readonly kernelsUsed?: readonly string[] | undefined
  /** The variables that are used from the host (`-variables-used`). */
  readonly variablesUsed?: readonly string[] | undefined
  /** Leaves out variables that nothing uses (`-optimize-unused-variables`). */
  readonly optimizeUnusedVariables?: boolean | undefined
  /** Threads that optimise: 0 is as many as there are processors (`-split-compile`). */
  readonly splitCompile?: number | undefined
  /** The same, with code of its own for each thread (`-split-compile-extended`). */
  readonly splitCompileExtended?: number | undefined
  /** From 0 to 101, in per cent (`-jump-table-density`). */
  readonly jumpTableDensity?: number | undefined
  /** Says in the log what was done (`-verbose`). */
  readonly verbose?: boolean | undefined
  /** Says in the log how long it took (`-time`). */
  readonly time?: boolean | undefined
  /** Options of the assembler (`-Xptxas`). */
  readonly ptxasOptions?: readonly string[] | undefined
  /** Options of the optimizer (`-Xnvvm`). */
  readonly nvvmOptions?: readonly string[] | undefined
  /** Further options as nvJitLink takes them, behind all others. */
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
