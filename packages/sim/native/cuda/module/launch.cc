// Launches: what they ask for is checked as the driver does, and then queued like all other work of a stream.
#include "ptx/launch.h"

#include <cstring>

#include "core/context.h"
#include "core/entry.h"
#include "core/stream.h"
#include "module.h"

using namespace shoal;

namespace {

constexpr unsigned kMultiprocessors = 4;

// What the parameters point to, laid out as the kernel has it.
CUresult gather(const ptx::Kernel& kernel, void** pointers, void** extra, std::vector<uint8_t>& to) {
  to.resize(kernel.parameterBytes);
  if (pointers != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (extra != nullptr) {
    const void* buffer = nullptr;
    const size_t* size = nullptr;
    for (size_t at = 0; extra[at] != nullptr; at += 2) {
      const auto what = reinterpret_cast<uintptr_t>(extra[at]);
      if (what == 1) buffer = extra[at + 1];
      else if (what == 2) size = static_cast<const size_t*>(extra[at + 1]);
      else return CUDA_ERROR_INVALID_VALUE;
    }
    if (kernel.parameterBytes == 0) return CUDA_SUCCESS;
    if (buffer == nullptr || size == nullptr || *size < kernel.parameterBytes) return CUDA_ERROR_INVALID_VALUE;
    memcpy(to.data(), buffer, kernel.parameterBytes);
    return CUDA_SUCCESS;
  }
  if (pointers == nullptr) return kernel.parameters.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  for (size_t index = 0; index < kernel.parameters.size(); ++index) {
    if (pointers[index] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memcpy(to.data() + kernel.parameters[index].offset, pointers[index], kernel.parameters[index].bytes);
  }
  return CUDA_SUCCESS;
}

CUresult checkShape(LoadedFunction& function, ptx::LaunchShape& shape, bool hasCluster) {
  const ptx::Kernel& kernel = *function.kernel;
  const ptx::Dimensions &grid = shape.grid, &block = shape.block;
  if (grid.count() == 0 || block.count() == 0 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) return CUDA_ERROR_INVALID_VALUE;
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || block.count() > 1024 || block.count() > kernel.maxThreads) return CUDA_ERROR_INVALID_VALUE;
  const unsigned* required = kernel.requiredThreads;
  if (required[0] != 0 && (block.x != required[0] || block.y != required[1] || block.z != required[2])) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard lock(function.mutex);
    if (shape.dynamicSharedBytes > static_cast<unsigned>(function.maxDynamicShared)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (kernel.cluster[0] != 0) {
    if (hasCluster && (shape.cluster.x != kernel.cluster[0] || shape.cluster.y != kernel.cluster[1] || shape.cluster.z != kernel.cluster[2])) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    shape.cluster = {kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]};
  }
  const ptx::Dimensions& cluster = shape.cluster;
  const uint64_t most = function.isNonPortableClusterAllowed != 0 ? 16 : 8;
  if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0 || cluster.count() > most) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (!shape.isCooperative) return CUDA_SUCCESS;
  int blocks = 0;
  const CUresult status = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reinterpret_cast<CUfunction>(function.handle), static_cast<int>(block.count()), shape.dynamicSharedBytes);
  if (status != CUDA_SUCCESS) return status;
  return grid.count() > static_cast<uint64_t>(blocks) * kMultiprocessors ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult launch(CUfunction handle, CUstream streamHandle, bool perThread, ptx::LaunchShape shape, bool hasCluster, void** pointers, void** extra) {
  return onStream(streamHandle, perThread, [&](auto& stream, auto& context) -> CUresult {
    std::shared_ptr<LoadedFunction> function;
    std::shared_ptr<LoadedModule> module;
    if (const CUresult status = findFunction(handle, function, module)) return status;
    if (module->context != context) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult status = checkShape(*function, shape, hasCluster)) return status;
    std::vector<uint8_t> parameters;
    if (const CUresult status = gather(*function->kernel, pointers, extra, parameters)) return status;
    Operation operation;
    operation.run = [module, function, shape, context = stream->context, parameters = std::move(parameters)]() mutable {
      ptx::Launch run(context, module->code, *function->kernel, shape, std::move(parameters), module->heap);
      return run.run();
    };
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

CUresult launchConfigured(const CUlaunchConfig* config, CUfunction handle, void** pointers, void** extra, bool perThread) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return initialised([] { return CUDA_ERROR_INVALID_VALUE; });
  ptx::LaunchShape shape;
  shape.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  shape.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  shape.dynamicSharedBytes = config->sharedMemBytes;
  bool hasCluster = false;
  for (unsigned index = 0; index < config->numAttrs; ++index) {
    const CUlaunchAttribute& attribute = config->attrs[index];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) shape.isCooperative = attribute.value.cooperative != 0;
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& [x, y, z] = attribute.value.clusterDim;
    shape.cluster = {x, y, z};
    hasCluster = true;
  }
  return launch(handle, config->hStream, perThread, shape, hasCluster, pointers, extra);
}

}  // namespace

SHOAL_TWIN(cuLaunchKernel, _ptsz,
           (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
            unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void** kernelParams, void** extra),
           launch(f, hStream, perThread, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, {}, sharedMemBytes, false}, false, kernelParams, extra))
SHOAL_TWIN(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra),
           launchConfigured(config, f, kernelParams, extra, perThread))
