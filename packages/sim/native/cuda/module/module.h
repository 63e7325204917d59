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

// Attributes that all kernels of a piece of code share.
struct CodeFacts {
  uint64_t constantBytes = 0;
  unsigned target = 0;
};

// The settable attributes of a kernel.
struct FunctionSettings {
  explicit FunctionSettings(const ptx::Kernel& kernel)
      : maxDynamicShared(49152 - static_cast<int>(std::min(kernel.sharedBytes, 49152u))) {}
  std::mutex mutex;
  int maxDynamicShared;
  int carveout = -1;
  int isNonPortableClusterAllowed = 0;
  int clusterPolicy = 0;
  unsigned cluster[3] = {0, 0, 0};  // required cluster size of launches, if the code does not set one
};

struct LoadedModule : std::enable_shared_from_this<LoadedModule> {
  ~LoadedModule();
  // `managed` is the memory of the managed variables. If it is null, it is allocated and returned there.
  CUresult load(const std::shared_ptr<Context>& owner, const std::string& ptx, std::string& problem,
                std::shared_ptr<Allocation>* managed = nullptr);
  // Finds a function by name or index, or returns null. A function keeps its handle.
  std::shared_ptr<LoadedFunction> function(const std::string& name);
  std::shared_ptr<LoadedFunction> function(size_t index);

  CodeFacts facts() const { return {code->constantBytes, code->target}; }

  uint64_t handle = 0;
  std::weak_ptr<LoadedLibrary> library;  // the library that it belongs to, if any
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

// The reason for refusing a module, as text for the log.
std::string describe(const ptx::Refusal& refusal);

// Finds a function whose module is loaded. For a library's kernel, finds its function in the context.
CUresult findFunction(CUfunction handle, const std::shared_ptr<Context>& context,
                      std::shared_ptr<LoadedFunction>& function, std::shared_ptr<LoadedModule>& module);

}  // namespace shoal
