// Memory pools, and IPC of memory and events, through the driver.
#include "entry.h"

using namespace shoal::cudart;

SHOAL_RT_TWIN(cudaMallocFromPoolAsync, _ptsz, (void** ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream),
              cuMemAllocFromPoolAsync(addressOut(ptr), size, memPool, stream),
              cuMemAllocFromPoolAsync_ptsz(addressOut(ptr), size, memPool, stream))

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* memPool, int device) {
  return started([&] { return cuDeviceGetDefaultMemPool(memPool, device); });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* memPool, int device) {
  return started([&] { return cuDeviceGetMemPool(memPool, device); });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  return started([&] { return cuDeviceSetMemPool(device, memPool); });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* memPool, const cudaMemPoolProps* poolProps) {
  return onDevice([&] { return cuMemPoolCreate(memPool, poolProps); });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
  return onDevice([&] { return cuMemPoolDestroy(memPool); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep) {
  return onDevice([&] { return cuMemPoolTrimTo(memPool, minBytesToKeep); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, int attr, void* value) {
  return onDevice([&] { return cuMemPoolGetAttribute(memPool, static_cast<CUmemPool_attribute>(attr), value); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, int attr, void* value) {
  return onDevice([&] { return cuMemPoolSetAttribute(memPool, static_cast<CUmemPool_attribute>(attr), value); });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const cudaMemAccessDesc* descList, size_t count) {
  return onDevice([&] { return cuMemPoolSetAccess(memPool, descList, count); });
}

cudaError_t cudaMemPoolGetAccess(int* flags, cudaMemPool_t memPool, cudaMemLocation* location) {
  return onDevice([&] { return cuMemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), memPool, location); });
}

cudaError_t cudaMemPoolExportToShareableHandle(void* shareableHandle, cudaMemPool_t memPool, int handleType,
                                               unsigned int flags) {
  return onDevice([&] {
    return cuMemPoolExportToShareableHandle(shareableHandle, memPool,
                                            static_cast<CUmemAllocationHandleType>(handleType), flags);
  });
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* memPool, void* shareableHandle, int handleType,
                                                 unsigned int flags) {
  return onDevice([&] {
    return cuMemPoolImportFromShareableHandle(memPool, shareableHandle,
                                              static_cast<CUmemAllocationHandleType>(handleType), flags);
  });
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* exportData, void* ptr) {
  return onDevice([&] { return cuMemPoolExportPointer(exportData, address(ptr)); });
}

cudaError_t cudaMemPoolImportPointer(void** ptr, cudaMemPool_t memPool, cudaMemPoolPtrExportData* exportData) {
  return onDevice([&] { return cuMemPoolImportPointer(addressOut(ptr), memPool, exportData); });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* devPtr) {
  return onDevice([&] { return cuIpcGetMemHandle(handle, address(devPtr)); });
}

cudaError_t cudaIpcOpenMemHandle(void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags) {
  return onDevice([&] { return cuIpcOpenMemHandle_v2(addressOut(devPtr), handle, flags); });
}

cudaError_t cudaIpcCloseMemHandle(void* devPtr) {
  return onDevice([&] { return cuIpcCloseMemHandle(address(devPtr)); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return onDevice([&] { return cuIpcGetEventHandle(handle, event); });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return onDevice([&] { return cuIpcOpenEventHandle(event, handle); });
}
