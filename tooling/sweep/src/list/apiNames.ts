// Names of functions, types and enumerators that the driver and the runtime both have.
import { integer, use, type Value } from './steps.js'

export const zero = integer(0)

type EnumerationMember = readonly [enumeration: string, name: string]
type Sizes = readonly [x: number, y: number, z: number]

const fields = (names: readonly [string, string, string], sizes: Sizes): Record<string, Value> =>
  Object.fromEntries(names.map((name, axis) => [name, integer(sizes[axis] as number)]))

/** `name.x`, `name.y`, `name.z`. */
const dotted = (name: string, sizes: Sizes): Record<string, Value> =>
  fields([`${name}.x`, `${name}.y`, `${name}.z`], sizes)

/** The names of one of them. */
export interface ApiNames {
  /** A function's name after `cu` or `cuda`. */
  readonly api: (name: string) => string
  /** Device 0. */
  readonly device: Value
  /** 64 unsigned bits where counters and sizes are given. */
  readonly word: string
  readonly deviceType: string
  readonly event: string
  readonly graph: string
  readonly graphExec: string
  readonly node: string
  readonly nodeType: string
  readonly edgeData: string
  readonly captureStatus: string
  readonly attributeValue: string
  readonly attributeId: string
  readonly attribute: string
  readonly launchConfig: string
  readonly clusterDimension: EnumerationMember
  /** Three dimensions, as fields of a structure. */
  readonly dim: (field: string, sizes: Sizes) => Record<string, Value>
  /** Those of a cluster, as fields of the attribute. */
  readonly clusterDim: (sizes: Sizes) => Record<string, Value>
  readonly atomicOperation: string
  readonly peerAttribute: string
  readonly pool: string
  readonly poolAttribute: string
  readonly poolProps: string
  readonly location: string
  readonly accessFlags: string
  /** Pinned memory, a device and the host, as member of an enumeration. */
  readonly pinned: EnumerationMember
  readonly onDevice: EnumerationMember
  readonly onHost: EnumerationMember
}

export const driver: ApiNames = {
  api: (name) => `cu${name}`,
  device: use('device'),
  word: 'cuuint64_t',
  deviceType: 'CUdevice',
  event: 'CUevent',
  graph: 'CUgraph',
  graphExec: 'CUgraphExec',
  node: 'CUgraphNode',
  nodeType: 'CUgraphNodeType',
  edgeData: 'CUgraphEdgeData',
  captureStatus: 'CUstreamCaptureStatus',
  attributeValue: 'CUlaunchAttributeValue',
  attributeId: 'CUlaunchAttributeID',
  attribute: 'CUlaunchAttribute',
  launchConfig: 'CUlaunchConfig',
  clusterDimension: ['CUlaunchAttributeID', 'CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION'],
  dim: (field, sizes) => fields([`${field}X`, `${field}Y`, `${field}Z`], sizes),
  clusterDim: (sizes) => dotted('value.clusterDim', sizes),
  atomicOperation: 'CUatomicOperation',
  peerAttribute: 'CUdevice_P2PAttribute',
  pool: 'CUmemoryPool',
  poolAttribute: 'CUmemPool_attribute',
  poolProps: 'CUmemPoolProps',
  location: 'CUmemLocation',
  accessFlags: 'CUmemAccess_flags',
  pinned: ['CUmemAllocationType', 'CU_MEM_ALLOCATION_TYPE_PINNED'],
  onDevice: ['CUmemLocationType', 'CU_MEM_LOCATION_TYPE_DEVICE'],
  onHost: ['CUmemLocationType', 'CU_MEM_LOCATION_TYPE_HOST'],
}

export const runtime: ApiNames = {
  api: (name) => `cuda${name}`,
  device: zero,
  word: 'unsigned long long',
  deviceType: 'int',
  event: 'cudaEvent_t',
  graph: 'cudaGraph_t',
  graphExec: 'cudaGraphExec_t',
  node: 'cudaGraphNode_t',
  nodeType: 'cudaGraphNodeType',
  edgeData: 'cudaGraphEdgeData',
  captureStatus: 'cudaStreamCaptureStatus',
  attributeValue: 'cudaLaunchAttributeValue',
  attributeId: 'cudaLaunchAttributeID',
  attribute: 'cudaLaunchAttribute',
  launchConfig: 'cudaLaunchConfig_t',
  clusterDimension: ['cudaLaunchAttributeID', 'cudaLaunchAttributeClusterDimension'],
  dim: dotted,
  clusterDim: (sizes) => dotted('val.clusterDim', sizes),
  atomicOperation: 'cudaAtomicOperation',
  peerAttribute: 'cudaDeviceP2PAttr',
  pool: 'cudaMemPool_t',
  poolAttribute: 'cudaMemPoolAttr',
  poolProps: 'cudaMemPoolProps',
  location: 'cudaMemLocation',
  accessFlags: 'cudaMemAccessFlags',
  pinned: ['cudaMemAllocationType', 'cudaMemAllocationTypePinned'],
  onDevice: ['cudaMemLocationType', 'cudaMemLocationTypeDevice'],
  onHost: ['cudaMemLocationType', 'cudaMemLocationTypeHost'],
}
