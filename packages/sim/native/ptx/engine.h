// What the library of the PTX engine offers to the driver's library. Nothing throws, because each has a C++ runtime of
// its own.
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

// A status of CUDA_SUCCESS is no refusal.
struct Engine {
  // With `hasManaged` the managed memory is what another load of the same text filled.
  Refusal (*load)(std::string_view text, const AllocateMemory& allocate, bool hasManaged,
                  std::shared_ptr<Module>& module);
  // Says what is wrong with one input by itself.
  Refusal (*check)(const LinkInput& input);
  // PTX of all of them.
  Refusal (*link)(const std::vector<LinkInput>& inputs, std::string& text);
  // Returns when all blocks of the kernel have ended.
  CUresult (*run)(const std::shared_ptr<Context>& context, const std::shared_ptr<Module>& module, const Kernel& kernel,
                  const LaunchShape& shape, const std::vector<uint8_t>& parameters, const std::shared_ptr<Heap>& heap);
};

}  // namespace shoal::ptx

extern "C" SHOAL_FOR_ENGINE const shoal::ptx::Engine* shoalSimPtxEngine(void);
