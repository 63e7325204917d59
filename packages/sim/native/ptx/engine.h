// The interface between the PTX engine's library and the driver's library. No function throws, because each library has
// its own C++ runtime.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/forengine.h"
#include "heap.h"
#include "link.h"
#include "module.h"
#include "problem.h"
#include "shape.h"

namespace shoal {
class Context;
}

namespace shoal::ptx {

// A Refusal with CUDA_SUCCESS means success.
struct Engine {
  // With `hasManaged`, the managed memory was already filled by an earlier load of the same text.
  Refusal (*load)(std::string_view text, const AllocateMemory& allocate, bool hasManaged,
                  std::shared_ptr<Module>& module);
  // Checks one input alone.
  Refusal (*check)(const LinkInput& input);
  // Links all inputs into one PTX text.
  Refusal (*link)(const std::vector<LinkInput>& inputs, std::string& text);
  // Returns when all blocks of the kernel have ended.
  CUresult (*run)(const std::shared_ptr<Context>& context, const std::shared_ptr<Module>& module, const Kernel& kernel,
                  const LaunchShape& shape, const std::vector<uint8_t>& parameters, const std::shared_ptr<Heap>& heap);
};

}  // namespace shoal::ptx

extern "C" SHOAL_FOR_ENGINE const shoal::ptx::Engine* shoalSimPtxEngine(void);
