import type { History } from '../spec/history.js'
import type { ParameterSpec } from '../spec/types.js'

/** A parameter that says how many elements other parameters have. */
const countName =
  /^(p?[nN]um(Options|JitOptions|LibraryOptions|Params|Attributes|Attrs|Dependencies|DependentNodes|Edges|Nodes|RootNodes|Ops|ExtSems|Kernels|Functions|Devices|PrefetchLocs|elems)|count|cudaDeviceCount|nbGroups|nbResources|len|ndev|nId|nDesc|excludeRanksCount|numHeaders|tensorRank|nelems?|nreduce|numelems)$/

/** Parameters with as many elements as a count beside them says. */
const elementsName =
  /^(p?(dependencies|dependentNodes|rootNodes|nodes)|from|to|edgeData|dependencyData|(jit|library)?[oO]ptions?(Values)?|attributes|attrs|attrs?Idxs|data|dataSizes|sizes|dptrs|dsts|srcs|prefetchLocs|prefetchLocIdxs|opList|params?Array|extSemArray|mapInfoList|launchParamsList|resources|kernels|functions|operations|capabilities|pCudaDevices|globalDim|globalStrides|boxDim|elementStrides|pixelBox(Lower|Upper)Corner|device_arr|devlist|commIds|excludeRanksList|signalDescs|descList|headers|includeNames|dest|source|ivars|indices|status|cmp_values|src|dst|cmp_value)$/i

/** Parameters with one element, whatever is counted beside them. */
const singleName =
  /^(ph?Graph(Node|Exec|_out)?|graph_out|nodeParams|p?(copy|memset|mem|kernel|host|node)?Params|library|module|stateOut|pctx|phDesc|(new)?comm|config|uniqueId|prog|handle|errorIndex|failIdx|captureStatus_out|id_out|dependencies_out|edgeData_out|location|prop|input|remaining|pHandle|p\w*ArrayDesc|sig_addr|pCudaDeviceCount|pGraphNode|phErrorNode|numBlocks|size|tensorMap)$/i

/** Parameters that the rules for names get wrong. */
const settled: Readonly<Record<string, boolean>> = {
  'cuMemSetAccess.desc': true,
  'cuMemPoolSetAccess.map': true,
  'cuDevSmResourceSplitByCount.result': true,
  'ncclCommInitAll.comm': true,
  // As many as nvrtcGetNumSupportedArchs says.
  'nvrtcGetSupportedArchs.supportedArchs': true,
  // As many as the kernel has parameters, which no argument says.
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
 * Whether a pointer parameter has as many elements as another argument says, and so perhaps none. C does not tell, so
 * names do. A name in a function with a count that no rule knows is taken for an array, which refuses least.
 */
export function isArray(
  functionName: string,
  parameters: readonly ParameterSpec[],
  parameter: ParameterSpec,
  history: History,
): boolean {
  const known = settled[`${functionName.replace(/_v\d+$/, '')}.${parameter.name}`]
  if (known !== undefined) return known
  if (!parameters.some((other) => other !== parameter && countName.test(other.name))) return false
  if (countName.test(parameter.name) || singleName.test(parameter.name)) return false
  if (elementsName.test(parameter.name)) return true
  const problem = `${functionName}: no rule in facts/arrays.ts tells whether ${parameter.name} is one or as many as are counted`
  return history.guess(functionName, problem, true)
}

/** Structs with a size field, with their size in the first version: the least memory that is accepted. */
export const firstSizes: Readonly<Record<string, number>> = {
  // NCCL 2.14: size, magic, version and blocking.
  ncclConfig_t: 24,
  // NCCL 2.29.2, up to a ginType of one byte.
  ncclCommProperties: 40,
  // NCCL 2.28.3, without size and version.
  ncclDevCommRequirements: 24,
}

/** Memory of a fixed length that C's type does not show, in bytes. */
export const fixedSizes: Readonly<Record<string, number>> = {
  'cuDeviceGetLuid.luid': 8,
  'cuTexRefGetBorderColor.pBorderColor': 16,
  'cuTexRefSetBorderColor.pBorderColor': 16,
  // NVSHMEM_MAX_NAME_LEN
  'nvshmem_info_get_name.name': 256,
}
