import { wrongType } from '../arguments/scalars.js'
import { FeatureNotSupportedError } from '../errors/version.js'
import { CudaVersion } from './cudaVersion.js'
import { type LibraryVersion, requireVersion, type VersionedLibrary } from './libraryVersion.js'
import { NcclVersion } from './ncclVersion.js'
import { NvshmemVersion } from './nvshmemVersion.js'

/**
 * Features that depend on the version of a library.
 *
 * A version says that the library supports the feature; the device or the platform may still lack it.
 */
export const Feature = {
  // CUDA
  virtualMemory: 'virtual-memory',
  graphUpdate: 'graph-update',
  streamOrderedAllocation: 'stream-ordered-allocation',
  userObjects: 'user-objects',
  graphMemoryNodes: 'graph-memory-nodes',
  execAffinity: 'exec-affinity',
  launchAttributes: 'launch-attributes',
  graphNodeEnabling: 'graph-node-enabling',
  clusterOccupancy: 'cluster-occupancy',
  dmaBufExport: 'dma-buf-export',
  graphBatchMemoryOperations: 'graph-batch-memory-operations',
  libraryManagement: 'library-management',
  tensorMaps: 'tensor-maps',
  symbolStatus: 'symbol-status',
  multicast: 'multicast',
  coredumpAttributes: 'coredump-attributes',
  genericGraphNodes: 'generic-graph-nodes',
  conditionalNodes: 'conditional-nodes',
  graphEdgeData: 'graph-edge-data',
  captureToGraph: 'capture-to-graph',
  greenContexts: 'green-contexts',
  kernelParameterInfo: 'kernel-parameter-info',
  kernelEnumeration: 'kernel-enumeration',
  greenContextStreams: 'green-context-streams',
  contextEvents: 'context-events',
  batchDecompression: 'batch-decompression',
  batchCopies: 'batch-copies',
  processCheckpoint: 'process-checkpoint',
  logs: 'logs',
  batchPrefetch: 'batch-prefetch',
  hostMemoryPools: 'host-memory-pools',
  // NCCL
  ncclAbort: 'nccl-abort',
  ncclSendReceive: 'nccl-send-receive',
  ncclBfloat16: 'nccl-bfloat16',
  ncclAverage: 'nccl-average',
  ncclPreMultipliedSum: 'nccl-pre-multiplied-sum',
  ncclLastError: 'nccl-last-error',
  ncclConfig: 'nccl-config',
  ncclFinalize: 'nccl-finalize',
  ncclSplit: 'nccl-split',
  ncclMemory: 'nccl-memory',
  ncclGroupSimulation: 'nccl-group-simulation',
  ncclScalableInit: 'nccl-scalable-init',
  ncclFloat8: 'nccl-float8',
  ncclWindows: 'nccl-windows',
  ncclShrink: 'nccl-shrink',
  ncclAllToAll: 'nccl-all-to-all',
  ncclDeviceCommunicators: 'nccl-device-communicators',
  ncclRevoke: 'nccl-revoke',
  ncclGrow: 'nccl-grow',
  ncclOneSided: 'nccl-one-sided',
  ncclSuspend: 'nccl-suspend',
  ncclMemoryStatistics: 'nccl-memory-statistics',
  ncclParameters: 'nccl-parameters',
  // NVSHMEM
  nvshmemUniqueId: 'nvshmem-unique-id',
} as const

/** The name of a feature, such as `'nccl-windows'`. */
export type Feature = (typeof Feature)[keyof typeof Feature]

/** Properties of a feature. */
export interface FeatureInfo {
  /** The feature. */
  readonly feature: Feature
  /** The library that provides it. */
  readonly library: VersionedLibrary
  /** First version with the feature. */
  readonly since: LibraryVersion
  /** The feature in words, for messages. */
  readonly title: string
  /** A C function that came with the feature; absent if it added only a value or a data type. */
  readonly api?: string
}

type Row = readonly [title: string, version: readonly [number, number, number?], api?: string]

