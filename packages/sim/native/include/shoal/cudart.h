// The part of the CUDA runtime's C ABI (libcudart 13.0) that the software device speaks: names, values and layouts.
#pragma once

#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

// The runtime's codes are those of the driver wherever both have one.
typedef int cudaError_t;
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUmemoryPool cudaMemPool_t;
typedef void (*cudaHostFn_t)(void* userData);

#define SHOAL_CUDART_VERSION 13000

typedef struct cudaDeviceProp {
  char name[256];
  CUuuid uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  size_t totalConstMem;
  int major;
  int minor;
  size_t textureAlignment;
  size_t texturePitchAlignment;
  int multiProcessorCount;
  int integrated;
  int canMapHostMemory;
  int maxTexture1D;
  int maxTexture1DMipmap;
  int maxTexture2D[2];
  int maxTexture2DMipmap[2];
  int maxTexture2DLinear[3];
  int maxTexture2DGather[2];
  int maxTexture3D[3];
  int maxTexture3DAlt[3];
  int maxTextureCubemap;
  int maxTexture1DLayered[2];
  int maxTexture2DLayered[3];
  int maxTextureCubemapLayered[2];
  int maxSurface1D;
  int maxSurface2D[2];
  int maxSurface3D[3];
  int maxSurface1DLayered[2];
  int maxSurface2DLayered[3];
  int maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
  int memoryBusWidth;
  int l2CacheSize;
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported;
  int sparseCudaArraySupported;
  int hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported;
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported;
  int ipcEventSupported;
  int clusterLaunch;
  int unifiedFunctionPointers;
  int deviceNumaConfig;
  int deviceNumaId;
  int mpsEnabled;
  int hostNumaId;
  unsigned int gpuPciDeviceID;
  unsigned int gpuPciSubsystemID;
  int hostNumaMultinodeIpcSupported;
  int reserved[56];
} cudaDeviceProp;

typedef struct cudaPointerAttributes {
  int type;  // 0 unregistered, 1 host, 2 device, 3 managed
  int device;
  void* devicePointer;
  void* hostPointer;
  long reserved[8];
} cudaPointerAttributes;

typedef enum cudaMemcpyKind SHOAL_INT {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
} cudaMemcpyKind;

// Of the same layout and values as in the driver.
typedef CUmemLocation cudaMemLocation;
typedef CUmem_advise cudaMemoryAdvise;
typedef CUmem_range_attribute cudaMemRangeAttribute;
typedef CUmemAccessDesc cudaMemAccessDesc;
typedef CUmemPoolProps cudaMemPoolProps;
typedef CUmemPoolPtrExportData cudaMemPoolPtrExportData;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUipcEventHandle cudaIpcEventHandle_t;

#define cudaCpuDeviceId (-1)
#define cudaInvalidDeviceId (-2)

#define SHOAL_RT(name, parameters) SHOAL_EXPORT cudaError_t name parameters;
#define SHOAL_RT_PTSZ(name, parameters) SHOAL_RT(name, parameters) SHOAL_RT(name##_ptsz, parameters)
#define SHOAL_RT_PTDS(name, parameters) SHOAL_RT(name, parameters) SHOAL_RT(name##_ptds, parameters)

// Errors and versions
SHOAL_EXPORT const char* cudaGetErrorName(cudaError_t error);
SHOAL_EXPORT const char* cudaGetErrorString(cudaError_t error);
SHOAL_RT(cudaGetLastError, (void))
SHOAL_RT(cudaPeekAtLastError, (void))
SHOAL_RT(cudaDriverGetVersion, (int* driverVersion))
SHOAL_RT(cudaRuntimeGetVersion, (int* runtimeVersion))

