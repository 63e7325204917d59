// What functions of modules and kernels of libraries say about themselves.
#pragma once

#include "module.h"

namespace shoal {

CUresult readAttribute(const ptx::Kernel& kernel, CodeFacts code, FunctionSettings& settings, int attribute, int* value);
CUresult writeAttribute(const ptx::Kernel& kernel, FunctionSettings& settings, int attribute, int value);
CUresult readParameter(const ptx::Kernel& kernel, size_t index, size_t* offset, size_t* size);

}  // namespace shoal
