// What functions of modules and kernels of libraries say about themselves.
#pragma once

#include "core/entry.h"
#include "module.h"
#include "ptx/shape.h"

namespace shoal {

// With what is loaded of a function in the current context.
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
// The cluster of a launch: that of the launch, which has to be what the kernel asks for; or the kernel's; or one block.
CUresult findCluster(const LoadedFunction& function, const ptx::Dimensions& grid, const ptx::Dimensions* given,
                     ptx::Dimensions& cluster);
// How many blocks a multiprocessor holds. Asks for no current context: nodes of graphs run on other threads.
int activeBlocks(const LoadedFunction& function, int blockSize, uint64_t dynamicBytes);
CUresult readParameter(const ptx::Kernel& kernel, size_t index, size_t* offset, size_t* size);

}  // namespace shoal
