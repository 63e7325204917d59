/**
 * Functions of libcudart that do what a function of another name does in libcuda, with parameters that lower alike.
 * All others with such a partner have its name, but for the prefix.
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

/** Pairs by name and parameters that do not do the same, each with what is different. */
export const unlikePairs: Readonly<Record<string, string>> = {
  cudaEventCreate: 'takes no flags',
  cudaStreamCreate: 'takes no flags',
}