// Devices
SHOAL_RT(cudaGetDeviceCount, (int* count))
SHOAL_RT(cudaGetDevice, (int* device))
SHOAL_RT(cudaSetDevice, (int device))
SHOAL_RT(cudaInitDevice, (int device, unsigned int deviceFlags, unsigned int flags))
SHOAL_RT(cudaSetDeviceFlags, (unsigned int flags))
SHOAL_RT(cudaGetDeviceFlags, (unsigned int* flags))
SHOAL_RT(cudaGetDeviceProperties, (cudaDeviceProp* prop, int device))
SHOAL_RT(cudaDeviceGetAttribute, (int* value, int attr, int device))
SHOAL_RT(cudaDeviceGetP2PAttribute, (int* value, int attr, int srcDevice, int dstDevice))
SHOAL_RT(cudaDeviceGetLimit, (size_t* pValue, int limit))
SHOAL_RT(cudaDeviceSetLimit, (int limit, size_t value))
SHOAL_RT(cudaDeviceGetStreamPriorityRange, (int* leastPriority, int* greatestPriority))
SHOAL_RT(cudaDeviceGetPCIBusId, (char* pciBusId, int len, int device))
SHOAL_RT(cudaDeviceGetByPCIBusId, (int* device, const char* pciBusId))
SHOAL_RT(cudaDeviceSynchronize, (void))
SHOAL_RT(cudaDeviceReset, (void))
SHOAL_RT(cudaDeviceCanAccessPeer, (int* canAccessPeer, int device, int peerDevice))
SHOAL_RT(cudaDeviceEnablePeerAccess, (int peerDevice, unsigned int flags))
SHOAL_RT(cudaDeviceDisablePeerAccess, (int peerDevice))
SHOAL_RT(cudaMemGetInfo, (size_t* free, size_t* total))

// Streams and events
SHOAL_RT(cudaStreamCreate, (cudaStream_t* pStream))
SHOAL_RT(cudaStreamCreateWithFlags, (cudaStream_t* pStream, unsigned int flags))
SHOAL_RT(cudaStreamCreateWithPriority, (cudaStream_t* pStream, unsigned int flags, int priority))
SHOAL_RT(cudaStreamDestroy, (cudaStream_t stream))
SHOAL_RT_PTSZ(cudaStreamSynchronize, (cudaStream_t stream))
SHOAL_RT_PTSZ(cudaStreamQuery, (cudaStream_t stream))
SHOAL_RT_PTSZ(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags))
SHOAL_RT_PTSZ(cudaStreamGetFlags, (cudaStream_t stream, unsigned int* flags))
SHOAL_RT_PTSZ(cudaStreamGetPriority, (cudaStream_t stream, int* priority))
SHOAL_RT_PTSZ(cudaStreamGetId, (cudaStream_t stream, unsigned long long* streamId))
SHOAL_RT_PTSZ(cudaStreamGetDevice, (cudaStream_t stream, int* device))
SHOAL_RT_PTSZ(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void* userData))
SHOAL_RT(cudaEventCreate, (cudaEvent_t* event))
SHOAL_RT(cudaEventCreateWithFlags, (cudaEvent_t* event, unsigned int flags))
SHOAL_RT(cudaEventDestroy, (cudaEvent_t event))
SHOAL_RT_PTSZ(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream))
SHOAL_RT_PTSZ(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags))
SHOAL_RT(cudaEventQuery, (cudaEvent_t event))
SHOAL_RT(cudaEventSynchronize, (cudaEvent_t event))
SHOAL_RT(cudaEventElapsedTime, (float* ms, cudaEvent_t start, cudaEvent_t end))

// Memory
SHOAL_RT(cudaMalloc, (void** devPtr, size_t size))
SHOAL_RT(cudaMallocPitch, (void** devPtr, size_t* pitch, size_t width, size_t height))
SHOAL_RT(cudaFree, (void* devPtr))
SHOAL_RT_PTSZ(cudaMallocAsync, (void** devPtr, size_t size, cudaStream_t stream))
SHOAL_RT_PTSZ(cudaFreeAsync, (void* devPtr, cudaStream_t stream))
SHOAL_RT(cudaMallocHost, (void** ptr, size_t size))
SHOAL_RT(cudaHostAlloc, (void** pHost, size_t size, unsigned int flags))
SHOAL_RT(cudaFreeHost, (void* ptr))
SHOAL_RT(cudaHostGetDevicePointer, (void** pDevice, void* pHost, unsigned int flags))
SHOAL_RT(cudaHostGetFlags, (unsigned int* pFlags, void* pHost))
SHOAL_RT(cudaHostRegister, (void* ptr, size_t size, unsigned int flags))
SHOAL_RT(cudaHostUnregister, (void* ptr))
SHOAL_RT(cudaPointerGetAttributes, (cudaPointerAttributes* attributes, const void* ptr))
SHOAL_RT_PTDS(cudaMemcpy, (void* dst, const void* src, size_t count, cudaMemcpyKind kind))
SHOAL_RT_PTSZ(cudaMemcpyAsync, (void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream))
SHOAL_RT(cudaMemcpyPeer, (void* dst, int dstDevice, const void* src, int srcDevice, size_t count))
SHOAL_RT(cudaMemcpyPeerAsync, (void* dst, int dstDevice, const void* src, int srcDevice, size_t count, cudaStream_t stream))
SHOAL_RT_PTDS(cudaMemset, (void* devPtr, int value, size_t count))
SHOAL_RT_PTSZ(cudaMemsetAsync, (void* devPtr, int value, size_t count, cudaStream_t stream))
SHOAL_RT_PTDS(cudaMemset2D, (void* devPtr, size_t pitch, int value, size_t width, size_t height))
SHOAL_RT_PTSZ(cudaMemset2DAsync, (void* devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream))

