// What kernels say about themselves, and how many of their blocks a multiprocessor holds.
#include "function.h"

#include <algorithm>

#include "core/device.h"
#include "core/entry.h"


using namespace shoal;

namespace {

// Of one multiprocessor, as the device's attributes say.
constexpr unsigned kMostBlocks = 32, kMostThreads = 2048, kRegisters = 65536, kSharedBytes = 233472;
constexpr int kMostSharedOfBlock = 232448;

enum Attribute {
  maxThreads, sharedBytes, constBytes, localBytes, registers, ptxVersion, binaryVersion, cacheMode, maxDynamicShared, carveout,
  mustSetClusterSize, clusterWidth, clusterHeight, clusterDepth, isNonPortableAllowed, clusterPolicy,
};

template <class Body>
CUresult withFunction(CUfunction handle, const void* out, Body&& body) {
  return inContext([&](auto& context) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<LoadedFunction> function;
    std::shared_ptr<LoadedModule> module;
    if (const CUresult status = findFunction(handle, context, function, module)) return status;
    return body(*function, *module);
  });
}

int activeBlocks(const ptx::Kernel& kernel, int blockSize, size_t dynamicBytes) {
  const auto threads = (static_cast<unsigned>(blockSize) + 31) / 32 * 32;
  if (static_cast<unsigned>(blockSize) > kernel.maxThreads) return 0;
  if (dynamicBytes > kSharedBytes) return 0;
  const uint64_t shared = kernel.sharedBytes + dynamicBytes + ptx::kReservedSharedBytes;
  if (shared > kSharedBytes) return 0;
  const uint64_t byRegisters = kRegisters / (uint64_t{(kernel.registers + 7) / 8 * 8} * threads);
  return static_cast<int>(std::min({uint64_t{kMostBlocks}, uint64_t{kMostThreads / threads}, byRegisters, kSharedBytes / shared}));
}

CUresult maxActiveBlocks(int* count, CUfunction handle, int blockSize, size_t dynamicBytes, unsigned flags) {
  return withFunction(handle, count, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (blockSize <= 0 || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    *count = activeBlocks(*function.kernel, blockSize, dynamicBytes);
    return CUDA_SUCCESS;
  });
}

