// Modules and their kernels in one context.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/allocation.h"
#include "core/handles.h"
#include "image.h"
#include "ptx/heap.h"
#include "ptx/module.h"

namespace shoal {

class Context;
struct LoadedFunction;

struct LoadedModule : std::enable_shared_from_this<LoadedModule> {
  ~LoadedModule();
  CUresult load(const std::shared_ptr<Context>& owner, const std::string& ptx, std::string& problem);
  // By its name or its number; null when there is none. A function keeps its handle.
  std::shared_ptr<LoadedFunction> function(const std::string& name);
  std::shared_ptr<LoadedFunction> function(size_t index);

  uint64_t handle = 0;
  std::shared_ptr<Context> context;
  std::shared_ptr<ptx::Module> code;
  std::shared_ptr<ptx::Heap> heap;

 private:
  std::vector<std::shared_ptr<Allocation>> memory_;
  std::mutex mutex_;
  std::unordered_map<size_t, std::shared_ptr<LoadedFunction>> functions_;
};

struct LoadedFunction {
  uint64_t handle = 0;
  std::weak_ptr<LoadedModule> module;
  const ptx::Kernel* kernel = nullptr;
  std::shared_ptr<ptx::Module> code;
  std::mutex mutex;
  int maxDynamicShared = 0;
  int carveout = -1;
  int isNonPortableClusterAllowed = 0;
  int clusterPolicy = 0;
};

HandleTable<LoadedModule>& modules();
HandleTable<LoadedModule>& libraries();
HandleTable<LoadedFunction>& functions();

// Finds a function whose module is still loaded.
CUresult findFunction(CUfunction handle, std::shared_ptr<LoadedFunction>& function, std::shared_ptr<LoadedModule>& module);

}  // namespace shoal