// Managed memory
SHOAL_RT(cudaMallocManaged, (void** devPtr, size_t size, unsigned int flags))
SHOAL_RT_PTSZ(cudaStreamAttachMemAsync, (cudaStream_t stream, void* devPtr, size_t length, unsigned int flags))
SHOAL_RT(cudaMemAdvise, (const void* devPtr, size_t count, cudaMemoryAdvise advice, cudaMemLocation location))
SHOAL_RT_PTSZ(cudaMemPrefetchAsync, (const void* devPtr, size_t count, cudaMemLocation location, unsigned int flags, cudaStream_t stream))
SHOAL_RT(cudaMemRangeGetAttribute, (void* data, size_t dataSize, cudaMemRangeAttribute attribute, const void* devPtr, size_t count))
SHOAL_RT(cudaMemRangeGetAttributes, (void** data, size_t* dataSizes, cudaMemRangeAttribute* attributes, size_t numAttributes,
                                     const void* devPtr, size_t count))

// Memory pools
SHOAL_RT_PTSZ(cudaMallocFromPoolAsync, (void** ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream))
SHOAL_RT(cudaDeviceGetDefaultMemPool, (cudaMemPool_t* memPool, int device))
SHOAL_RT(cudaDeviceGetMemPool, (cudaMemPool_t* memPool, int device))
SHOAL_RT(cudaDeviceSetMemPool, (int device, cudaMemPool_t memPool))
SHOAL_RT(cudaMemPoolCreate, (cudaMemPool_t* memPool, const cudaMemPoolProps* poolProps))
SHOAL_RT(cudaMemPoolDestroy, (cudaMemPool_t memPool))
SHOAL_RT(cudaMemPoolTrimTo, (cudaMemPool_t memPool, size_t minBytesToKeep))
SHOAL_RT(cudaMemPoolGetAttribute, (cudaMemPool_t memPool, int attr, void* value))
SHOAL_RT(cudaMemPoolSetAttribute, (cudaMemPool_t memPool, int attr, void* value))
SHOAL_RT(cudaMemPoolSetAccess, (cudaMemPool_t memPool, const cudaMemAccessDesc* descList, size_t count))
SHOAL_RT(cudaMemPoolGetAccess, (int* flags, cudaMemPool_t memPool, cudaMemLocation* location))
SHOAL_RT(cudaMemPoolExportToShareableHandle, (void* shareableHandle, cudaMemPool_t memPool, int handleType, unsigned int flags))
SHOAL_RT(cudaMemPoolImportFromShareableHandle, (cudaMemPool_t* memPool, void* shareableHandle, int handleType, unsigned int flags))
SHOAL_RT(cudaMemPoolExportPointer, (cudaMemPoolPtrExportData* exportData, void* ptr))
SHOAL_RT(cudaMemPoolImportPointer, (void** ptr, cudaMemPool_t memPool, cudaMemPoolPtrExportData* exportData))

// Between processes
SHOAL_RT(cudaIpcGetMemHandle, (cudaIpcMemHandle_t* handle, void* devPtr))
SHOAL_RT(cudaIpcOpenMemHandle, (void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags))
SHOAL_RT(cudaIpcCloseMemHandle, (void* devPtr))
SHOAL_RT(cudaIpcGetEventHandle, (cudaIpcEventHandle_t* handle, cudaEvent_t event))
SHOAL_RT(cudaIpcOpenEventHandle, (cudaEvent_t* event, cudaIpcEventHandle_t handle))

#ifdef __cplusplus
}
#endif
