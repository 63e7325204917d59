// Kernel launches: checked as the driver checks them, then queued like other stream work.
#include <cstring>

#include "core/context.h"
#include "core/device.h"
#include "core/green.h"
#include "core/entry.h"
#include "core/launchattributes.h"
#include "core/stream.h"
#include "engine.h"
#include "function.h"
#include "graph/capture.h"
#include "kernelwork.h"
#include "module.h"

using namespace shoal;

namespace {

// Copies the arguments to the offsets of the kernel's parameters.
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
  if (grid.count() == 0 || block.count() == 0 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    return CUDA_ERROR_INVALID_VALUE;
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || block.count() > 1024 || block.count() > kernel.maxThreads)
    return CUDA_ERROR_INVALID_VALUE;
  const unsigned* required = kernel.requiredThreads;
  if (required[0] != 0 && (block.x != required[0] || block.y != required[1] || block.z != required[2]))
    return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard lock(function.settings->mutex);
    if (shape.dynamicSharedBytes > static_cast<unsigned>(function.settings->maxDynamicShared))
      return CUDA_ERROR_INVALID_VALUE;
  }
  const ptx::Dimensions given = shape.cluster;
  if (const CUresult status = findCluster(function, grid, hasCluster ? &given : nullptr, shape.cluster)) return status;
  if (!shape.isCooperative) return CUDA_SUCCESS;
  const int blocks = activeBlocks(function, static_cast<int>(block.count()), shape.dynamicSharedBytes);
  return grid.count() > static_cast<uint64_t>(blocks) * shape.countOfMultiprocessors()
             ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
             : CUDA_SUCCESS;
}

CUresult launch(CUfunction handle, CUstream streamHandle, bool perThread, const ptx::LaunchShape& shape,
                LaunchAttributes attributes, void** pointers, void** extra) {
  return onStream(streamHandle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (const CUresult status = checkImplicit(stream)) return status;
    std::shared_ptr<KernelWork> work;
    if (const CUresult status =
            KernelWork::create(handle, context, shape, std::move(attributes), pointers, extra, work))
      return status;
    if (work->module->context != context) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->green) work->shape.multiprocessors = stream->green->multiprocessors;
    if (stream->isCaptured) work->becomeNode(*stream);
    else if (work->launchesGraphs()) return CUDA_ERROR_NOT_SUPPORTED;  // only allowed in a graph node
    return submit(stream, std::move(work));
  });
}

LaunchAttributes cooperative() {
  LaunchAttributes attributes;
  attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = 1;
  return attributes;
}

CUresult launchConfigured(const CUlaunchConfig* config, CUfunction handle, void** pointers, void** extra,
                          bool perThread) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return initialised([] { return CUDA_ERROR_INVALID_VALUE; });
  ptx::LaunchShape shape;
  shape.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  shape.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  shape.dynamicSharedBytes = config->sharedMemBytes;
  LaunchAttributes attributes;
  for (unsigned index = 0; index < config->numAttrs; ++index) {
    const CUlaunchAttribute& attribute = config->attrs[index];
    // CUDA documents this attribute for streams only. An H200 refuses it in a launch with this code.
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || !isValidAttribute(attribute.id, attribute.value))
      return CUDA_ERROR_INVALID_VALUE;
    attributes[attribute.id] = attribute.value;
  }
  return launch(handle, config->hStream, perThread, shape, std::move(attributes), pointers, extra);
}

}  // namespace

CUresult KernelWork::create(CUfunction handle, const std::shared_ptr<Context>& context, const ptx::LaunchShape& shape,
                            LaunchAttributes attributes, void** pointers, void** extra,
                            std::shared_ptr<KernelWork>& work) {
  work = std::make_shared<KernelWork>();
  if (const CUresult status = findFunction(handle, context, work->function, work->module)) return status;
  work->shape = shape;
  work->attributes = std::move(attributes);
  work->applyAttributes();
  return gather(*work->function->kernel, pointers, extra, work->arguments_);
}

