import { libraryRecord } from '../../../libraries/index.mjs'
import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'
import { isNvmlName, nvmlArea, nvmlEnumFile, nvmlStructFile } from './nvmlAreas.js'
import { camelCase, isNvshmemName, nvshmemArea, nvshmemEnumFile, nvshmemStructFile } from './nvshmemAreas.js'

type Library = LibrarySpecFile['library']

/** The file for each documentation group. */
const driverGroups: Record<string, string> = {
  CUDA_ERROR: 'device',
  CUDA_INITIALIZE: 'device',
  CUDA_VERSION: 'device',
  CUDA_DRIVER_ENTRY_POINT: 'device',
  '': 'device',
  CUDA_DEVICE: 'device',
  CUDA_DEVICE_DEPRECATED: 'device',
  CUDA_PRIMARY_CTX: 'context',
  CUDA_CTX: 'context',
  CUDA_CTX_DEPRECATED: 'context',
  CUDA_PEER_ACCESS: 'context',
  CUDA_MODULE: 'module',
  CUDA_MODULE_DEPRECATED: 'module',
  CUDA_LIBRARY: 'module',
  CUDA_MEM: 'memory',
  CUDA_VA: 'virtualMemory',
  CUDA_MULTICAST: 'virtualMemory',
  CUDA_MALLOC_ASYNC: 'memory',
  CUDA_UNIFIED: 'virtualMemory',
  CUDA_STREAM: 'stream',
  CUDA_MEMOP: 'stream',
  CUDA_EVENT: 'stream',
  CUDA_EXTRES_INTEROP: 'interoperability',
  CUDA_EXEC: 'execution',
  CUDA_EXEC_DEPRECATED: 'execution',
  CUDA_OCCUPANCY: 'execution',
  CUDA_GRAPH: 'graph',
  CUDA_TEXREF_DEPRECATED: 'texture',
  CUDA_SURFREF_DEPRECATED: 'texture',
  CUDA_TEXOBJECT: 'texture',
  CUDA_SURFOBJECT: 'texture',
  CUDA_TENSOR_MEMORY: 'texture',
  CUDA_GRAPHICS: 'interoperability',
  CUDA_COREDUMP: 'device',
  CUDA_LOGS: 'device',
  CUDA_CHECKPOINT: 'device',
  CUDA_GREEN_CONTEXTS: 'context',
  CUDA_PROFILER: 'device',
  CUDA_PROFILER_DEPRECATED: 'device',
  CUDA_GL: 'graphicsInterfaces',
  CUDA_GL_DEPRECATED: 'graphicsInterfaces',
  CUDA_EGL: 'graphicsInterfaces',
  CUDA_VDPAU: 'graphicsInterfaces',
}

/** The file of a superseded ABI, by the file of the function that superseded it. */
const earlierFiles: Record<string, string> = {
  copy: 'earlierCopy',
  memory: 'earlierMemory',
  virtualMemory: 'earlierMemory',
  texture: 'earlierMemory',
  module: 'earlierMemory',
  graph: 'earlierExecution',
  graphNode: 'earlierExecution',
  stream: 'earlierExecution',
}

const runtimeGroups: Record<string, string> = {
  CUDART_DEVICE: 'device',
  CUDART_DEVICE_DEPRECATED: 'device',
  CUDART_PEER: 'device',
  CUDART_ERROR: 'device',
  CUDART_LOGS: 'device',
  CUDART__VERSION: 'device',
  CUDART_STREAM: 'stream',
  CUDART_EVENT: 'stream',
  CUDART_EXTRES_INTEROP: 'interoperability',
  CUDART_EXECUTION: 'execution',
  CUDART_EXECUTION_DEPRECATED: 'execution',
  CUDART_OCCUPANCY: 'execution',
  CUDART_LIBRARY: 'execution',
  CUDART_DRIVER_ENTRY_POINT: 'execution',
  CUDART_DRIVER: 'execution',
  '': 'execution',
  CUDART_MEMORY: 'memory',
  CUDART_MEMORY_DEPRECATED: 'memory',
  CUDART_UNIFIED: 'memory',
  CUDART_MEMORY_POOLS: 'memory',
  CUDART_INTEROP: 'interoperability',
  CUDART_TEXTURE_OBJECT: 'texture',
  CUDART_SURFACE_OBJECT: 'texture',
  CUDART_GRAPH: 'graph',
  CUDART_PROFILER: 'device',
  CUDART_OPENGL: 'graphicsInterfaces',
  CUDART_OPENGL_DEPRECATED: 'graphicsInterfaces',
  CUDART_EGL: 'graphicsInterfaces',
  CUDART_VDPAU: 'graphicsInterfaces',
}

