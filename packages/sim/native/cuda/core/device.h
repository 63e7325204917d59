// One virtual device and the settings it was made with.
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

  // Set when a fault took the device away from this process: no context can be made or brought back then.
  std::atomic<int> error{CUDA_SUCCESS};

  // The primary context keeps its handle for the life of the process; it is alive while somebody retains it.
  std::mutex primaryMutex;
  std::shared_ptr<Context> primary;
  int primaryRetained = 0;
  // Green contexts in it: while there are some it cannot be reset.
  int greenContexts = 0;
  unsigned primaryFlags = 0;
};

}  // namespace shoal
