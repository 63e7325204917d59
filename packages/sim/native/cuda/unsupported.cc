// What libcuda has and the software device lacks: each name is there, and answers that the function is not supported.
#include "core/entry.h"

extern "C" __attribute__((visibility("hidden"))) CUresult shoalSimUnsupported(void);

// The functions take whatever they take: nothing of it is read.
CUresult shoalSimUnsupported(void) {
  return shoal::initialised([] { return CUDA_ERROR_NOT_SUPPORTED; });
}

// Names of that one function, without a declaration for each.
#define SHOAL_UNSUPPORTED(name) \
  __asm__(".globl " #name "\n.type " #name ", %function\n.set " #name ", shoalSimUnsupported");
#include "unsupported.gen.h"