const ncclGroups: Record<string, string> = {
  p2p: 'collectives',
  colls: 'collectives',
  group: 'collectives',
  ops: 'collectives',
  params: 'parameters',
  device: 'deviceApi',
  device_setup: 'deviceApi',
  comms: 'communicator',
}

/** Large groups are split by the functions' subject. */
const splits: Record<string, readonly [RegExp, string][]> = {
  memory: [[/^cu(da)?Memcpy|Array/, 'copy']],
  graph: [
    [/^cu(da)?GraphExec|GraphInstantiate|GraphLaunch|GraphUpload/, 'graphNode'],
    [/^(?!cu(da)?GraphAdd).*(Node(Get|Set|Copy)|Node$)/, 'graphNode'],
  ],
}

/** The files of documentation groups. A library without an entry gets one file per group. */
const groups: Partial<Record<Library, Record<string, string>>> = {
  driver: driverGroups,
  runtime: runtimeGroups,
  nccl: ncclGroups,
}

/** The name, without extension, of a function's file. A group that is in no table gets its own file. */
export function areaOf(library: Library, entry: FunctionSpec): string {
  if (library === 'nvshmem') return nvshmemArea(entry)
  if (library === 'nvml' && entry.supersededBy === undefined) return nvmlArea(entry.name)
  const table = groups[library] ?? {}
  const area = table[entry.group] ?? camelCase(entry.group.replace(/^CUDA(RT)?_/, ''))
  const file = splits[area]?.find(([pattern]) => pattern.test(entry.name))?.[1] ?? area
  return entry.supersededBy === undefined ? file : (earlierFiles[file] ?? 'earlier')
}

const subjects: readonly [RegExp, string][] = [
  [/_v1$/, 'earlier'],
  [/^cublasLt\w*(Tile|Shape|Stages)/, 'shapes'],
  [/^nccl\w+_v\d{5}$/, 'earlierLayouts'],
  [/^nccl(Dev|Team|Gin|Lsa|LLA2A|Multimem|Resource|CommProperties|NetDevice)/, 'deviceApi'],
  [/^CU(GL|egl|output_mode)|^cuda(GL|Egl)/, 'graphicsInterfaces'],
  [/graph|node/i, 'graph'],
  [/_attribute|Attr$/, 'attributes'],
  [/^CUresult$|^cudaError$|^ncclResult|^nv\w+Result$/, 'results'],
  [/sem|external|ext_/i, 'externalResource'],
  [/array|texture|tex|surf|resource|tensor|format|filter|address_?mode/i, 'array'],
  [/stream|event|launch|cluster|sync|batchmemop/i, 'launch'],
  [/jit|link|library|module|func/i, 'module'],
  [/mem|multicast|ipc|pointer|access|rdma|location|copy|offset|extent|pos$/i, 'memory'],
]

// There are few files, because each module costs every importer half a millisecond.
const enumFiles: Record<string, string> = {
  attributes: 'status',
  results: 'status',
  externalResource: 'memory',
  array: 'memory',
  launch: 'execution',
  graph: 'execution',
  module: 'execution',
  deviceApi: 'execution',
  general: 'execution',
}
const structFiles: Record<string, string> = {
  attributes: 'memory',
  externalResource: 'array',
  module: 'memory',
  general: 'memory',
}

function subjectOf(name: string): string {
  return subjects.find(([pattern]) => pattern.test(name))?.[1] ?? 'general'
}

/** The name, without extension, of an enumeration's file. */
export function enumFileOf(name: string): string {
  if (isNvshmemName(name)) return nvshmemEnumFile(name)
  if (isNvmlName(name)) return nvmlEnumFile(name)
  const subject = subjectOf(name)
  return enumFiles[subject] ?? subject
}

/** The name, without extension, of a struct's file. */
export function structFileOf(name: string): string {
  if (isNvshmemName(name)) return nvshmemStructFile(name)
  if (isNvmlName(name)) return nvmlStructFile(name)
  const subject = subjectOf(name)
  return structFiles[subject] ?? subject
}

/** The function's page in the vendor's manual. */
export function manualPage(library: Library, entry: FunctionSpec): string | undefined {
  return libraryRecord(library).manual(entry)
}
