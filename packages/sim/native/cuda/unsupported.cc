// The functions of libcuda that the software device lacks. Each name exists and returns CUDA_ERROR_NOT_SUPPORTED.
#include "core/entry.h"

extern "C" __attribute__((visibility("hidden"))) CUresult shoalSimUnsupported(void);

// The parameters do not matter, because none is read.
CUresult shoalSimUnsupported(void) {
  return shoal::initialised([] { return CUDA_ERROR_NOT_SUPPORTED; });
}

// Defines each name as an alias of that one function, without a declaration.
#define SHOAL_UNSUPPORTED(name) \
  __asm__(".globl " #name "\n.type " #name ", %function\n.set " #name ", shoalSimUnsupported");
#include "unsupported.gen.h"
