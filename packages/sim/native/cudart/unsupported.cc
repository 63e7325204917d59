// The functions of libcudart that the software device lacks. Each name exists and returns cudaErrorNotSupported.
#include "entry.h"

extern "C" __attribute__((visibility("hidden"))) cudaError_t shoalSimRuntimeUnsupported(void);

// The parameters do not matter, because none is read.
cudaError_t shoalSimRuntimeUnsupported(void) {
  return shoal::cudart::started([] { return CUDA_ERROR_NOT_SUPPORTED; });
}

// Defines each name as an alias of that one function, without a declaration.
#define SHOAL_UNSUPPORTED(name) \
  __asm__(".globl " #name "\n.type " #name ", %function\n.set " #name ", shoalSimRuntimeUnsupported");
#include "unsupported.gen.h"