// The first versions are the suffixes of the function pointer types in cudaTypedefs.h.
const cuda: { readonly [feature: string]: Row } = {
  [Feature.virtualMemory]: ['virtual memory management', [10, 2], 'cuMemCreate'],
  [Feature.graphUpdate]: ['updating an instantiated graph', [10, 2], 'cuGraphExecUpdate'],
  [Feature.streamOrderedAllocation]: ['stream-ordered allocation', [11, 2], 'cuMemAllocAsync'],
  [Feature.userObjects]: ['user objects', [11, 3], 'cuUserObjectCreate'],
  [Feature.graphMemoryNodes]: ['graph memory nodes', [11, 4], 'cuGraphAddMemAllocNode'],
  [Feature.execAffinity]: ['execution affinity', [11, 4], 'cuCtxGetExecAffinity'],
  [Feature.launchAttributes]: ['launch attributes', [11, 6], 'cuLaunchKernelEx'],
  [Feature.graphNodeEnabling]: ['enabling and disabling graph nodes', [11, 6], 'cuGraphNodeSetEnabled'],
  [Feature.clusterOccupancy]: ['cluster occupancy', [11, 7], 'cuOccupancyMaxActiveClusters'],
  [Feature.dmaBufExport]: ['dma-buf export', [11, 7], 'cuMemGetHandleForAddressRange'],
  [Feature.graphBatchMemoryOperations]: ['batch memory operations in graphs', [11, 7], 'cuGraphAddBatchMemOpNode'],
  [Feature.libraryManagement]: ['library management', [12, 0], 'cuLibraryLoadData'],
  [Feature.tensorMaps]: ['tensor maps', [12, 0], 'cuTensorMapEncodeTiled'],
  [Feature.symbolStatus]: ['the status of a symbol query', [12, 0], 'cuGetProcAddress'],
  [Feature.multicast]: ['multicast objects', [12, 1], 'cuMulticastCreate'],
  [Feature.coredumpAttributes]: ['core-dump attributes', [12, 1], 'cuCoredumpSetAttribute'],
  [Feature.genericGraphNodes]: ['graph nodes of any type', [12, 2], 'cuGraphAddNode'],
  [Feature.conditionalNodes]: ['conditional graph nodes', [12, 3], 'cuGraphConditionalHandleCreate'],
  [Feature.graphEdgeData]: ['data on graph edges', [12, 3], 'cuGraphAddDependencies'],
  [Feature.captureToGraph]: ['capture into an existing graph', [12, 3], 'cuStreamBeginCaptureToGraph'],
  [Feature.greenContexts]: ['green contexts', [12, 4], 'cuGreenCtxCreate'],
  [Feature.kernelParameterInfo]: ['parameter information of kernels', [12, 4], 'cuFuncGetParamInfo'],
  [Feature.kernelEnumeration]: ['enumeration of kernels', [12, 4], 'cuLibraryEnumerateKernels'],
  [Feature.greenContextStreams]: ['streams of green contexts', [12, 5], 'cuGreenCtxStreamCreate'],
  [Feature.contextEvents]: ['events on contexts', [12, 5], 'cuCtxRecordEvent'],
  [Feature.batchDecompression]: ['batched decompression', [12, 6], 'cuMemBatchDecompressAsync'],
  [Feature.batchCopies]: ['batched copies', [12, 8], 'cuMemcpyBatchAsync'],
  [Feature.processCheckpoint]: ['process checkpoints', [12, 8], 'cuCheckpointProcessCheckpoint'],
  [Feature.logs]: ['driver logs', [12, 9], 'cuLogsRegisterCallback'],
  [Feature.batchPrefetch]: ['batched prefetches', [13, 0], 'cuMemPrefetchBatchAsync'],
  [Feature.hostMemoryPools]: ['memory pools by location', [13, 0], 'cuMemGetMemPool'],
}

