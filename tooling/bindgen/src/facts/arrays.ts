import type { History } from '../spec/history.js'
import type { ParameterSpec } from '../spec/types.js'
import { cublasArrays, cublasSizes } from './cublas.js'
import { isNvmlArray } from './nvml.js'

/** Names of parameters that count the elements of other parameters. */
const countName =
  /^(p?[nN]um(Options|JitOptions|LibraryOptions|Params|Attributes|Attrs|Dependencies|DependentNodes|Edges|Nodes|RootNodes|Ops|ExtSems|Kernels|Functions|Devices|PrefetchLocs|elems)|count|cudaDeviceCount|nbGroups|nbResources|len|ndev|nId|nDesc|excludeRanksCount|numHeaders|tensorRank|nelems?|nreduce|numelems)$/

/** Names of parameters whose number of elements is in a count parameter. */
const elementsName =
  /^(p?(dependencies|dependentNodes|rootNodes|nodes)|from|to|edgeData|dependencyData|(jit|library)?[oO]ptions?(Values)?|attributes|attrs|attrs?Idxs|data|dataSizes|sizes|dptrs|dsts|srcs|prefetchLocs|prefetchLocIdxs|opList|params?Array|extSemArray|mapInfoList|launchParamsList|resources|kernels|functions|operations|capabilities|pCudaDevices|globalDim|globalStrides|boxDim|elementStrides|pixelBox(Lower|Upper)Corner|device_arr|devlist|commIds|excludeRanksList|signalDescs|descList|headers|includeNames|dest|source|ivars|indices|status|cmp_values|src|dst|cmp_value)$/i

/** Names of parameters with one element, even next to a count parameter. */
const singleName =
  /^(ph?Graph(Node|Exec|_out)?|graph_out|nodeParams|p?(copy|memset|mem|kernel|host|node)?Params|library|module|stateOut|pctx|phDesc|(new)?comm|config|uniqueId|prog|handle|errorIndex|failIdx|captureStatus_out|id_out|dependencies_out|edgeData_out|location|prop|input|remaining|pHandle|p\w*ArrayDesc|sig_addr|pCudaDeviceCount|pGraphNode|phErrorNode|numBlocks|size|tensorMap)$/i

/** Exceptions to the rules for names. */
const settled: Readonly<Record<string, boolean>> = {
  'cuMemSetAccess.desc': true,
  'cuMemPoolSetAccess.map': true,
  'cuDevSmResourceSplitByCount.result': true,
  'ncclCommInitAll.comm': true,
  // nvrtcGetNumSupportedArchs returns the number of elements.
  'nvrtcGetSupportedArchs.supportedArchs': true,
  // One element per kernel parameter; no argument has this number.
  'cuLaunchKernel.kernelParams': true,
  'cuLaunchKernel.extra': true,
  'cuLaunchKernelEx.kernelParams': true,
  'cuLaunchKernelEx.extra': true,
  'cuLaunchCooperativeKernel.kernelParams': true,
  'cudaLaunchKernel.args': true,
  'cudaLaunchKernelExC.args': true,
  'cudaLaunchCooperativeKernel.args': true,
}

/**
 * True if another argument has the number of elements behind a pointer parameter, which may then be zero. C types do
 * not show this, so the names decide. If no rule knows the name and the function has a count, the parameter counts as
 * an array, because that refuses the fewest calls.
 */
export function isArray(
  functionName: string,
  parameters: readonly ParameterSpec[],
  parameter: ParameterSpec,
  history: History,
): boolean {
  if (functionName.startsWith('cublas')) return cublasArrays.test(parameter.name)
  const known = settled[`${functionName.replace(/_v\d+$/, '')}.${parameter.name}`]
  if (known !== undefined) return known
  if (functionName.startsWith('nvml'))
    return isNvmlArray(
      parameters.map(({ name }) => name),
      parameter.name,
    )
  if (!parameters.some((other) => other !== parameter && countName.test(other.name))) return false
  if (countName.test(parameter.name) || singleName.test(parameter.name)) return false
  if (elementsName.test(parameter.name)) return true
  const problem = `${functionName}: no rule in facts/arrays.ts tells whether ${parameter.name} is one or as many as are counted`
  return history.guess(functionName, problem, true)
}

/** Structs with a size field, and their size in the first version. Less memory is refused. */
export const firstSizes: Readonly<Record<string, number>> = {
  // NCCL 2.14: size, magic, version and blocking.
  ncclConfig_t: 24,
  // NCCL 2.29.2: up to and including ginType, which has one byte.
  ncclCommProperties: 40,
  // NCCL 2.28.3: without size and version.
  ncclDevCommRequirements: 24,
}

/** The size in bytes of memory whose fixed length the C type does not show. */
export const fixedSizes: Readonly<Record<string, number>> = {
  'cuDeviceGetLuid.luid': 8,
  'cuTexRefGetBorderColor.pBorderColor': 16,
  'cuTexRefSetBorderColor.pBorderColor': 16,
  // NVSHMEM_MAX_NAME_LEN
  'nvshmem_info_get_name.name': 256,
  ...cublasSizes,
}
