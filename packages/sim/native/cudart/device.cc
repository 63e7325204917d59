// Devices: properties, limits and links.
#include <cstddef>
#include <cstring>

#include "entry.h"

using namespace shoal::cudart;

static_assert(sizeof(cudaDeviceProp) == 1008 && offsetof(cudaDeviceProp, surfaceAlignment) == 552 &&
              offsetof(cudaDeviceProp, hostNumaMultinodeIpcSupported) == 780);

namespace {

// The fields of cudaDeviceProp that equal one driver attribute.
struct IntField {
  size_t offset;
  int attribute;
};
struct SizeField {
  size_t offset;
  int attribute;
};

#define SHOAL_FIELD(name, attribute) {offsetof(cudaDeviceProp, name), CU_DEVICE_ATTRIBUTE_##attribute}
#define SHOAL_ELEMENT(name, index, attribute) \
  {offsetof(cudaDeviceProp, name) + index * sizeof(int), CU_DEVICE_ATTRIBUTE_##attribute}

constexpr IntField kIntFields[] = {
    SHOAL_FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    SHOAL_FIELD(warpSize, WARP_SIZE),
    SHOAL_FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    SHOAL_ELEMENT(maxThreadsDim, 0, MAX_BLOCK_DIM_X),
    SHOAL_ELEMENT(maxThreadsDim, 1, MAX_BLOCK_DIM_Y),
    SHOAL_ELEMENT(maxThreadsDim, 2, MAX_BLOCK_DIM_Z),
    SHOAL_ELEMENT(maxGridSize, 0, MAX_GRID_DIM_X),
    SHOAL_ELEMENT(maxGridSize, 1, MAX_GRID_DIM_Y),
    SHOAL_ELEMENT(maxGridSize, 2, MAX_GRID_DIM_Z),
    SHOAL_FIELD(major, COMPUTE_CAPABILITY_MAJOR),
    SHOAL_FIELD(minor, COMPUTE_CAPABILITY_MINOR),
    SHOAL_FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT),
    SHOAL_FIELD(integrated, INTEGRATED),
    SHOAL_FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    SHOAL_FIELD(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    SHOAL_FIELD(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    SHOAL_ELEMENT(maxTexture2D, 0, MAXIMUM_TEXTURE2D_WIDTH),
    SHOAL_ELEMENT(maxTexture2D, 1, MAXIMUM_TEXTURE2D_HEIGHT),
    SHOAL_ELEMENT(maxTexture2DMipmap, 0, MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
    SHOAL_ELEMENT(maxTexture2DMipmap, 1, MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
    SHOAL_ELEMENT(maxTexture2DLinear, 0, MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
    SHOAL_ELEMENT(maxTexture2DLinear, 1, MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
    SHOAL_ELEMENT(maxTexture2DLinear, 2, MAXIMUM_TEXTURE2D_LINEAR_PITCH),
    SHOAL_ELEMENT(maxTexture2DGather, 0, MAXIMUM_TEXTURE2D_GATHER_WIDTH),
    SHOAL_ELEMENT(maxTexture2DGather, 1, MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
    SHOAL_ELEMENT(maxTexture3D, 0, MAXIMUM_TEXTURE3D_WIDTH),
    SHOAL_ELEMENT(maxTexture3D, 1, MAXIMUM_TEXTURE3D_HEIGHT),
    SHOAL_ELEMENT(maxTexture3D, 2, MAXIMUM_TEXTURE3D_DEPTH),
    SHOAL_ELEMENT(maxTexture3DAlt, 0, MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
    SHOAL_ELEMENT(maxTexture3DAlt, 1, MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
    SHOAL_ELEMENT(maxTexture3DAlt, 2, MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
    SHOAL_FIELD(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
    SHOAL_ELEMENT(maxTexture1DLayered, 0, MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
    SHOAL_ELEMENT(maxTexture1DLayered, 1, MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
    SHOAL_ELEMENT(maxTexture2DLayered, 0, MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
    SHOAL_ELEMENT(maxTexture2DLayered, 1, MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
    SHOAL_ELEMENT(maxTexture2DLayered, 2, MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
    SHOAL_ELEMENT(maxTextureCubemapLayered, 0, MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    SHOAL_ELEMENT(maxTextureCubemapLayered, 1, MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
    SHOAL_FIELD(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
    SHOAL_ELEMENT(maxSurface2D, 0, MAXIMUM_SURFACE2D_WIDTH),
    SHOAL_ELEMENT(maxSurface2D, 1, MAXIMUM_SURFACE2D_HEIGHT),
    SHOAL_ELEMENT(maxSurface3D, 0, MAXIMUM_SURFACE3D_WIDTH),
    SHOAL_ELEMENT(maxSurface3D, 1, MAXIMUM_SURFACE3D_HEIGHT),
    SHOAL_ELEMENT(maxSurface3D, 2, MAXIMUM_SURFACE3D_DEPTH),
    SHOAL_ELEMENT(maxSurface1DLayered, 0, MAXIMUM_SURFACE1D_LAYERED_WIDTH),
    SHOAL_ELEMENT(maxSurface1DLayered, 1, MAXIMUM_SURFACE1D_LAYERED_LAYERS),
    SHOAL_ELEMENT(maxSurface2DLayered, 0, MAXIMUM_SURFACE2D_LAYERED_WIDTH),
    SHOAL_ELEMENT(maxSurface2DLayered, 1, MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
    SHOAL_ELEMENT(maxSurface2DLayered, 2, MAXIMUM_SURFACE2D_LAYERED_LAYERS),
    SHOAL_FIELD(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
    SHOAL_ELEMENT(maxSurfaceCubemapLayered, 0, MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    SHOAL_ELEMENT(maxSurfaceCubemapLayered, 1, MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
    SHOAL_FIELD(concurrentKernels, CONCURRENT_KERNELS),
    SHOAL_FIELD(ECCEnabled, ECC_ENABLED),
    SHOAL_FIELD(pciBusID, PCI_BUS_ID),
    SHOAL_FIELD(pciDeviceID, PCI_DEVICE_ID),
    SHOAL_FIELD(pciDomainID, PCI_DOMAIN_ID),
    SHOAL_FIELD(tccDriver, TCC_DRIVER),
    SHOAL_FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT),
    SHOAL_FIELD(unifiedAddressing, UNIFIED_ADDRESSING),
    SHOAL_FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    SHOAL_FIELD(l2CacheSize, L2_CACHE_SIZE),
    SHOAL_FIELD(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    SHOAL_FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    SHOAL_FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    SHOAL_FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    SHOAL_FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    SHOAL_FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    SHOAL_FIELD(managedMemory, MANAGED_MEMORY),
    SHOAL_FIELD(isMultiGpuBoard, MULTI_GPU_BOARD),
    SHOAL_FIELD(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    SHOAL_FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    SHOAL_FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    SHOAL_FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    SHOAL_FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    SHOAL_FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    SHOAL_FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH),
    SHOAL_FIELD(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    SHOAL_FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    SHOAL_FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    SHOAL_FIELD(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    SHOAL_FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    SHOAL_FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    SHOAL_FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    SHOAL_FIELD(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    SHOAL_FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    SHOAL_FIELD(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    SHOAL_FIELD(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    SHOAL_FIELD(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    SHOAL_FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    SHOAL_FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    SHOAL_FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED),
    SHOAL_FIELD(clusterLaunch, CLUSTER_LAUNCH),
    SHOAL_FIELD(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
    SHOAL_FIELD(deviceNumaConfig, NUMA_CONFIG),
    SHOAL_FIELD(deviceNumaId, NUMA_ID),
    SHOAL_FIELD(mpsEnabled, MPS_ENABLED),
    SHOAL_FIELD(hostNumaId, HOST_NUMA_ID),
    SHOAL_FIELD(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
    SHOAL_FIELD(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
    SHOAL_FIELD(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
};

constexpr SizeField kSizeFields[] = {
    SHOAL_FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    SHOAL_FIELD(memPitch, MAX_PITCH),
    SHOAL_FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY),
    SHOAL_FIELD(textureAlignment, TEXTURE_ALIGNMENT),
    SHOAL_FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    SHOAL_FIELD(surfaceAlignment, SURFACE_ALIGNMENT),
    SHOAL_FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    SHOAL_FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    SHOAL_FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
};

CUresult describe(cudaDeviceProp& properties, CUdevice device) {
  memset(&properties, 0, sizeof properties);
  auto* bytes = reinterpret_cast<char*>(&properties);
  if (const CUresult status = cuDeviceGetName(properties.name, sizeof properties.name, device)) return status;
  if (const CUresult status = cuDeviceGetUuid_v2(&properties.uuid, device)) return status;
  if (const CUresult status = cuDeviceTotalMem_v2(&properties.totalGlobalMem, device)) return status;
  for (const IntField& field : kIntFields) {
    int value = 0;
    if (const CUresult status = cuDeviceGetAttribute(&value, field.attribute, device)) return status;
    memcpy(bytes + field.offset, &value, sizeof value);
  }
  for (const SizeField& field : kSizeFields) {
    int value = 0;
    if (const CUresult status = cuDeviceGetAttribute(&value, field.attribute, device)) return status;
    const auto size = static_cast<size_t>(value);
    memcpy(bytes + field.offset, &size, sizeof size);
  }
  return CUDA_SUCCESS;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  if (count != nullptr) *count = 0;
  return started([&] { return cuDeviceGetCount(count); });
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
  return started([&]() -> CUresult {
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context = nullptr;
    if (flags == 1) {
      if (const CUresult status = cuDevicePrimaryCtxSetFlags_v2(device, deviceFlags)) return status;
    }
    int count = 0;
    if (const CUresult status = cuDeviceGetCount(&count)) return status;
    return device < 0 || device >= count ? CUDA_ERROR_INVALID_DEVICE : primaryContext(device, context);
  });
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  return started([&]() -> CUresult {
    int device = 0;
    if (const CUresult status = currentDevice(device)) return status;
    // The runtime takes this flag, which the driver refuses: memory can always be mapped.
    return cuDevicePrimaryCtxSetFlags_v2(device, flags & ~static_cast<unsigned>(CU_CTX_MAP_HOST));
  });
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  return started([&]() -> CUresult {
    int device = 0, active = 0;
    if (const CUresult status = currentDevice(device)) return status;
    return cuDevicePrimaryCtxGetState(device, flags, &active);
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return started([&] { return prop == nullptr ? CUDA_ERROR_INVALID_VALUE : describe(*prop, device); });
}

// The attribute codes equal the driver's.
cudaError_t cudaDeviceGetAttribute(int* value, int attr, int device) {
  return started([&] { return cuDeviceGetAttribute(value, attr, device); });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, int attr, int srcDevice, int dstDevice) {
  return started(
      [&] { return cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attr), srcDevice, dstDevice); });
}

cudaError_t cudaDeviceGetLimit(size_t* pValue, int limit) {
  return onDevice([&] { return cuCtxGetLimit(pValue, static_cast<CUlimit>(limit)); });
}

cudaError_t cudaDeviceSetLimit(int limit, size_t value) {
  return onDevice([&] { return cuCtxSetLimit(static_cast<CUlimit>(limit), value); });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* pCacheConfig) {
  return onDevice([&] { return cuCtxGetCacheConfig(reinterpret_cast<CUfunc_cache*>(pCacheConfig)); });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache cacheConfig) {
  return onDevice([&] { return cuCtxSetCacheConfig(cacheConfig); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return onDevice([&] { return cuCtxGetStreamPriorityRange(leastPriority, greatestPriority); });
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  return started([&] { return cuDeviceGetPCIBusId(pciBusId, len, device); });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* pciBusId) {
  return started([&] { return cuDeviceGetByPCIBusId(device, pciBusId); });
}

cudaError_t cudaDeviceSynchronize(void) {
  return onDevice([] { return cuCtxSynchronize(); });
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device, int peerDevice) {
  return started([&] { return cuDeviceCanAccessPeer(canAccessPeer, device, peerDevice); });
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  return onDevice([&]() -> CUresult {
    int count = 0;
    if (const CUresult status = cuDeviceGetCount(&count)) return status;
    if (peerDevice < 0 || peerDevice >= count) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext peer = nullptr;
    if (const CUresult status = primaryContext(peerDevice, peer)) return status;
    return cuCtxEnablePeerAccess(peer, flags);
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice) {
  return onDevice([&]() -> CUresult {
    int count = 0;
    if (const CUresult status = cuDeviceGetCount(&count)) return status;
    if (peerDevice < 0 || peerDevice >= count) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext peer = nullptr;
    if (const CUresult status = primaryContext(peerDevice, peer)) return status;
    return cuCtxDisablePeerAccess(peer);
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return onDevice([&] { return cuMemGetInfo_v2(free, total); });
}