// The first release with the function or the value. If a whole minor version has it, only the minor is given.
const nccl: { readonly [feature: string]: Row } = {
  [Feature.ncclAbort]: ['aborting a communicator', [2, 4], 'ncclCommAbort'],
  [Feature.ncclSendReceive]: ['point-to-point communication', [2, 7], 'ncclSend'],
  [Feature.ncclBfloat16]: ['the data type bfloat16', [2, 10]],
  [Feature.ncclAverage]: ['the reduction "average"', [2, 10]],
  [Feature.ncclPreMultipliedSum]: ['the reduction "pre-multiplied sum"', [2, 11], 'ncclRedOpCreatePreMulSum'],
  [Feature.ncclLastError]: ['the text of the last error', [2, 13], 'ncclGetLastError'],
  [Feature.ncclConfig]: ['communicator configuration', [2, 14], 'ncclCommInitRankConfig'],
  [Feature.ncclFinalize]: ['finalizing a communicator', [2, 14], 'ncclCommFinalize'],
  [Feature.ncclSplit]: ['splitting a communicator', [2, 18], 'ncclCommSplit'],
  [Feature.ncclMemory]: ['memory allocation and registration', [2, 19], 'ncclMemAlloc'],
  [Feature.ncclGroupSimulation]: ['simulation of a group', [2, 22], 'ncclGroupSimulateEnd'],
  [Feature.ncclScalableInit]: ['initialisation with several unique ids', [2, 23], 'ncclCommInitRankScalable'],
  [Feature.ncclFloat8]: ['the 8-bit float data types', [2, 24]],
  [Feature.ncclWindows]: ['memory windows', [2, 27], 'ncclCommWindowRegister'],
  [Feature.ncclShrink]: ['shrinking a communicator', [2, 27], 'ncclCommShrink'],
  [Feature.ncclAllToAll]: ['all-to-all, gather and scatter', [2, 28], 'ncclAlltoAll'],
  [Feature.ncclDeviceCommunicators]: ['device communicators', [2, 28], 'ncclDevCommCreate'],
  [Feature.ncclRevoke]: ['revoking a communicator', [2, 28, 7], 'ncclCommRevoke'],
  [Feature.ncclGrow]: ['growing a communicator', [2, 29], 'ncclCommGrow'],
  [Feature.ncclOneSided]: ['one-sided communication', [2, 29], 'ncclPutSignal'],
  [Feature.ncclSuspend]: ['suspending a communicator', [2, 29, 7], 'ncclCommSuspend'],
  [Feature.ncclMemoryStatistics]: ['memory statistics', [2, 29, 7], 'ncclCommMemStats'],
  [Feature.ncclParameters]: ['reading parameters', [2, 30], 'ncclParamBind'],
}

const nvshmem: { readonly [feature: string]: Row } = {
  [Feature.nvshmemUniqueId]: ['initialisation by unique id', [2, 11], 'nvshmemx_get_uniqueid'],
}

const libraryTitle: { readonly [L in VersionedLibrary]: string } = { cuda: 'CUDA', nccl: 'NCCL', nvshmem: 'NVSHMEM' }

let table: ReadonlyMap<Feature, FeatureInfo> | undefined

// Made on first use, so that an import does not pay for it.
function features(): ReadonlyMap<Feature, FeatureInfo> {
  table ??= new Map([
    ...rows('cuda', cuda, ([major, minor]) => CudaVersion.of(major, minor)),
    ...rows('nccl', nccl, (parts) => NcclVersion.of(...parts)),
    ...rows('nvshmem', nvshmem, (parts) => NvshmemVersion.of(...parts)),
  ])
  return table
}

function rows(
  library: VersionedLibrary,
  entries: { readonly [feature: string]: Row },
  version: (parts: Row[1]) => LibraryVersion,
): [Feature, FeatureInfo][] {
  return Object.entries(entries).map(([name, [title, since, api]]) => {
    const feature = name as Feature
    return [
      feature,
      Object.freeze({ feature, library, since: version(since), title, ...(api === undefined ? {} : { api }) }),
    ]
  })
}

/**
 * Returns the properties of a feature.
 *
 * @throws TypeError when `feature` is not one of `Feature`
 */
export function featureInfo(feature: Feature): FeatureInfo {
  return infoOf(feature, 'featureInfo')
}

function infoOf(feature: Feature, api: string): FeatureInfo {
  const info = features().get(feature)
  if (info === undefined) {
    throw wrongType(api, 'feature', `one of ${[...features().keys()].join(', ')}`, feature)
  }
  return info
}

/**
 * True if a version of the feature's library supports the feature.
 *
 * @param api - the function that an error names
 * @throws TypeError when `version` is of another library, or `feature` is not one of `Feature`
 */
export function supports(version: LibraryVersion, feature: Feature, api = 'supports'): boolean {
  const { library, since } = infoOf(feature, api)
  return requireVersion(version, library, api, 'version').atLeast(since)
}

/**
 * Requires a version that supports the feature.
 *
 * @param library name of the library in the error, such as `'CUDA runtime'`; default: its general name
 * @throws FeatureNotSupportedError when the version is too old
 * @throws TypeError when `version` is of another library, or `feature` is not one of `Feature`
 */
export function requireFeature(version: LibraryVersion, feature: Feature, library?: string): void {
  const info = infoOf(feature, 'requireFeature')
  if (requireVersion(version, info.library, 'requireFeature', 'version').atLeast(info.since)) return
  const name = library ?? libraryTitle[info.library]
  throw new FeatureNotSupportedError({
    library: name,
    api: info.title,
    reason: `it needs version ${info.since} or newer, and ${version} is installed. Update ${name} to use it.`,
    since: String(info.since),
    installed: String(version),
  })
}
