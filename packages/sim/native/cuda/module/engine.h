// The PTX engine: a separate library next to the driver's, loaded with the first module.
#pragma once

#include <utility>

#include "ptx/engine.h"

namespace shoal {

// Throws a Refusal if the library cannot be loaded.
const ptx::Engine& ptxEngine();

inline void throwIfRefused(ptx::Refusal refusal) {
  if (refusal.status != CUDA_SUCCESS) throw std::move(refusal);
}

}  // namespace shoal
