// The state of the calling thread.
#pragma once

#include <memory>
#include <vector>

#include "shoal/cuda.h"

namespace shoal {

class Context;
class GreenContext;
class Stream;

struct ThreadState {
  struct DefaultStream {
    unsigned long long contextId;
    std::shared_ptr<Stream> stream;
  };
  std::vector<std::shared_ptr<Context>> contexts;
  std::vector<std::shared_ptr<GreenContext>>
      greens;  // for each context, the green context that was made current, or null
  std::vector<DefaultStream> defaultStreams;
  bool isInHostFunction = false;  // no CUDA call is allowed then
  ~ThreadState();
};

ThreadState& threadState();

}  // namespace shoal
