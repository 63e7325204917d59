// Attributes of kernels.
#include "function.h"

using namespace shoal;

namespace {

constexpr int kMostSharedOfBlock = 232448;

enum Attribute {
  maxThreads,
  sharedBytes,
  constBytes,
  localBytes,
  registers,
  ptxVersion,
  binaryVersion,
  cacheMode,
  maxDynamicShared,
  carveout,
  mustSetClusterSize,
  clusterWidth,
  clusterHeight,
  clusterDepth,
  isNonPortableAllowed,
  clusterPolicy,
};

}  // namespace

namespace shoal {

CUresult readAttribute(const ptx::Kernel& kernel, CodeFacts code, FunctionSettings& settings, int attribute,
                       int* value) {
  std::lock_guard lock(settings.mutex);
  switch (attribute) {
    case maxThreads: *value = static_cast<int>(kernel.maxThreads); return CUDA_SUCCESS;
    case sharedBytes: *value = static_cast<int>(kernel.sharedBytes); return CUDA_SUCCESS;
    case constBytes: *value = static_cast<int>(code.constantBytes); return CUDA_SUCCESS;
    case localBytes: *value = static_cast<int>(kernel.toldLocalBytes); return CUDA_SUCCESS;
    case registers: *value = static_cast<int>(kernel.registers); return CUDA_SUCCESS;
    case ptxVersion: *value = static_cast<int>(code.target); return CUDA_SUCCESS;
    case binaryVersion: *value = 90; return CUDA_SUCCESS;
    case cacheMode: *value = 0; return CUDA_SUCCESS;
    case maxDynamicShared: *value = settings.maxDynamicShared; return CUDA_SUCCESS;
    case carveout: *value = settings.carveout; return CUDA_SUCCESS;
    case mustSetClusterSize: *value = kernel.mustSetCluster ? 1 : 0; return CUDA_SUCCESS;
    case clusterWidth:
    case clusterHeight:
    case clusterDepth:
      *value = static_cast<int>((kernel.cluster[0] != 0 ? kernel.cluster : settings.cluster)[attribute - clusterWidth]);
      return CUDA_SUCCESS;
    case isNonPortableAllowed: *value = settings.isNonPortableClusterAllowed; return CUDA_SUCCESS;
    case clusterPolicy: *value = settings.clusterPolicy; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult writeAttribute(const ptx::Kernel& kernel, FunctionSettings& settings, int attribute, int value) {
  std::lock_guard lock(settings.mutex);
  switch (attribute) {
    case maxDynamicShared:
      if (value < 0 || value > kMostSharedOfBlock - static_cast<int>(kernel.sharedBytes))
        return CUDA_ERROR_INVALID_VALUE;
      settings.maxDynamicShared = value;
      return CUDA_SUCCESS;
    case carveout:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      settings.carveout = value;
      return CUDA_SUCCESS;
    case clusterWidth:
    case clusterHeight:
    case clusterDepth:
      // A cluster size in the code cannot be overridden.
      if (kernel.cluster[0] != 0) return CUDA_ERROR_NOT_PERMITTED;
      if (value < 0) return CUDA_ERROR_INVALID_VALUE;
      settings.cluster[attribute - clusterWidth] = static_cast<unsigned>(value);
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

CUresult findCluster(const LoadedFunction& function, const ptx::Dimensions& grid, const ptx::Dimensions* given,
                     ptx::Dimensions& cluster) {
  const ptx::Kernel& kernel = *function.kernel;
  std::lock_guard lock(function.settings->mutex);
  const unsigned* set = function.settings->cluster;
  const bool isOfCode = kernel.cluster[0] != 0;
  const unsigned* required = isOfCode ? kernel.cluster : set;
  const bool isWhole = required[0] != 0 && required[1] != 0 && required[2] != 0,
             isPart = !isWhole && (required[0] != 0 || required[1] != 0 || required[2] != 0);
  cluster = given != nullptr ? *given
            : isWhole        ? ptx::Dimensions{required[0], required[1], required[2]}
                             : ptx::Dimensions{};
  if (given == nullptr && (isPart || (kernel.mustSetCluster && !isOfCode))) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const unsigned sizes[3] = {cluster.x, cluster.y, cluster.z}, blocks[3] = {grid.x, grid.y, grid.z};
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (required[axis] != 0 && sizes[axis] != required[axis]) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (sizes[axis] == 0 || blocks[axis] % sizes[axis] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  return cluster.count() > (function.settings->isNonPortableClusterAllowed != 0 ? 16 : 8)
             ? CUDA_ERROR_INVALID_CLUSTER_SIZE
             : CUDA_SUCCESS;
}

CUresult readParameter(const ptx::Kernel& kernel, size_t index, size_t* offset, size_t* size) {
  if (index >= kernel.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel.parameters[index].offset;
  if (size != nullptr) *size = kernel.parameters[index].bytes;
  return CUDA_SUCCESS;
}

}  // namespace shoal

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return withFunction(hfunc, pi, [&](LoadedFunction& function, LoadedModule& module) {
    return readAttribute(*function.kernel, module.facts(), *function.settings, attrib, pi);
  });
}
CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  return withFunction(hfunc, &value, [&](LoadedFunction& function, LoadedModule&) {
    return writeAttribute(*function.kernel, *function.settings, attrib, value);
  });
}
CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  return withFunction(hfunc, &config, [&](LoadedFunction&, LoadedModule&) {
    return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
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
  return withFunction(func, paramOffset, [&](LoadedFunction& function, LoadedModule&) {
    return readParameter(*function.kernel, paramIndex, paramOffset, paramSize);
  });
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
