// Devices: what they are, their limits and links.
#include <cstddef>
#include <cstring>

#include "entry.h"

using namespace shoal::cudart;

static_assert(sizeof(cudaDeviceProp) == 1008 && offsetof(cudaDeviceProp, surfaceAlignment) == 552 &&
              offsetof(cudaDeviceProp, hostNumaMultinodeIpcSupported) == 780);

namespace {

// Fields of cudaDeviceProp that are one attribute of the driver.
struct IntField {
  size_t offset;
  int attribute;
};
struct SizeField {
  size_t offset;
  int attribute;
};

#define SHOAL_FIELD(name, attribute) {offsetof(cudaDeviceProp, name), attribute}
#define SHOAL_ELEMENT(name, index, attribute) {offsetof(cudaDeviceProp, name) + index * sizeof(int), attribute}

constexpr IntField kIntFields[] = {
    SHOAL_FIELD(regsPerBlock, 12), SHOAL_FIELD(warpSize, 10), SHOAL_FIELD(maxThreadsPerBlock, 1),
    SHOAL_ELEMENT(maxThreadsDim, 0, 2), SHOAL_ELEMENT(maxThreadsDim, 1, 3), SHOAL_ELEMENT(maxThreadsDim, 2, 4),
    SHOAL_ELEMENT(maxGridSize, 0, 5), SHOAL_ELEMENT(maxGridSize, 1, 6), SHOAL_ELEMENT(maxGridSize, 2, 7),
    SHOAL_FIELD(major, 75), SHOAL_FIELD(minor, 76), SHOAL_FIELD(multiProcessorCount, 16), SHOAL_FIELD(integrated, 18),
    SHOAL_FIELD(canMapHostMemory, 19), SHOAL_FIELD(maxTexture1D, 21), SHOAL_FIELD(maxTexture1DMipmap, 77),
    SHOAL_ELEMENT(maxTexture2D, 0, 22), SHOAL_ELEMENT(maxTexture2D, 1, 23),
    SHOAL_ELEMENT(maxTexture2DMipmap, 0, 73), SHOAL_ELEMENT(maxTexture2DMipmap, 1, 74),
    SHOAL_ELEMENT(maxTexture2DLinear, 0, 70), SHOAL_ELEMENT(maxTexture2DLinear, 1, 71), SHOAL_ELEMENT(maxTexture2DLinear, 2, 72),
    SHOAL_ELEMENT(maxTexture2DGather, 0, 45), SHOAL_ELEMENT(maxTexture2DGather, 1, 46),
    SHOAL_ELEMENT(maxTexture3D, 0, 24), SHOAL_ELEMENT(maxTexture3D, 1, 25), SHOAL_ELEMENT(maxTexture3D, 2, 26),
    SHOAL_ELEMENT(maxTexture3DAlt, 0, 47), SHOAL_ELEMENT(maxTexture3DAlt, 1, 48), SHOAL_ELEMENT(maxTexture3DAlt, 2, 49),
    SHOAL_FIELD(maxTextureCubemap, 52), SHOAL_ELEMENT(maxTexture1DLayered, 0, 42), SHOAL_ELEMENT(maxTexture1DLayered, 1, 43),
    SHOAL_ELEMENT(maxTexture2DLayered, 0, 27), SHOAL_ELEMENT(maxTexture2DLayered, 1, 28), SHOAL_ELEMENT(maxTexture2DLayered, 2, 29),
    SHOAL_ELEMENT(maxTextureCubemapLayered, 0, 53), SHOAL_ELEMENT(maxTextureCubemapLayered, 1, 54),
    SHOAL_FIELD(maxSurface1D, 55), SHOAL_ELEMENT(maxSurface2D, 0, 56), SHOAL_ELEMENT(maxSurface2D, 1, 57),
    SHOAL_ELEMENT(maxSurface3D, 0, 58), SHOAL_ELEMENT(maxSurface3D, 1, 59), SHOAL_ELEMENT(maxSurface3D, 2, 60),
    SHOAL_ELEMENT(maxSurface1DLayered, 0, 61), SHOAL_ELEMENT(maxSurface1DLayered, 1, 62),
    SHOAL_ELEMENT(maxSurface2DLayered, 0, 63), SHOAL_ELEMENT(maxSurface2DLayered, 1, 64), SHOAL_ELEMENT(maxSurface2DLayered, 2, 65),
    SHOAL_FIELD(maxSurfaceCubemap, 66), SHOAL_ELEMENT(maxSurfaceCubemapLayered, 0, 67), SHOAL_ELEMENT(maxSurfaceCubemapLayered, 1, 68),
    SHOAL_FIELD(concurrentKernels, 31), SHOAL_FIELD(ECCEnabled, 32), SHOAL_FIELD(pciBusID, 33), SHOAL_FIELD(pciDeviceID, 34),
    SHOAL_FIELD(pciDomainID, 50), SHOAL_FIELD(tccDriver, 35), SHOAL_FIELD(asyncEngineCount, 40), SHOAL_FIELD(unifiedAddressing, 41),
    SHOAL_FIELD(memoryBusWidth, 37), SHOAL_FIELD(l2CacheSize, 38), SHOAL_FIELD(persistingL2CacheMaxSize, 108),
    SHOAL_FIELD(maxThreadsPerMultiProcessor, 39), SHOAL_FIELD(streamPrioritiesSupported, 78), SHOAL_FIELD(globalL1CacheSupported, 79),
    SHOAL_FIELD(localL1CacheSupported, 80), SHOAL_FIELD(regsPerMultiprocessor, 82), SHOAL_FIELD(managedMemory, 83),
    SHOAL_FIELD(isMultiGpuBoard, 84), SHOAL_FIELD(multiGpuBoardGroupID, 85), SHOAL_FIELD(hostNativeAtomicSupported, 86),
    SHOAL_FIELD(pageableMemoryAccess, 88), SHOAL_FIELD(concurrentManagedAccess, 89), SHOAL_FIELD(computePreemptionSupported, 90),
    SHOAL_FIELD(canUseHostPointerForRegisteredMem, 91), SHOAL_FIELD(cooperativeLaunch, 95),
    SHOAL_FIELD(pageableMemoryAccessUsesHostPageTables, 100), SHOAL_FIELD(directManagedMemAccessFromHost, 101),
    SHOAL_FIELD(maxBlocksPerMultiProcessor, 106), SHOAL_FIELD(accessPolicyMaxWindowSize, 109), SHOAL_FIELD(hostRegisterSupported, 99),
    SHOAL_FIELD(sparseCudaArraySupported, 112), SHOAL_FIELD(hostRegisterReadOnlySupported, 113),
    SHOAL_FIELD(timelineSemaphoreInteropSupported, 114), SHOAL_FIELD(memoryPoolsSupported, 115), SHOAL_FIELD(gpuDirectRDMASupported, 116),
    SHOAL_FIELD(gpuDirectRDMAFlushWritesOptions, 117), SHOAL_FIELD(gpuDirectRDMAWritesOrdering, 118),
    SHOAL_FIELD(memoryPoolSupportedHandleTypes, 119), SHOAL_FIELD(deferredMappingCudaArraySupported, 121),
    SHOAL_FIELD(ipcEventSupported, 125), SHOAL_FIELD(clusterLaunch, 120), SHOAL_FIELD(unifiedFunctionPointers, 129),
    SHOAL_FIELD(deviceNumaConfig, 130), SHOAL_FIELD(deviceNumaId, 131), SHOAL_FIELD(mpsEnabled, 133), SHOAL_FIELD(hostNumaId, 134),
    SHOAL_FIELD(gpuPciDeviceID, 139), SHOAL_FIELD(gpuPciSubsystemID, 140), SHOAL_FIELD(hostNumaMultinodeIpcSupported, 143),
};

constexpr SizeField kSizeFields[] = {
    SHOAL_FIELD(sharedMemPerBlock, 8), SHOAL_FIELD(memPitch, 11), SHOAL_FIELD(totalConstMem, 9), SHOAL_FIELD(textureAlignment, 14),
    SHOAL_FIELD(texturePitchAlignment, 51), SHOAL_FIELD(surfaceAlignment, 30), SHOAL_FIELD(sharedMemPerMultiprocessor, 81),
    SHOAL_FIELD(sharedMemPerBlockOptin, 97), SHOAL_FIELD(reservedSharedMemPerBlock, 111),
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
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
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

// The codes are those of the driver.
cudaError_t cudaDeviceGetAttribute(int* value, int attr, int device) {
  return started([&] { return cuDeviceGetAttribute(value, attr, device); });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, int attr, int srcDevice, int dstDevice) {
  return started([&] { return cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attr), srcDevice, dstDevice); });
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
