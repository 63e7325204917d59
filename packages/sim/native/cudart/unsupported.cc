// What libcudart has and the software device lacks: each name is there, and answers that the function is not supported.
#include "entry.h"

extern "C" __attribute__((visibility("hidden"))) cudaError_t shoalSimRuntimeUnsupported(void);

// The functions take whatever they take: nothing of it is read.
cudaError_t shoalSimRuntimeUnsupported(void) {
  return shoal::cudart::started([] { return CUDA_ERROR_NOT_SUPPORTED; });
}

// Names of that one function, without a declaration for each.
#define SHOAL_UNSUPPORTED(name) \
  __asm__(".globl " #name "\n.type " #name ", %function\n.set " #name ", shoalSimRuntimeUnsupported");
#include "unsupported.gen.h"
