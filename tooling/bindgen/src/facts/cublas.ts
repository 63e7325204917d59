// Facts about cuBLAS that its headers only tell by names.
import type { History } from '../spec/history.js'
import type { Direction } from '../spec/types.js'

/** Directions of pointers without `const`. The first pattern that matches `function.parameter` applies. */
const directions: readonly [RegExp, Direction][] = [
  [/^cublas(Set|Get)(Vector|Matrix)\w*\.(devicePtr|hostPtr|y|B)$/, 'out'],
  [/^cublas\w*[cC]opy\w*\.y$/, 'out'],
  [/\.(x|y|d1|d2|x1|workspace)$/, 'inout'],
  [/^cublas[SDCZ]rotg\w*\.[ab]$|^cublasRotgEx\w*\.[ab]$/, 'inout'],
  [/^cublas([SDCZ](trmm|geam|dgmm)|Uint8gemmBias|LtMatrixTransform)\w*\.C$/, 'out'],
  [/^cublas[SDCZ](tpttr|trttp)\w*\.AP?$/, 'out'],
  [/\.(A|AP|B|C)$/, 'inout'],
  [/^cublasLtMatmulAlgoConfigSetAttribute\.algo$/, 'inout'],
  [/^cublas(Set|LtLoggerSetFile)\w*\./, 'in'],
]

/** The direction of a pointer to something that is not constant. */
export function cublasDirection(functionName: string, parameter: string): Direction {
  return directions.find(([pattern]) => pattern.test(`${functionName}.${parameter}`))?.[1] ?? 'out'
}

/** Vectors, matrices and lists, whose sizes are other arguments and may be zero. All other pointers have one target. */
export const cublasArrays = /^(x|y|A|AP|B|C|P|Ainv|info|devIpiv|group_size|\w*Array|\w*array)$/

/** The five parameters of a modified Givens rotation, in bytes. */
export const cublasSizes: Readonly<Record<string, number>> = Object.fromEntries(
  [
    ['S', 4],
    ['D', 8],
  ].flatMap(([type, bytes]) =>
    ['rotm_v2', 'rotm_v2_64', 'rotmg_v2', 'rotmg_v2_64'].map((name) => [
      `cublas${type}${name}.param`,
      5 * Number(bytes),
    ]),
  ),
)

/** The subject of each function, because the headers have no groups. */
const subjects: readonly [RegExp, string][] = [
  [/^cublasLtMatmul(?!Desc|Preference)/, 'matmul'],
  [/^cublasLt\w*(Layout|Desc|Preference|Transform)/, 'descriptors'],
  [/^cublas(Lt)?(Create|Destroy|Get(?!r[fis])|Set|Logger|Xerbla|Disable|Heuristics)/, 'helpers'],
  [/gemvBatched|gemvStrided/i, 'batched_vectors'],
  [/(getr|matinv|geqrf|gels|trsm)\w*Batched/i, 'batched_solvers'],
  [/Grouped/, 'grouped_products'],
  [/gemm\w*Batched/i, 'batched_products'],
  [/gemm/i, 'products'],
  [/(geam|dgmm|tpttr|trttp|trsm|trmm)/, 'matrices'],
  [/(sy|he)mm/, 'symmetric_products'],
  [/(sy|he)r(2?kx?|kEx|k3mEx)/i, 'rank_k'],
  [/(gemv|gbmv|symv|hemv|sbmv|hbmv|spmv|hpmv)/, 'matrix_vector'],
  [/t[rbp](mv|sv)/, 'triangular'],
  [/(ger[uc]?|syr2?|her2?|spr2?|hpr2?)(_64)?$/, 'rank_one'],
  [/rot/i, 'rotations'],
  [/(nrm2|dot|asum|amax|amin)/i, 'reductions'],
  [/./, 'vectors'],
]

/** The subject of a function, with its width for counts of 64 bits. */
export function cublasGroup(name: string): string {
  const [, subject] = subjects.find(([pattern]) => pattern.test(name)) as [RegExp, string]
  return name.endsWith('_64') ? `${subject}_64` : subject
}

/** Why declared functions are not bound. */
export const inlineReason = 'defined in the header: it passes the size of a descriptor to a function that is bound'
export const unexported: Readonly<Record<string, string>> = {
  cublasLtDisableCpuInstructionsSetMask: 'declared, but only the static library has it',
}

/** Why symbols that other headers declare are not bound. */
export const otherHeaders: Readonly<Record<string, string>> = {
  'cublas.h': 'the interface without handles, of cublas.h; cublas_v2.h replaces it',
  'cublasXt.h': 'of cublasXt.h: one product on several GPUs, from host memory',
}

/** Why symbols that no header declares are not bound. */
const undeclared: readonly [RegExp, string][] = [
  [/^cublasLt/, 'no header declares it; libcublas calls such functions'],
  [/^cublas([GS]et(Backdoor|EnvironmentMode)|[SDCZ]bdmm)/, 'no header declares it, and what it is for is not known'],
]

export function undeclaredReason(symbol: string, history: History): string {
  const reason = undeclared.find(([pattern]) => pattern.test(symbol))?.[1]
  const problem = `no header of cuBLAS declares ${symbol}, and no rule in facts/cublas.ts explains it`
  return reason ?? history.guess(symbol, problem, 'no header declares it, and what it is for is not known')
}
