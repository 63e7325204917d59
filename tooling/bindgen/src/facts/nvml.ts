// Facts about NVML that no header has.
import type { Direction, UnboundSpec } from '../spec/types.js'

const earlierName = 'the name of an excluded GPU before CUDA 11.3; the function is bound under its present name'

/** Symbols that the library exports and that are not bound. */
export const unboundNvml: readonly UnboundSpec[] = [
  { symbol: 'nvmlGetBlacklistDeviceCount', exported: true, nature: 'function', reason: earlierName },
  { symbol: 'nvmlGetBlacklistDeviceInfoByIndex', exported: true, nature: 'function', reason: earlierName },
  {
    symbol: 'nvmlInternalGetExportTable',
    exported: true,
    nature: 'function',
    reason: 'no header declares it, and what it is for is not known',
  },
]

const countName = /(count|size)$/i
const elementsName =
  /^(hwbcEntries|deviceArray|devices|clocksMHz|sessionInfos?|infos|samples|pids|addresses|timestamps|utilization(Samples)?|vgpuTypeIds|vgpuInstances|placements|gpuInstances|computeInstances|values|cpuSet|nodeSet)$/

/** True if another argument has the number of elements behind a pointer parameter. */
export function isNvmlArray(others: readonly string[], name: string): boolean {
  return elementsName.test(name) && others.some((other) => countName.test(other))
}

/** Functions that only read what their pointers point to. */
const reads = /(?<!Event)Set(?!Create|Wait|Free)|Clear|Register|Remove|Discover|Modify|Update|Activate/

/** Exceptions to the rules. */
const settled: Readonly<Record<string, Direction>> = {
  'nvmlDeviceSetMigMode.activationStatus': 'out',
  'nvmlDeviceGetAccountingBufferSize.bufferSize': 'out',
  'nvmlDeviceQueryDrainState.pciInfo': 'in',
  // Each element names a field, and the library adds its value.
  'nvmlDeviceGetFieldValues.values': 'inout',
  'nvmlDeviceClearFieldValues.values': 'inout',
  'nvmlVgpuInstanceGetGpuPciId.length': 'inout',
  'nvmlGetVgpuCompatibility.vgpuMetadata': 'in',
  'nvmlGetVgpuCompatibility.pgpuMetadata': 'in',
  'nvmlDeviceReadWritePRM_v1.buffer': 'inout',
  'nvmlDeviceReadPRMCounters_v1.counterList': 'inout',
  'nvmlSystemGetCPER_v1.cper': 'inout',
}

/**
 * The direction of a pointer parameter that is not const.
 * @param isVersioned it points to a struct whose version the caller writes
 * @param counts it points to the number of elements or bytes of another parameter
 */
export function nvmlDirection(functionName: string, name: string, isVersioned: boolean, counts: boolean): Direction {
  const known = settled[`${functionName}.${name}`]
  if (known !== undefined) return known
  if (isVersioned || counts) return 'inout'
  return !/Get|Query/.test(functionName) && reads.test(functionName) ? 'in' : 'out'
}
