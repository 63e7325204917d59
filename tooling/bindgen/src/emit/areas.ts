import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'

type Library = LibrarySpecFile['library']

/** File for each documentation group. */
const driverGroups: Record<string, string> = {
  CUDA_ERROR: 'errors',
  CUDA_INITIALIZE: 'initialization',
  CUDA_VERSION: 'initialization',
  CUDA_DRIVER_ENTRY_POINT: 'initialization',
  '': 'initialization',
  CUDA_DEVICE: 'device',
  CUDA_DEVICE_DEPRECATED: 'device',
  CUDA_PRIMARY_CTX: 'context',
  CUDA_CTX: 'context',
  CUDA_CTX_DEPRECATED: 'context',
  CUDA_PEER_ACCESS: 'context',
  CUDA_MODULE: 'module',
  CUDA_MODULE_DEPRECATED: 'module',
  CUDA_LIBRARY: 'library',
  CUDA_MEM: 'memory',
  CUDA_VA: 'virtualMemory',
  CUDA_MULTICAST: 'multicast',
  CUDA_MALLOC_ASYNC: 'memoryPool',
  CUDA_UNIFIED: 'unifiedAddressing',
  CUDA_STREAM: 'stream',
  CUDA_MEMOP: 'stream',
  CUDA_EVENT: 'event',
  CUDA_EXTRES_INTEROP: 'externalResource',
  CUDA_EXEC: 'execution',
  CUDA_EXEC_DEPRECATED: 'execution',
  CUDA_OCCUPANCY: 'occupancy',
  CUDA_GRAPH: 'graph',
  CUDA_TEXREF_DEPRECATED: 'textureReference',
  CUDA_SURFREF_DEPRECATED: 'textureReference',
  CUDA_TEXOBJECT: 'textureObject',
  CUDA_SURFOBJECT: 'textureObject',
  CUDA_TENSOR_MEMORY: 'textureObject',
  CUDA_GRAPHICS: 'graphics',
  CUDA_COREDUMP: 'diagnostics',
  CUDA_LOGS: 'diagnostics',
  CUDA_CHECKPOINT: 'diagnostics',
  CUDA_GREEN_CONTEXTS: 'greenContext',
}

const runtimeGroups: Record<string, string> = {
  CUDART_DEVICE: 'device',
  CUDART_DEVICE_DEPRECATED: 'device',
  CUDART_PEER: 'device',
  CUDART_ERROR: 'errors',
  CUDART_LOGS: 'errors',
  CUDART__VERSION: 'errors',
  CUDART_STREAM: 'stream',
  CUDART_EVENT: 'event',
  CUDART_EXTRES_INTEROP: 'externalResource',
  CUDART_EXECUTION: 'execution',
  CUDART_EXECUTION_DEPRECATED: 'execution',
  CUDART_OCCUPANCY: 'execution',
  CUDART_LIBRARY: 'library',
  CUDART_DRIVER_ENTRY_POINT: 'library',
  CUDART_DRIVER: 'library',
  '': 'library',
  CUDART_MEMORY: 'memory',
  CUDART_MEMORY_DEPRECATED: 'memory',
  CUDART_UNIFIED: 'memory',
  CUDART_MEMORY_POOLS: 'memoryPool',
  CUDART_INTEROP: 'graphics',
  CUDART_TEXTURE_OBJECT: 'textureObject',
  CUDART_SURFACE_OBJECT: 'textureObject',
  CUDART_GRAPH: 'graph',
}

const ncclGroups: Record<string, string> = {
  p2p: 'pointToPoint',
  colls: 'collectives',
  group: 'group',
  ops: 'collectives',
  params: 'parameters',
  comms: 'communicator',
}

/** Groups too large for one file are split by what the functions do. */
const splits: Record<string, readonly [RegExp, string][]> = {
  memory: [
    [/^cu(da)?Memcpy/, 'copy'],
    [/^cu(da)?Memset/, 'fill'],
    [/Array/, 'array'],
    [/Ipc|PCIBus|RegisterAsync|UnregisterAsync/, 'ipc'],
  ],
  graph: [
    [/^cu(da)?GraphExec|GraphInstantiate|GraphLaunch|GraphUpload/, 'graphExecution'],
    [/^cu(da)?GraphAdd/, 'graphBuild'],
    [/Node(Get|Set|Copy)|Node$/, 'graphNode'],
  ],
}

/** Name of the file, without ending, that a function goes into. */
export function areaOf(library: Library, entry: FunctionSpec): string {
  const table = library === 'driver' ? driverGroups : library === 'runtime' ? runtimeGroups : ncclGroups
  const area = table[entry.group]
  if (area === undefined)
    throw new Error(`${entry.name}: the documentation group ${entry.group} has no file; add it to areas.ts`)
  return splits[area]?.find(([pattern]) => pattern.test(entry.name))?.[1] ?? area
}

const subjects: readonly [RegExp, string][] = [
  [/graph|node/i, 'graph'],
  [/_attribute|Attr$/, 'attributes'],
  [/^CUresult$|^cudaError$|^ncclResult/, 'results'],
  [/sem|external|ext_/i, 'externalResource'],
  [/array|texture|tex|surf|resource|tensor|format|filter|address_?mode/i, 'array'],
  [/stream|event|launch|cluster|sync|batchmemop/i, 'launch'],
  [/jit|link|library|module|func/i, 'module'],
  [/mem|multicast|ipc|pointer|access|rdma|location|copy|offset|extent|pos$/i, 'memory'],
]

/** Name of the file, without ending, that an enumeration or struct goes into. */
export function subjectOf(name: string): string {
  return subjects.find(([pattern]) => pattern.test(name))?.[1] ?? 'general'
}

/** Page of the vendor's manual. */
export function manualPage(library: Library, entry: FunctionSpec): string | undefined {
  if (library === 'nccl') {
    if (entry.group === 'params') return undefined
    return `https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/${entry.group}.html#${entry.name.toLowerCase()}`
  }
  if (entry.group === '') return undefined
  const manual = library === 'driver' ? 'cuda-driver-api' : 'cuda-runtime-api'
  return `https://docs.nvidia.com/cuda/${manual}/group__${entry.group.replaceAll('_', '__')}.html`
}