CUresult potentialBlockSize(int* minGridSize, int* blockSize, CUfunction handle, CUoccupancyB2DSize sharedOf, size_t dynamicBytes, int limit, unsigned flags) {
  return withFunction(handle, minGridSize, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (blockSize == nullptr || limit < 0 || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    const int most = limit == 0 ? static_cast<int>(function.kernel->maxThreads) : std::min(limit, static_cast<int>(function.kernel->maxThreads));
    int bestThreads = 0;
    for (int size = (most + 31) / 32 * 32; size > 0; size -= 32) {
      const int actual = std::min(size, most);
      const int blocks = activeBlocks(*function.kernel, actual, sharedOf == nullptr ? dynamicBytes : sharedOf(actual));
      if (blocks * actual <= bestThreads) continue;
      bestThreads = blocks * actual;
      *blockSize = actual;
      *minGridSize = blocks * static_cast<int>(kMultiprocessors);
    }
    return bestThreads == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

}  // namespace

namespace shoal {

CUresult readAttribute(const ptx::Kernel& kernel, CodeFacts code, FunctionSettings& settings, int attribute, int* value) {
  std::lock_guard lock(settings.mutex);
  switch (attribute) {
    case maxThreads: *value = static_cast<int>(kernel.maxThreads); return CUDA_SUCCESS;
    case sharedBytes: *value = static_cast<int>(kernel.sharedBytes); return CUDA_SUCCESS;
    case constBytes: *value = static_cast<int>(code.constantBytes); return CUDA_SUCCESS;
    case localBytes: *value = static_cast<int>(kernel.localBytes); return CUDA_SUCCESS;
    case registers: *value = static_cast<int>(kernel.registers); return CUDA_SUCCESS;
    case ptxVersion: *value = static_cast<int>(code.target); return CUDA_SUCCESS;
    case binaryVersion: *value = 90; return CUDA_SUCCESS;
    case cacheMode: *value = 0; return CUDA_SUCCESS;
    case maxDynamicShared: *value = settings.maxDynamicShared; return CUDA_SUCCESS;
    case carveout: *value = settings.carveout; return CUDA_SUCCESS;
    case mustSetClusterSize: *value = 0; return CUDA_SUCCESS;
    case clusterWidth: case clusterHeight: case clusterDepth: *value = static_cast<int>(kernel.cluster[attribute - clusterWidth]); return CUDA_SUCCESS;
    case isNonPortableAllowed: *value = settings.isNonPortableClusterAllowed; return CUDA_SUCCESS;
    case clusterPolicy: *value = settings.clusterPolicy; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult writeAttribute(const ptx::Kernel& kernel, FunctionSettings& settings, int attribute, int value) {
  std::lock_guard lock(settings.mutex);
  switch (attribute) {
    case maxDynamicShared:
      if (value < 0 || value > kMostSharedOfBlock - static_cast<int>(kernel.sharedBytes)) return CUDA_ERROR_INVALID_VALUE;
      settings.maxDynamicShared = value;
      return CUDA_SUCCESS;
    case carveout:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      settings.carveout = value;
      return CUDA_SUCCESS;
    case isNonPortableAllowed:
      if (value != 0 && value != 1) return CUDA_ERROR_INVALID_VALUE;
      settings.isNonPortableClusterAllowed = value;
      return CUDA_SUCCESS;
    case clusterPolicy:
      if (value < 0 || value > 2) return CUDA_ERROR_INVALID_VALUE;
      settings.clusterPolicy = value;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult readParameter(const ptx::Kernel& kernel, size_t index, size_t* offset, size_t* size) {
  if (index >= kernel.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel.parameters[index].offset;
  if (size != nullptr) *size = kernel.parameters[index].bytes;
  return CUDA_SUCCESS;
}

}  // namespace shoal

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return withFunction(hfunc, pi, [&](LoadedFunction& function, LoadedModule& module) { return readAttribute(*function.kernel, module.facts(), *function.settings, attrib, pi); });
}
CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  return withFunction(hfunc, &value, [&](LoadedFunction& function, LoadedModule&) { return writeAttribute(*function.kernel, *function.settings, attrib, value); });
}
CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  return withFunction(hfunc, &config, [&](LoadedFunction&, LoadedModule&) { return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; });
}
CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  return withFunction(hfunc, hmod, [&](LoadedFunction&, LoadedModule& module) {
    *hmod = reinterpret_cast<CUmodule>(module.handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  return withFunction(hfunc, name, [&](LoadedFunction& function, LoadedModule&) {
    *name = function.kernel->name.c_str();
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  return withFunction(func, paramOffset, [&](LoadedFunction& function, LoadedModule&) { return readParameter(*function.kernel, paramIndex, paramOffset, paramSize); });
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return withFunction(function, state, [&](LoadedFunction&, LoadedModule&) {
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncLoad(CUfunction function) {
  return withFunction(function, &function, [&](LoadedFunction&, LoadedModule&) { return CUDA_SUCCESS; });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize) {
  return maxActiveBlocks(numBlocks, func, blockSize, dynamicSMemSize, 0);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags) {
  return maxActiveBlocks(numBlocks, func, blockSize, dynamicSMemSize, flags);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
  return potentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags) {
  return potentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, flags);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func, int numBlocks, int blockSize) {
  return withFunction(func, dynamicSmemSize, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (numBlocks <= 0 || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
    const unsigned each = kSharedBytes / static_cast<unsigned>(numBlocks), taken = function.kernel->sharedBytes + ptx::kReservedSharedBytes;
    *dynamicSmemSize = each < taken ? 0 : std::min<size_t>(each - taken, static_cast<size_t>(kMostSharedOfBlock) - function.kernel->sharedBytes);
    return CUDA_SUCCESS;
  });
}
CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func, const CUlaunchConfig* config) {
  return withFunction(func, clusterSize, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *clusterSize = function.settings->isNonPortableClusterAllowed != 0 ? 16 : 8;
    return CUDA_SUCCESS;
  });
}
CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func, const CUlaunchConfig* config) {
  return withFunction(func, numClusters, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto threads = uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
    if (threads == 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
    const int blocks = activeBlocks(*function.kernel, static_cast<int>(threads), config->sharedMemBytes) * static_cast<int>(kMultiprocessors);
    const unsigned* cluster = function.kernel->cluster;
    const int size = std::max(1, static_cast<int>(cluster[0] * cluster[1] * cluster[2]));
    *numClusters = blocks / size;
    return CUDA_SUCCESS;
  });
}
