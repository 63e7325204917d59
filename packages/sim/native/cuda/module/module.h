// Modules and their kernels in one context.
#pragma once

#include <algorithm>
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
#include "ptx/problem.h"

namespace shoal {

class Context;
struct LoadedFunction;
struct LoadedLibrary;

// What attributes tell of all kernels of some code.
struct CodeFacts {
  uint64_t constantBytes = 0;
  unsigned target = 0;
};

// What can be set of a kernel.
struct FunctionSettings {
  explicit FunctionSettings(const ptx::Kernel& kernel)
      : maxDynamicShared(49152 - static_cast<int>(std::min(kernel.sharedBytes, 49152u))) {}
  std::mutex mutex;
  int maxDynamicShared;
  int carveout = -1;
  int isNonPortableClusterAllowed = 0;
  int clusterPolicy = 0;
  unsigned cluster[3] = {0, 0, 0};  // that launches have to have, where the code says nothing
};

struct LoadedModule : std::enable_shared_from_this<LoadedModule> {
  ~LoadedModule();
  // With `managed`, that memory is where managed variables lie, unless there is none yet: then it is what they got.
  CUresult load(const std::shared_ptr<Context>& owner, const std::string& ptx, std::string& problem,
                std::shared_ptr<Allocation>* managed = nullptr);
  // By its name or its number; null when there is none. A function keeps its handle.
  std::shared_ptr<LoadedFunction> function(const std::string& name);
  std::shared_ptr<LoadedFunction> function(size_t index);

  CodeFacts facts() const { return {code->constantBytes, code->target}; }

  uint64_t handle = 0;
  std::weak_ptr<LoadedLibrary> library;  // that it is of, if any
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
  std::shared_ptr<FunctionSettings> settings;
};

HandleTable<LoadedModule>& modules();
HandleTable<LoadedFunction>& functions();

// What a module is refused for, as the log tells it.
std::string describe(const ptx::Refusal& refusal);

// Finds a function whose module is still loaded; what a context has of a kernel of a library.
CUresult findFunction(CUfunction handle, const std::shared_ptr<Context>& context,
                      std::shared_ptr<LoadedFunction>& function, std::shared_ptr<LoadedModule>& module);

}  // namespace shoal
