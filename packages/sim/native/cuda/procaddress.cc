// cuGetProcAddress: which function a name means at a version.
#include <cstring>

#include "core/device.h"
#include "core/entry.h"

using namespace shoal;

namespace {

// One ABI of a function, since the version that brought it. With `ownVersion` there is a twin for per-thread default streams.
struct Variant {
  const char* name;
  int version;
  void* function;
  int ownVersion;
  void* own;
};

#define SHOAL_ONE(name, version, function) {name, version, reinterpret_cast<void*>(&function), 0, nullptr},
#define SHOAL_TWO(name, version, function, ownVersion, own) \
  {name, version, reinterpret_cast<void*>(&function), ownVersion, reinterpret_cast<void*>(&own)},

const Variant kVariants[] = {
    SHOAL_ONE("cuInit", 2000, cuInit)
    SHOAL_ONE("cuDriverGetVersion", 2020, cuDriverGetVersion)
    SHOAL_ONE("cuGetErrorName", 6000, cuGetErrorName)
    SHOAL_ONE("cuGetErrorString", 6000, cuGetErrorString)
    SHOAL_ONE("cuGetProcAddress", 11030, cuGetProcAddress)
    SHOAL_ONE("cuGetProcAddress", 12000, cuGetProcAddress_v2)
    SHOAL_ONE("cuDeviceGet", 2000, cuDeviceGet)
    SHOAL_ONE("cuDeviceGetCount", 2000, cuDeviceGetCount)
    SHOAL_ONE("cuDeviceGetName", 2000, cuDeviceGetName)
    SHOAL_ONE("cuDeviceGetUuid", 9020, cuDeviceGetUuid)
    SHOAL_ONE("cuDeviceGetUuid", 11040, cuDeviceGetUuid_v2)
    SHOAL_ONE("cuDeviceGetLuid", 10000, cuDeviceGetLuid)
    SHOAL_ONE("cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2)
    SHOAL_ONE("cuDeviceGetAttribute", 2000, cuDeviceGetAttribute)
    SHOAL_ONE("cuDeviceComputeCapability", 2000, cuDeviceComputeCapability)
    SHOAL_ONE("cuDeviceGetPCIBusId", 4010, cuDeviceGetPCIBusId)
    SHOAL_ONE("cuDeviceGetByPCIBusId", 4010, cuDeviceGetByPCIBusId)
    SHOAL_ONE("cuDeviceGetP2PAttribute", 8000, cuDeviceGetP2PAttribute)
    SHOAL_ONE("cuDeviceCanAccessPeer", 4000, cuDeviceCanAccessPeer)
    SHOAL_ONE("cuDeviceGetExecAffinitySupport", 11040, cuDeviceGetExecAffinitySupport)
    SHOAL_ONE("cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain)
    SHOAL_ONE("cuDevicePrimaryCtxRelease", 7000, cuDevicePrimaryCtxRelease)
    SHOAL_ONE("cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease_v2)
    SHOAL_ONE("cuDevicePrimaryCtxReset", 7000, cuDevicePrimaryCtxReset)
    SHOAL_ONE("cuDevicePrimaryCtxReset", 11000, cuDevicePrimaryCtxReset_v2)
    SHOAL_ONE("cuDevicePrimaryCtxGetState", 7000, cuDevicePrimaryCtxGetState)
    SHOAL_ONE("cuDevicePrimaryCtxSetFlags", 7000, cuDevicePrimaryCtxSetFlags)
    SHOAL_ONE("cuDevicePrimaryCtxSetFlags", 11000, cuDevicePrimaryCtxSetFlags_v2)
    SHOAL_ONE("cuCtxCreate", 3020, cuCtxCreate_v2)
    SHOAL_ONE("cuCtxCreate", 11040, cuCtxCreate_v3)
    SHOAL_ONE("cuCtxCreate", 12050, cuCtxCreate_v4)
    SHOAL_ONE("cuCtxDestroy", 2000, cuCtxDestroy)
    SHOAL_ONE("cuCtxDestroy", 4000, cuCtxDestroy_v2)
    SHOAL_ONE("cuCtxGetCurrent", 4000, cuCtxGetCurrent)
    SHOAL_ONE("cuCtxSetCurrent", 4000, cuCtxSetCurrent)
    SHOAL_ONE("cuCtxPushCurrent", 2000, cuCtxPushCurrent)
    SHOAL_ONE("cuCtxPushCurrent", 4000, cuCtxPushCurrent_v2)
    SHOAL_ONE("cuCtxPopCurrent", 2000, cuCtxPopCurrent)
    SHOAL_ONE("cuCtxPopCurrent", 4000, cuCtxPopCurrent_v2)
    SHOAL_ONE("cuCtxGetDevice", 2000, cuCtxGetDevice)
    SHOAL_ONE("cuCtxGetDevice", 13000, cuCtxGetDevice_v2)
    SHOAL_ONE("cuCtxSynchronize", 2000, cuCtxSynchronize)
    SHOAL_ONE("cuCtxSynchronize", 13000, cuCtxSynchronize_v2)
    SHOAL_ONE("cuCtxGetFlags", 7000, cuCtxGetFlags)
    SHOAL_ONE("cuCtxSetFlags", 12010, cuCtxSetFlags)
    SHOAL_ONE("cuCtxGetId", 12000, cuCtxGetId)
    SHOAL_ONE("cuCtxGetApiVersion", 3020, cuCtxGetApiVersion)
    SHOAL_ONE("cuCtxGetLimit", 3010, cuCtxGetLimit)
    SHOAL_ONE("cuCtxSetLimit", 3010, cuCtxSetLimit)
    SHOAL_ONE("cuCtxGetCacheConfig", 3020, cuCtxGetCacheConfig)
    SHOAL_ONE("cuCtxSetCacheConfig", 3020, cuCtxSetCacheConfig)
    SHOAL_ONE("cuCtxGetSharedMemConfig", 4020, cuCtxGetSharedMemConfig)
    SHOAL_ONE("cuCtxSetSharedMemConfig", 4020, cuCtxSetSharedMemConfig)
    SHOAL_ONE("cuCtxGetStreamPriorityRange", 5050, cuCtxGetStreamPriorityRange)
    SHOAL_ONE("cuCtxResetPersistingL2Cache", 11000, cuCtxResetPersistingL2Cache)
    SHOAL_ONE("cuCtxEnablePeerAccess", 4000, cuCtxEnablePeerAccess)
    SHOAL_ONE("cuCtxDisablePeerAccess", 4000, cuCtxDisablePeerAccess)
    SHOAL_ONE("cuStreamCreate", 2000, cuStreamCreate)
    SHOAL_ONE("cuStreamCreateWithPriority", 5050, cuStreamCreateWithPriority)
    SHOAL_ONE("cuStreamDestroy", 2000, cuStreamDestroy)
    SHOAL_ONE("cuStreamDestroy", 4000, cuStreamDestroy_v2)
    SHOAL_TWO("cuStreamSynchronize", 2000, cuStreamSynchronize, 7000, cuStreamSynchronize_ptsz)
    SHOAL_TWO("cuStreamQuery", 2000, cuStreamQuery, 7000, cuStreamQuery_ptsz)
    SHOAL_TWO("cuStreamWaitEvent", 3020, cuStreamWaitEvent, 7000, cuStreamWaitEvent_ptsz)
    SHOAL_TWO("cuStreamGetFlags", 5050, cuStreamGetFlags, 7000, cuStreamGetFlags_ptsz)
    SHOAL_TWO("cuStreamGetPriority", 5050, cuStreamGetPriority, 7000, cuStreamGetPriority_ptsz)
    SHOAL_TWO("cuStreamGetId", 12000, cuStreamGetId, 12000, cuStreamGetId_ptsz)
    SHOAL_TWO("cuStreamGetCtx", 9020, cuStreamGetCtx, 9020, cuStreamGetCtx_ptsz)
    SHOAL_TWO("cuStreamGetCtx", 12050, cuStreamGetCtx_v2, 12050, cuStreamGetCtx_v2_ptsz)
    SHOAL_TWO("cuStreamGetDevice", 12080, cuStreamGetDevice, 12080, cuStreamGetDevice_ptsz)
    SHOAL_TWO("cuStreamAddCallback", 5000, cuStreamAddCallback, 7000, cuStreamAddCallback_ptsz)
    SHOAL_TWO("cuStreamIsCapturing", 10000, cuStreamIsCapturing, 10000, cuStreamIsCapturing_ptsz)
    SHOAL_TWO("cuStreamWriteValue32", 11070, cuStreamWriteValue32_v2, 11070, cuStreamWriteValue32_v2_ptsz)
    SHOAL_TWO("cuStreamWriteValue64", 11070, cuStreamWriteValue64_v2, 11070, cuStreamWriteValue64_v2_ptsz)
    SHOAL_TWO("cuStreamWaitValue32", 11070, cuStreamWaitValue32_v2, 11070, cuStreamWaitValue32_v2_ptsz)
    SHOAL_TWO("cuStreamWaitValue64", 11070, cuStreamWaitValue64_v2, 11070, cuStreamWaitValue64_v2_ptsz)
    SHOAL_TWO("cuLaunchHostFunc", 10000, cuLaunchHostFunc, 10000, cuLaunchHostFunc_ptsz)
    SHOAL_ONE("cuEventCreate", 2000, cuEventCreate)
    SHOAL_ONE("cuEventDestroy", 2000, cuEventDestroy)
    SHOAL_ONE("cuEventDestroy", 4000, cuEventDestroy_v2)
    SHOAL_TWO("cuEventRecord", 2000, cuEventRecord, 7000, cuEventRecord_ptsz)
    SHOAL_TWO("cuEventRecordWithFlags", 11010, cuEventRecordWithFlags, 11010, cuEventRecordWithFlags_ptsz)
    SHOAL_ONE("cuEventQuery", 2000, cuEventQuery)
    SHOAL_ONE("cuEventSynchronize", 2000, cuEventSynchronize)
    SHOAL_ONE("cuEventElapsedTime", 2000, cuEventElapsedTime)
    SHOAL_ONE("cuEventElapsedTime", 12080, cuEventElapsedTime_v2)
    SHOAL_ONE("cuMemGetInfo", 3020, cuMemGetInfo_v2)
    SHOAL_ONE("cuMemAlloc", 3020, cuMemAlloc_v2)
    SHOAL_ONE("cuMemAllocPitch", 3020, cuMemAllocPitch_v2)
    SHOAL_ONE("cuMemFree", 3020, cuMemFree_v2)
    SHOAL_TWO("cuMemAllocAsync", 11020, cuMemAllocAsync, 11020, cuMemAllocAsync_ptsz)
    SHOAL_TWO("cuMemFreeAsync", 11020, cuMemFreeAsync, 11020, cuMemFreeAsync_ptsz)
    SHOAL_ONE("cuMemAllocManaged", 6000, cuMemAllocManaged)
    SHOAL_ONE("cuMemAllocHost", 3020, cuMemAllocHost_v2)
    SHOAL_ONE("cuMemHostAlloc", 2020, cuMemHostAlloc)
    SHOAL_ONE("cuMemFreeHost", 2000, cuMemFreeHost)
    SHOAL_ONE("cuMemHostGetDevicePointer", 3020, cuMemHostGetDevicePointer_v2)
    SHOAL_ONE("cuMemHostGetFlags", 2030, cuMemHostGetFlags)
    SHOAL_ONE("cuMemHostRegister", 4000, cuMemHostRegister)
    SHOAL_ONE("cuMemHostRegister", 6050, cuMemHostRegister_v2)
    SHOAL_ONE("cuMemHostUnregister", 4000, cuMemHostUnregister)
    SHOAL_ONE("cuMemGetAddressRange", 3020, cuMemGetAddressRange_v2)
    SHOAL_ONE("cuMemAdvise", 8000, cuMemAdvise)
    SHOAL_ONE("cuMemAdvise", 12020, cuMemAdvise_v2)
    SHOAL_TWO("cuMemPrefetchAsync", 8000, cuMemPrefetchAsync, 8000, cuMemPrefetchAsync_ptsz)
    SHOAL_TWO("cuMemPrefetchAsync", 12020, cuMemPrefetchAsync_v2, 12020, cuMemPrefetchAsync_v2_ptsz)
    SHOAL_TWO("cuStreamAttachMemAsync", 6000, cuStreamAttachMemAsync, 7000, cuStreamAttachMemAsync_ptsz)
    SHOAL_ONE("cuMemRangeGetAttribute", 8000, cuMemRangeGetAttribute)
    SHOAL_ONE("cuMemRangeGetAttributes", 8000, cuMemRangeGetAttributes)
    SHOAL_TWO("cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync_ptsz)
    SHOAL_ONE("cuDeviceGetDefaultMemPool", 11020, cuDeviceGetDefaultMemPool)
    SHOAL_ONE("cuDeviceGetMemPool", 11020, cuDeviceGetMemPool)
    SHOAL_ONE("cuDeviceSetMemPool", 11020, cuDeviceSetMemPool)
    SHOAL_ONE("cuMemGetDefaultMemPool", 13000, cuMemGetDefaultMemPool)
    SHOAL_ONE("cuMemGetMemPool", 13000, cuMemGetMemPool)
    SHOAL_ONE("cuMemSetMemPool", 13000, cuMemSetMemPool)
    SHOAL_ONE("cuMemPoolCreate", 11020, cuMemPoolCreate)
    SHOAL_ONE("cuMemPoolDestroy", 11020, cuMemPoolDestroy)
    SHOAL_ONE("cuMemPoolTrimTo", 11020, cuMemPoolTrimTo)
    SHOAL_ONE("cuMemPoolGetAttribute", 11020, cuMemPoolGetAttribute)
    SHOAL_ONE("cuMemPoolSetAttribute", 11020, cuMemPoolSetAttribute)
    SHOAL_ONE("cuMemPoolSetAccess", 11020, cuMemPoolSetAccess)
    SHOAL_ONE("cuMemPoolGetAccess", 11020, cuMemPoolGetAccess)
    SHOAL_ONE("cuMemPoolExportToShareableHandle", 11020, cuMemPoolExportToShareableHandle)
    SHOAL_ONE("cuMemPoolImportFromShareableHandle", 11020, cuMemPoolImportFromShareableHandle)
    SHOAL_ONE("cuMemPoolExportPointer", 11020, cuMemPoolExportPointer)
    SHOAL_ONE("cuMemPoolImportPointer", 11020, cuMemPoolImportPointer)
    SHOAL_ONE("cuMemGetAllocationGranularity", 10020, cuMemGetAllocationGranularity)
    SHOAL_ONE("cuMemAddressReserve", 10020, cuMemAddressReserve)
    SHOAL_ONE("cuMemAddressFree", 10020, cuMemAddressFree)
    SHOAL_ONE("cuMemCreate", 10020, cuMemCreate)
    SHOAL_ONE("cuMemRelease", 10020, cuMemRelease)
    SHOAL_ONE("cuMemMap", 10020, cuMemMap)
    SHOAL_TWO("cuMemMapArrayAsync", 11010, cuMemMapArrayAsync, 11010, cuMemMapArrayAsync_ptsz)
    SHOAL_ONE("cuMemUnmap", 10020, cuMemUnmap)
    SHOAL_ONE("cuMemSetAccess", 10020, cuMemSetAccess)
    SHOAL_ONE("cuMemGetAccess", 10020, cuMemGetAccess)
    SHOAL_ONE("cuMemExportToShareableHandle", 10020, cuMemExportToShareableHandle)
    SHOAL_ONE("cuMemImportFromShareableHandle", 10020, cuMemImportFromShareableHandle)
    SHOAL_ONE("cuMemGetAllocationPropertiesFromHandle", 10020, cuMemGetAllocationPropertiesFromHandle)
    SHOAL_ONE("cuMemRetainAllocationHandle", 11000, cuMemRetainAllocationHandle)
    SHOAL_ONE("cuMemGetHandleForAddressRange", 11070, cuMemGetHandleForAddressRange)
    SHOAL_ONE("cuIpcGetMemHandle", 4010, cuIpcGetMemHandle)
    SHOAL_ONE("cuIpcOpenMemHandle", 4010, cuIpcOpenMemHandle)
    SHOAL_ONE("cuIpcOpenMemHandle", 11000, cuIpcOpenMemHandle_v2)
    SHOAL_ONE("cuIpcCloseMemHandle", 4010, cuIpcCloseMemHandle)
    SHOAL_ONE("cuIpcGetEventHandle", 4010, cuIpcGetEventHandle)
    SHOAL_ONE("cuIpcOpenEventHandle", 4010, cuIpcOpenEventHandle)
    SHOAL_ONE("cuMulticastGetGranularity", 12010, cuMulticastGetGranularity)
    SHOAL_ONE("cuMulticastCreate", 12010, cuMulticastCreate)
    SHOAL_ONE("cuMulticastAddDevice", 12010, cuMulticastAddDevice)
    SHOAL_ONE("cuMulticastBindMem", 12010, cuMulticastBindMem)
    SHOAL_ONE("cuMulticastBindAddr", 12010, cuMulticastBindAddr)
    SHOAL_ONE("cuMulticastUnbind", 12010, cuMulticastUnbind)
    SHOAL_ONE("cuPointerGetAttribute", 4000, cuPointerGetAttribute)
    SHOAL_ONE("cuPointerGetAttributes", 7000, cuPointerGetAttributes)
    SHOAL_ONE("cuPointerSetAttribute", 6000, cuPointerSetAttribute)
    SHOAL_TWO("cuMemcpy", 4000, cuMemcpy, 7000, cuMemcpy_ptds)
    SHOAL_TWO("cuMemcpyAsync", 4000, cuMemcpyAsync, 7000, cuMemcpyAsync_ptsz)
    SHOAL_TWO("cuMemcpyPeer", 4000, cuMemcpyPeer, 7000, cuMemcpyPeer_ptds)
    SHOAL_TWO("cuMemcpyPeerAsync", 4000, cuMemcpyPeerAsync, 7000, cuMemcpyPeerAsync_ptsz)
    SHOAL_TWO("cuMemcpyHtoD", 3020, cuMemcpyHtoD_v2, 7000, cuMemcpyHtoD_v2_ptds)
    SHOAL_TWO("cuMemcpyDtoH", 3020, cuMemcpyDtoH_v2, 7000, cuMemcpyDtoH_v2_ptds)
    SHOAL_TWO("cuMemcpyDtoD", 3020, cuMemcpyDtoD_v2, 7000, cuMemcpyDtoD_v2_ptds)
    SHOAL_TWO("cuMemcpyHtoDAsync", 3020, cuMemcpyHtoDAsync_v2, 7000, cuMemcpyHtoDAsync_v2_ptsz)
    SHOAL_TWO("cuMemcpyDtoHAsync", 3020, cuMemcpyDtoHAsync_v2, 7000, cuMemcpyDtoHAsync_v2_ptsz)
    SHOAL_TWO("cuMemcpyDtoDAsync", 3020, cuMemcpyDtoDAsync_v2, 7000, cuMemcpyDtoDAsync_v2_ptsz)
    SHOAL_TWO("cuMemcpy2D", 3020, cuMemcpy2D_v2, 7000, cuMemcpy2D_v2_ptds)
    SHOAL_TWO("cuMemcpy2DUnaligned", 3020, cuMemcpy2DUnaligned_v2, 7000, cuMemcpy2DUnaligned_v2_ptds)
    SHOAL_TWO("cuMemcpy2DAsync", 3020, cuMemcpy2DAsync_v2, 7000, cuMemcpy2DAsync_v2_ptsz)
    SHOAL_TWO("cuMemsetD8", 3020, cuMemsetD8_v2, 7000, cuMemsetD8_v2_ptds)
    SHOAL_TWO("cuMemsetD16", 3020, cuMemsetD16_v2, 7000, cuMemsetD16_v2_ptds)
    SHOAL_TWO("cuMemsetD32", 3020, cuMemsetD32_v2, 7000, cuMemsetD32_v2_ptds)
    SHOAL_TWO("cuMemsetD2D8", 3020, cuMemsetD2D8_v2, 7000, cuMemsetD2D8_v2_ptds)
    SHOAL_TWO("cuMemsetD2D16", 3020, cuMemsetD2D16_v2, 7000, cuMemsetD2D16_v2_ptds)
    SHOAL_TWO("cuMemsetD2D32", 3020, cuMemsetD2D32_v2, 7000, cuMemsetD2D32_v2_ptds)
    SHOAL_TWO("cuMemsetD8Async", 3020, cuMemsetD8Async, 7000, cuMemsetD8Async_ptsz)
    SHOAL_TWO("cuMemsetD16Async", 3020, cuMemsetD16Async, 7000, cuMemsetD16Async_ptsz)
    SHOAL_TWO("cuMemsetD32Async", 3020, cuMemsetD32Async, 7000, cuMemsetD32Async_ptsz)
    SHOAL_TWO("cuMemsetD2D8Async", 3020, cuMemsetD2D8Async, 7000, cuMemsetD2D8Async_ptsz)
    SHOAL_TWO("cuMemsetD2D16Async", 3020, cuMemsetD2D16Async, 7000, cuMemsetD2D16Async_ptsz)
    SHOAL_TWO("cuMemsetD2D32Async", 3020, cuMemsetD2D32Async, 7000, cuMemsetD2D32Async_ptsz)
    SHOAL_ONE("cuModuleLoad", 2000, cuModuleLoad)
    SHOAL_ONE("cuModuleLoadData", 2000, cuModuleLoadData)
    SHOAL_ONE("cuModuleLoadDataEx", 2010, cuModuleLoadDataEx)
    SHOAL_ONE("cuModuleLoadFatBinary", 2000, cuModuleLoadFatBinary)
    SHOAL_ONE("cuModuleUnload", 2000, cuModuleUnload)
    SHOAL_ONE("cuModuleGetFunction", 2000, cuModuleGetFunction)
    SHOAL_ONE("cuModuleGetGlobal", 3020, cuModuleGetGlobal_v2)
    SHOAL_ONE("cuModuleGetFunctionCount", 12040, cuModuleGetFunctionCount)
    SHOAL_ONE("cuModuleEnumerateFunctions", 12040, cuModuleEnumerateFunctions)
    SHOAL_ONE("cuModuleGetLoadingMode", 11070, cuModuleGetLoadingMode)
    SHOAL_ONE("cuLibraryLoadData", 12000, cuLibraryLoadData)
    SHOAL_ONE("cuLibraryLoadFromFile", 12000, cuLibraryLoadFromFile)
    SHOAL_ONE("cuLibraryUnload", 12000, cuLibraryUnload)
    SHOAL_ONE("cuLibraryGetKernel", 12000, cuLibraryGetKernel)
    SHOAL_ONE("cuLibraryGetKernelCount", 12040, cuLibraryGetKernelCount)
    SHOAL_ONE("cuFuncGetAttribute", 2020, cuFuncGetAttribute)
    SHOAL_ONE("cuFuncSetAttribute", 9000, cuFuncSetAttribute)
    SHOAL_ONE("cuFuncSetCacheConfig", 3000, cuFuncSetCacheConfig)
    SHOAL_ONE("cuFuncGetModule", 11000, cuFuncGetModule)
    SHOAL_ONE("cuFuncGetName", 12030, cuFuncGetName)
    SHOAL_ONE("cuFuncGetParamInfo", 12040, cuFuncGetParamInfo)
    SHOAL_TWO("cuLaunchKernel", 4000, cuLaunchKernel, 7000, cuLaunchKernel_ptsz)
    SHOAL_TWO("cuLaunchKernelEx", 11060, cuLaunchKernelEx, 11060, cuLaunchKernelEx_ptsz)
    SHOAL_ONE("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor)
    SHOAL_ONE("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
    SHOAL_ONE("cuOccupancyMaxPotentialBlockSize", 6050, cuOccupancyMaxPotentialBlockSize)
    SHOAL_ONE("cuOccupancyMaxPotentialBlockSizeWithFlags", 7000, cuOccupancyMaxPotentialBlockSizeWithFlags)
    SHOAL_ONE("cuOccupancyAvailableDynamicSMemPerBlock", 10020, cuOccupancyAvailableDynamicSMemPerBlock)
    SHOAL_ONE("cuOccupancyMaxPotentialClusterSize", 11070, cuOccupancyMaxPotentialClusterSize)
    SHOAL_ONE("cuOccupancyMaxActiveClusters", 11070, cuOccupancyMaxActiveClusters)
};

CUresult find(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags, CUdriverProcAddressQueryResult& status) {
  constexpr cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || pfn == nullptr || (flags & ~known) != 0 || cudaVersion > kDriverVersion) return CUDA_ERROR_INVALID_VALUE;
  const bool wantsOwn = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const Variant* best = nullptr;
  int bestVersion = 0;
  bool isNameKnown = false;
  for (const Variant& variant : kVariants) {
    if (strcmp(variant.name, symbol) != 0) continue;
    isNameKnown = true;
    const int version = wantsOwn && variant.own != nullptr ? variant.ownVersion : variant.version;
    if (version > cudaVersion || version <= bestVersion) continue;
    best = &variant;
    bestVersion = version;
  }
  *pfn = best == nullptr ? nullptr : wantsOwn && best->own != nullptr ? best->own : best->function;
  status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
           : isNameKnown   ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult status = find(symbol, pfn, cudaVersion, flags, found);
  return status == CUDA_SUCCESS && found != CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_ERROR_NOT_FOUND : status;
}

// Not finding a function is no error here: the status and a null function tell.
CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult status = find(symbol, pfn, cudaVersion, flags, found);
  if (status == CUDA_SUCCESS && symbolStatus != nullptr) *symbolStatus = found;
  return status;
}
