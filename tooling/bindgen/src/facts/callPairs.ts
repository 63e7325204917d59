/**
 * Functions of libcudart and their equivalents in libcuda under another name, with parameters that lower alike. All
 * other pairs differ only in the prefix.
 */
export const renamedPairs: Readonly<Record<string, string>> = {
  cudaCreateSurfaceObject: 'cuSurfObjectCreate',
  cudaDestroySurfaceObject: 'cuSurfObjectDestroy',
  cudaDestroyTextureObject: 'cuTexObjectDestroy',
  cudaDeviceGetCacheConfig: 'cuCtxGetCacheConfig',
  cudaDeviceGetLimit: 'cuCtxGetLimit',
  cudaDeviceGetStreamPriorityRange: 'cuCtxGetStreamPriorityRange',
  cudaDeviceSetCacheConfig: 'cuCtxSetCacheConfig',
  cudaDeviceSetLimit: 'cuCtxSetLimit',
  cudaDeviceSynchronize: 'cuCtxSynchronize',
  cudaEventCreateWithFlags: 'cuEventCreate',
  cudaFree: 'cuMemFree',
  cudaFreeArray: 'cuArrayDestroy',
  cudaFreeAsync: 'cuMemFreeAsync',
  cudaFreeHost: 'cuMemFreeHost',
  cudaFreeMipmappedArray: 'cuMipmappedArrayDestroy',
  cudaGetDeviceCount: 'cuDeviceGetCount',
  cudaGetMipmappedArrayLevel: 'cuMipmappedArrayGetLevel',
  cudaHostAlloc: 'cuMemHostAlloc',
  cudaHostGetDevicePointer: 'cuMemHostGetDevicePointer',
  cudaHostGetFlags: 'cuMemHostGetFlags',
  cudaHostRegister: 'cuMemHostRegister',
  cudaHostUnregister: 'cuMemHostUnregister',
  cudaMalloc: 'cuMemAlloc',
  cudaMallocAsync: 'cuMemAllocAsync',
  cudaMallocFromPoolAsync: 'cuMemAllocFromPoolAsync',
  cudaMallocManaged: 'cuMemAllocManaged',
  cudaMemsetAsync: 'cuMemsetD8Async',
  cudaStreamCreateWithFlags: 'cuStreamCreate',
}

/** Pairs with matching names and parameters but different behaviour, and the difference. */
export const unlikePairs: Readonly<Record<string, string>> = {
  cudaEventCreate: 'takes no flags',
  cudaStreamCreate: 'takes no flags',
}
