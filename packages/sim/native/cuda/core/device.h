// One virtual device and its settings.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "arena.h"
#include "shoal/cuda.h"

namespace shoal {

class Context;

constexpr int kDriverVersion = 13000;

class Device {
 public:
  Device(int ordinal, size_t memoryBytes) : ordinal(ordinal), arena(memoryBytes) {}

  const int ordinal;
  Arena arena;

  // Set after a fault made the device unusable for this process. No context can be created or activated then.
  std::atomic<int> error{CUDA_SUCCESS};

  // The primary context keeps its handle for the life of the process. It is active while it is retained.
  std::mutex primaryMutex;
  std::shared_ptr<Context> primary;
  int primaryRetained = 0;
  // The number of green contexts in the primary context. It cannot be reset while there are any.
  int greenContexts = 0;
  std::atomic<unsigned> primaryFlags{0};
};

}  // namespace shoal