std::shared_ptr<KernelWork> KernelWork::with(LaunchAttributes other) const {
  auto copy = std::make_shared<KernelWork>(*this);
  copy->attributes = std::move(other);
  copy->shape.cluster = {};
  copy->shape.isCooperative = false;
  copy->pointers_.clear();
  copy->applyAttributes();
  return copy;
}

void KernelWork::becomeNode(const Stream& stream) {
  for (auto each = attributes.begin(); each != attributes.end();)
    each = isNodeAttribute(each->first) ? std::next(each) : attributes.erase(each);
  // Kernels inherit the stream's priority.
  if (const auto [found, isNew] = attributes.try_emplace(CU_LAUNCH_ATTRIBUTE_PRIORITY); isNew)
    found->second.priority = stream.priority;
  auto& policy = attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE].clusterSchedulingPolicyPreference;
  std::lock_guard lock(function->settings->mutex);
  if (policy == CU_CLUSTER_SCHEDULING_POLICY_DEFAULT)
    policy = static_cast<CUclusterSchedulingPolicy>(function->settings->clusterPolicy);
  // A node names the device's default policy explicitly.
  if (policy == CU_CLUSTER_SCHEDULING_POLICY_DEFAULT) policy = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
}

void KernelWork::applyAttributes() {
  if (const auto found = attributes.find(CU_LAUNCH_ATTRIBUTE_PRIORITY); found != attributes.end())
    found->second.priority = Stream::nearestPriority(found->second.priority);
  if (const auto found = attributes.find(CU_LAUNCH_ATTRIBUTE_COOPERATIVE); found != attributes.end())
    shape.isCooperative = found->second.cooperative != 0;
  if (const auto found = attributes.find(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION); found != attributes.end()) {
    const auto& [x, y, z] = found->second.clusterDim;
    shape.cluster = {x, y, z};
  }
}

CUresult KernelWork::prepare(const std::shared_ptr<Stream>&, Operation& operation) const {
  ptx::LaunchShape checked = shape;
  if (const CUresult status =
          checkShape(*function, checked, attributes.count(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) != 0))
    return status;
  operation.run = [self = std::static_pointer_cast<const KernelWork>(shared_from_this()), checked] {
    const LoadedModule& module = *self->module;
    return ptxEngine().run(module.context, module.code, *self->function->kernel, checked, self->arguments_,
                           module.heap);
  };
  return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS KernelWork::parameters() const {
  if (pointers_.empty()) {
    for (auto& parameter : function->kernel->parameters)
      pointers_.push_back(const_cast<uint8_t*>(arguments_.data()) + parameter.offset);
  }
  CUDA_KERNEL_NODE_PARAMS shown{};
  shown.func = reinterpret_cast<CUfunction>(function->handle);
  shown.gridDimX = shape.grid.x, shown.gridDimY = shape.grid.y, shown.gridDimZ = shape.grid.z;
  shown.blockDimX = shape.block.x, shown.blockDimY = shape.block.y, shown.blockDimZ = shape.block.z;
  shown.sharedMemBytes = shape.dynamicSharedBytes;
  shown.kernelParams = pointers_.empty() ? nullptr : pointers_.data();
  shown.ctx = module->context->handle();
  return shown;
}

SHOAL_TWIN(cuLaunchKernel, _ptsz,
           (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
            unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
            void** kernelParams, void** extra),
           launch(f, hStream, perThread,
                  {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, {}, sharedMemBytes, false}, {},
                  kernelParams, extra))
SHOAL_TWIN(cuLaunchCooperativeKernel, _ptsz,
           (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
            unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
            void** kernelParams),
           launch(f, hStream, perThread,
                  {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, {}, sharedMemBytes, false},
                  cooperative(), kernelParams, nullptr))
SHOAL_TWIN(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra),
           launchConfigured(config, f, kernelParams, extra, perThread))
