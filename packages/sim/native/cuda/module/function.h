// Attributes of functions of modules and of kernels of libraries.
#pragma once

#include "core/entry.h"
#include "module.h"
#include "ptx/shape.h"

namespace shoal {

// Calls `body` with the function as loaded in the current context.
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

CUresult readAttribute(const ptx::Kernel& kernel, CodeFacts code, FunctionSettings& settings, int attribute,
                       int* value);
CUresult writeAttribute(const ptx::Kernel& kernel, FunctionSettings& settings, int attribute, int value);
// Finds the cluster size of a launch. The launch's own size must agree with the kernel's. Without either, it is one
// block.
CUresult findCluster(const LoadedFunction& function, const ptx::Dimensions& grid, const ptx::Dimensions* given,
                     ptx::Dimensions& cluster);
// The number of blocks that fit on a multiprocessor. Needs no current context, because graph nodes run on other
// threads.
int activeBlocks(const LoadedFunction& function, int blockSize, uint64_t dynamicBytes);
CUresult readParameter(const ptx::Kernel& kernel, size_t index, size_t* offset, size_t* size);

}  // namespace shoal
