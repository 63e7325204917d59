// Functions that read like questions and are not asked, with the reason. A test holds this against the spec, so that a
// getter that comes with a new version is either asked or stands here.
import type { DeviceLibraryName } from '@shoal/bindgen/dist/spec/types.js'

const graphics = 'needs a graphics interface'
const imported = 'needs memory of another interface'
const changes = 'changes the state that others read'
const makes = 'makes something that another process could open'
const inProgram = 'needs a variable or a kernel that nvcc compiled into the program'
const ownTable = 'the table belongs to who knows the number it is asked by'
const semaphores = 'needs a semaphore of another interface'
const transfers = 'moves data between processing elements'
const communicators = 'needs a communicator of several ranks or memory registered with it'
const nvsci = 'needs NvSci, which embedded devices have'
const started = 'ends the process when NVSHMEM is not initialised'

export const notAsked: Readonly<Record<DeviceLibraryName, Readonly<Record<string, string>>>> = {
  driver: {
    cuCheckpointProcessGetRestoreThreadId: 'about another process',
    cuCheckpointProcessGetState: 'about another process',
    cuCtxPopCurrent: changes,
    cuCtxPushCurrent: changes,
    cuDevSmResourceSplitByCount: 'makes resources for green contexts',
    cuDeviceGetNvSciSyncAttributes: nvsci,
    cuExternalMemoryGetMappedBuffer: imported,
    cuExternalMemoryGetMappedMipmappedArray: imported,
    cuGLGetDevices: graphics,
    cuGetExportTable: ownTable,
    cuGraphBatchMemOpNodeGetParams: 'its operations point to the node itself',
    cuGraphExternalSemaphoresSignalNodeGetParams: semaphores,
    cuGraphExternalSemaphoresWaitNodeGetParams: semaphores,
    cuGraphHostNodeGetParams: 'needs a callback of the program',
    cuGraphMemAllocNodeGetParams: 'its pool properties point to the node itself',
    cuGraphMemFreeNodeGetParams: 'needs memory of a graph',
    cuGraphicsResourceGetMappedEglFrame: graphics,
    cuGraphicsResourceGetMappedMipmappedArray: graphics,
    cuGraphicsResourceGetMappedPointer: graphics,
    cuGraphicsSubResourceGetMappedArray: graphics,
    cuGreenCtxGetDevResource: 'needs a green context, which takes multiprocessors from others',
    cuGreenCtxGetId: 'needs a green context, which takes multiprocessors from others',
    cuIpcGetEventHandle: makes,
    cuIpcGetMemHandle: makes,
    cuMemGetHandleForAddressRange: makes,
    cuMemRangeGetAttributes: 'cuMemRangeGetAttribute asks for the same values',
    cuModuleGetSurfRef: 'CUDA 12 and newer compile no surface references',
    cuModuleGetTexRef: 'CUDA 12 and newer compile no texture references',
    cuSurfRefGetArray: 'CUDA 12 and newer compile no surface references',
    cuVDPAUGetDevice: graphics,
    cuWGLGetDevice: graphics,
  },
  runtime: {
    cudaDeviceGetNvSciSyncAttributes: nvsci,
    cudaExternalMemoryGetMappedBuffer: imported,
    cudaExternalMemoryGetMappedMipmappedArray: imported,
    cudaGLGetDevices: graphics,
    cudaGetExportTable: ownTable,
    cudaGetFuncBySymbol: inProgram,
    cudaGetKernel: inProgram,
    cudaGetMipmappedArrayLevel: 'asked of the driver',
    cudaGetSymbolAddress: inProgram,
    cudaGetSymbolSize: inProgram,
    cudaGraphExternalSemaphoresSignalNodeGetParams: semaphores,
    cudaGraphExternalSemaphoresWaitNodeGetParams: semaphores,
    cudaGraphHostNodeGetParams: 'needs a callback of the program',
    cudaGraphKernelNodeGetAttribute: 'asked of the driver',
    cudaGraphKernelNodeGetParams: 'asked of the driver',
    cudaGraphMemAllocNodeGetParams: 'its pool properties point to the node itself',
    cudaGraphMemFreeNodeGetParams: 'needs memory of a graph',
    cudaGraphMemcpyNodeGetParams: 'asked of the driver; a one-dimensional copy has no such description',
    cudaGraphicsResourceGetMappedEglFrame: graphics,
    cudaGraphicsResourceGetMappedMipmappedArray: graphics,
    cudaGraphicsResourceGetMappedPointer: graphics,
    cudaGraphicsSubResourceGetMappedArray: graphics,
    cudaIpcGetEventHandle: makes,
    cudaIpcGetMemHandle: makes,
    cudaLibraryGetUnifiedFunction: 'asked of the driver',
    cudaMemRangeGetAttributes: 'cudaMemRangeGetAttribute asks for the same values',
    cudaMipmappedArrayGetMemoryRequirements: 'asked of the driver',
    cudaMipmappedArrayGetSparseProperties: 'asked of the driver',
    cudaVDPAUGetDevice: graphics,
    cudaWGLGetDevice: graphics,
  },
  nccl: {
    ncclCommGetUniqueId: communicators,
    ncclCommQueryProperties: communicators,
    ncclGetLsaDevicePointer: communicators,
    ncclGetLsaMultimemDevicePointer: 'needs NVLink multicast',
    ncclGetMultimemDevicePointer: 'needs NVLink multicast',
    ncclGetPeerDevicePointer: communicators,
    ncclGetUniqueId: 'opens a socket and answers with its address',
    ncclParamGet: 'needs a parameter that the program bound',
    ncclParamGetI16: 'needs a parameter that the program bound',
    ncclParamGetI32: 'needs a parameter that the program bound',
    ncclParamGetI64: 'needs a parameter that the program bound',
    ncclParamGetI8: 'needs a parameter that the program bound',
    ncclParamGetStr: 'needs a parameter that the program bound',
    ncclParamGetU16: 'needs a parameter that the program bound',
    ncclParamGetU32: 'needs a parameter that the program bound',
    ncclParamGetU64: 'needs a parameter that the program bound',
    ncclParamGetU8: 'needs a parameter that the program bound',
    ncclWinGetUserPtr: communicators,
  },
  nvshmem: {
    nvshmem_my_pe: started,
    nvshmem_n_pes: started,
    nvshmem_team_get_config: started,
    nvshmem_team_my_pe: started,
    nvshmem_team_n_pes: started,
    nvshmemid_init_status: 'belongs to the plugins that start processes',
    nvshmemx_get_uniqueid: 'opens a socket and answers with its address',
    nvshmemx_team_get_uniqueid: started,
  },
}

/** Names that stand for many functions, with the reason. */
export const notAskedFamilies: readonly {
  readonly library: DeviceLibraryName
  readonly pattern: RegExp
  readonly reason: string
}[] = [{ library: 'nvshmem', pattern: /^nvshmemx?_(\w+_)?get(mem|\d+)?(_nbi)?(_on_stream)?$/, reason: transfers }]

/** What reads like a question. */
export const soundsLikeQuestion =
  /(Get|Query|Occupancy|CanAccess|IsLoaded|IsCapturing|ComputeCapability|Peek|LogsCurrent|Enumerate|Choose|_get|_info|_version|_my_pe|_n_pes|status)/
