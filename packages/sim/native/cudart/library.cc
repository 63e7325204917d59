// Libraries, kernels and launches, all of the driver: a `cudaKernel_t` is a `CUkernel`.
#include "entry.h"

using namespace shoal::cudart;

namespace {

CUfunction function(const void* kernel) { return static_cast<CUfunction>(const_cast<void*>(kernel)); }

// A kernel, and the current device.
struct Asked {
  CUkernel kernel;
  CUresult status = CUDA_SUCCESS;
  int operator()(CUfunction_attribute attribute) {
    int value = 0;
    if (status == CUDA_SUCCESS) status = cuFuncGetAttribute(&value, attribute, reinterpret_cast<CUfunction>(kernel));
    return value;
  }
};

CUlaunchConfig configFor(dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream, CUlaunchAttribute* attributes,
                         unsigned count) {
  CUlaunchConfig config{};
  config.gridDimX = grid.x, config.gridDimY = grid.y, config.gridDimZ = grid.z;
  config.blockDimX = block.x, config.blockDimY = block.y, config.blockDimZ = block.z;
  config.sharedMemBytes = static_cast<unsigned>(sharedBytes);
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  return config;
}

template <class Launch>
CUresult launch(Launch&& call, const void* kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                cudaStream_t stream, bool isCooperative) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  const CUlaunchConfig config =
      configFor(grid, block, sharedBytes, stream, isCooperative ? &cooperative : nullptr, isCooperative ? 1 : 0);
  return call(&config, function(kernel), args, nullptr);
}

}  // namespace

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jitOptions,
                                void** jitOptionsValues, unsigned int numJitOptions, cudaLibraryOption* libraryOptions,
                                void** libraryOptionValues, unsigned int numLibraryOptions) {
  return onDevice([&] {
    return cuLibraryLoadData(library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                             libraryOptionValues, numLibraryOptions);
  });
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* fileName, cudaJitOption* jitOptions,
                                    void** jitOptionsValues, unsigned int numJitOptions,
                                    cudaLibraryOption* libraryOptions, void** libraryOptionValues,
                                    unsigned int numLibraryOptions) {
  return onDevice([&] {
    return cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                                 libraryOptionValues, numLibraryOptions);
  });
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return started([&] { return cuLibraryUnload(library); });
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* pKernel, cudaLibrary_t library, const char* name) {
  return onDevice([&] { return cuLibraryGetKernel(pKernel, library, name); });
}
cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t lib) {
  return onDevice([&] { return cuLibraryGetKernelCount(count, lib); });
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int numKernels, cudaLibrary_t lib) {
  return onDevice([&] { return cuLibraryEnumerateKernels(kernels, numKernels, lib); });
}
cudaError_t cudaLibraryGetGlobal(void** dptr, size_t* bytes, cudaLibrary_t library, const char* name) {
  return onDevice([&] { return cuLibraryGetGlobal(addressOut(dptr), bytes, library, name); });
}
cudaError_t cudaLibraryGetManaged(void** dptr, size_t* bytes, cudaLibrary_t library, const char* name) {
  return onDevice([&] { return cuLibraryGetManaged(addressOut(dptr), bytes, library, name); });
}
cudaError_t cudaLibraryGetUnifiedFunction(void** fptr, cudaLibrary_t library, const char* symbol) {
  return onDevice([&] { return cuLibraryGetUnifiedFunction(fptr, library, symbol); });
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attr, int value, int device) {
  return onDevice([&] { return cuKernelSetAttribute(attr, value, kernel, device); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, const void* func) {
  return onDevice([&]() -> CUresult {
    if (attr == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Asked ask{static_cast<CUkernel>(const_cast<void*>(func))};
    cudaFuncAttributes found{};
    found.sharedSizeBytes = static_cast<size_t>(ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    found.constSizeBytes = static_cast<size_t>(ask(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    found.localSizeBytes = static_cast<size_t>(ask(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    found.maxThreadsPerBlock = ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    found.numRegs = ask(CU_FUNC_ATTRIBUTE_NUM_REGS);
    found.ptxVersion = ask(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    found.binaryVersion = ask(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    found.cacheModeCA = ask(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    found.maxDynamicSharedSizeBytes = ask(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    found.preferredShmemCarveout = ask(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    found.clusterDimMustBeSet = ask(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
    found.requiredClusterWidth = ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
    found.requiredClusterHeight = ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
    found.requiredClusterDepth = ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    found.nonPortableClusterSizeAllowed = ask(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    found.clusterSchedulingPolicyPreference = ask(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    if (ask.status == CUDA_SUCCESS) *attr = found;
    return ask.status;
  });
}
cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  return onDevice([&] { return cuFuncSetAttribute(function(func), attr, value); });
}
cudaError_t cudaFuncSetCacheConfig(const void* func, cudaFuncCache cacheConfig) {
  return onDevice([&] { return cuFuncSetCacheConfig(function(func), cacheConfig); });
}
cudaError_t cudaFuncGetName(const char** name, const void* func) {
  return onDevice([&] { return cuFuncGetName(name, function(func)); });
}
cudaError_t cudaFuncGetParamInfo(const void* func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  return onDevice([&] { return cuFuncGetParamInfo(function(func), paramIndex, paramOffset, paramSize); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* func, int blockSize,
                                                          size_t dynamicSMemSize) {
  return onDevice([&] {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, function(func), blockSize, dynamicSMemSize);
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, const void* func, int blockSize,
                                                                   size_t dynamicSMemSize, unsigned int flags) {
  return onDevice([&] {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, function(func), blockSize, dynamicSMemSize,
                                                                flags);
  });
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, const void* func, int numBlocks,
                                                      int blockSize) {
  return onDevice(
      [&] { return cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, function(func), numBlocks, blockSize); });
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* clusterSize, const void* func,
                                                 const cudaLaunchConfig_t* launchConfig) {
  return onDevice([&] { return cuOccupancyMaxPotentialClusterSize(clusterSize, function(func), launchConfig); });
}
cudaError_t cudaOccupancyMaxActiveClusters(int* numClusters, const void* func, const cudaLaunchConfig_t* launchConfig) {
  return onDevice([&] { return cuOccupancyMaxActiveClusters(numClusters, function(func), launchConfig); });
}

SHOAL_RT_TWIN(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t* config, const void* func, void** args),
              cuLaunchKernelEx(config, function(func), args, nullptr),
              cuLaunchKernelEx_ptsz(config, function(func), args, nullptr))
SHOAL_RT_TWIN(cudaLaunchKernel, _ptsz,
              (const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem, cudaStream_t stream),
              launch(cuLaunchKernelEx, func, gridDim, blockDim, args, sharedMem, stream, false),
              launch(cuLaunchKernelEx_ptsz, func, gridDim, blockDim, args, sharedMem, stream, false))
SHOAL_RT_TWIN(cudaLaunchCooperativeKernel, _ptsz,
              (const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem, cudaStream_t stream),
              launch(cuLaunchKernelEx, func, gridDim, blockDim, args, sharedMem, stream, true),
              launch(cuLaunchKernelEx_ptsz, func, gridDim, blockDim, args, sharedMem, stream, true))
