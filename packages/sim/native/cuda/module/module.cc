// Modules: loading, unloading, kernels and variables.
#include "module.h"

#include <cstring>
#include <functional>

#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "engine.h"
#include "library.h"
#include "pool/pool.h"

using namespace shoal;

namespace shoal {

HandleTable<LoadedModule>& modules() {
  static auto* table = new HandleTable<LoadedModule>(6, "modules");
  return *table;
}
HandleTable<LoadedFunction>& functions() {
  static auto* table = new HandleTable<LoadedFunction>(8);
  return *table;
}

namespace {

std::shared_ptr<Allocation> allocate(const std::shared_ptr<Context>& context, uint64_t bytes, bool isManaged) {
  Device& device = context->device;
  uint64_t base = device.arena.allocate(bytes);
  if (base == 0) {
    trimPoolsOf(&device);
    base = device.arena.allocate(bytes);
  }
  if (base == 0) return nullptr;
  auto block = std::make_shared<ArenaBlock>(device.arena, base, bytes, false);
  auto made = std::make_shared<Allocation>(
      Allocation::Description{isManaged ? MemoryKind::managed : MemoryKind::device, base, bytes, Place::device, context,
                              &device, isManaged ? static_cast<unsigned>(CU_MEM_ATTACH_GLOBAL) : 0u, std::move(block)});
  state().allocations.put(made);
  return made;
}

// Destroying a context destroys its modules and their memory.
void forgetModulesOf(const Context& context) {
  for (auto& library : libraries().all()) library->forget(context);
  for (auto& module : modules().all()) {
    if (module->context.get() == &context) modules().take(module->handle);
  }
}
[[maybe_unused]] const bool isWatching = (Context::whenDestroyed(forgetModulesOf), true);

// Zeroes the memory. Large memory is returned to the system, which zeroes it when it is touched again.
void clear(Device& device, const Allocation& memory) {
  constexpr uint64_t kPage = 4096, kLarge = uint64_t{2} << 20;
  const uint64_t given = memory.size < kLarge ? 0 : memory.size / kPage * kPage;
  if (given != 0) device.arena.file()->discard(device.arena.offsetOf(memory.base), given);
  memset(reinterpret_cast<void*>(memory.base + given), 0, memory.size - given);
}

// The kernels of all modules in a context share one heap. The limit at its first use determines its size.
std::shared_ptr<ptx::Heap> heapOf(const std::shared_ptr<Context>& context) {
  struct Known {
    unsigned long long id;
    std::shared_ptr<ptx::Heap> heap;
  };
  static auto* mutex = new std::mutex;
  static auto* all = new std::unordered_map<Context*, Known>;
  std::lock_guard lock(*mutex);
  auto found = all->find(context.get());
  if (found != all->end() && found->second.id == context->id) return found->second.heap;
  size_t bytes;
  {
    std::lock_guard settings(context->settingsMutex);
    bytes = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
  }
  auto memory = bytes == 0 ? nullptr : allocate(context, bytes, false);
  auto heap = memory == nullptr ? nullptr : std::make_shared<ptx::Heap>(memory->base, bytes);
  (*all)[context.get()] = {context->id, heap};
  return heap;
}

CUresult load(CUmodule* out, const JitOptions& options,
              const std::function<CUresult(std::string&, std::string&)>& read) {
  return inContext([&](auto& context) -> CUresult {
    if (out == nullptr || (options.count != 0 && (options.names == nullptr || options.values == nullptr)))
      return CUDA_ERROR_INVALID_VALUE;
    std::string text, problem;
    auto module = std::make_shared<LoadedModule>();
    CUresult status = read(text, problem);
    if (status == CUDA_SUCCESS) status = module->load(context, text, problem);
    if (status != CUDA_SUCCESS) return refuse(options, status, problem);
    module->handle = modules().reserve();
    modules().put(module->handle, module);
    *out = reinterpret_cast<CUmodule>(module->handle);
    return CUDA_SUCCESS;
  });
}

CUresult loadData(CUmodule* out, const void* image, const JitOptions& options) {
  return load(out, options, [&](std::string& text, std::string& problem) {
    return image == nullptr ? CUDA_ERROR_INVALID_VALUE : findPtx(image, SIZE_MAX, text, problem);
  });
}

// Calls `body(module)` with the module of a handle.
template <class Body>
CUresult withModule(CUmodule handle, const void* out, Body&& body) {
  return inContext([&](auto&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto module = modules().find(handle);
    return module ? body(*module) : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // namespace

LoadedModule::~LoadedModule() {
  for (auto& each : functions_) functions().take(each.second->handle);
  for (auto& each : memory_) state().allocations.remove(each);
}

std::string describe(const ptx::Refusal& refusal) {
  return "ptx input, line " + std::to_string(refusal.line) + "; error   : " + refusal.message;
}

CUresult LoadedModule::load(const std::shared_ptr<Context>& owner, const std::string& ptx, std::string& problem,
                            std::shared_ptr<Allocation>* managed) {
  context = owner;
  const bool hasManaged = managed != nullptr && *managed != nullptr;
  try {
    const auto place = [&](uint64_t bytes, bool isManaged) -> uint64_t {
      if (isManaged && hasManaged) return (*managed)->base;
      auto made = allocate(owner, bytes, isManaged);
      if (!made) return 0;
      if (isManaged && managed != nullptr) *managed = made;
      memory_.push_back(made);
      clear(owner->device, *made);
      return made->base;
    };
    throwIfRefused(ptxEngine().load(ptx, place, hasManaged, code));
    if (code->needsHeap) heap = heapOf(owner);
    return CUDA_SUCCESS;
  } catch (const ptx::Refusal& refusal) {
    problem = describe(refusal);
    return refusal.status;
  }
}

std::shared_ptr<LoadedFunction> LoadedModule::function(size_t index) {
  std::lock_guard lock(mutex_);
  auto& known = functions_[index];
  if (known == nullptr) {
    known = std::make_shared<LoadedFunction>();
    known->module = weak_from_this();
    known->kernel = &code->kernels[index];
    known->code = code;
    const auto owner = library.lock();
    known->settings = owner == nullptr ? std::make_shared<FunctionSettings>(*known->kernel)
                                       : owner->kernel(index)->settingsOn(context->device);
    known->handle = functions().reserve();
    functions().put(known->handle, known);
  }
  return known;
}

std::shared_ptr<LoadedFunction> LoadedModule::function(const std::string& name) {
  for (size_t index = 0; index < code->kernels.size(); ++index) {
    if (code->kernels[index].name == name) return function(index);
  }
  return nullptr;
}

CUresult findFunction(CUfunction handle, const std::shared_ptr<Context>& context,
                      std::shared_ptr<LoadedFunction>& function, std::shared_ptr<LoadedModule>& module) {
  if (const auto kernel = libraryKernels().find(reinterpret_cast<uint64_t>(handle))) {
    const auto library = kernel->library.lock();
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::shared_ptr<Context> where = context;
    if (where == nullptr) {
      if (const CUresult status = currentContext(where)) return status;
    }
    if (const CUresult status = library->moduleIn(where, module)) return status;
    function = module->function(kernel->index);
    return CUDA_SUCCESS;
  }
  function = functions().find(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  module = function->module.lock();
  return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace shoal

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  return load(module, {}, [&](std::string& text, std::string& problem) { return findPtxInFile(fname, text, problem); });
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) { return loadData(module, image, {}); }
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions, CUjit_option* options,
                            void** optionValues) {
  return loadData(module, image, {numOptions, options, optionValues});
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) { return loadData(module, fatCubin, {}); }
CUresult cuModuleUnload(CUmodule hmod) {
  return inContext([&](auto&) -> CUresult {
    auto module = modules().find(hmod);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    // A module of a library is unloaded with the library.
    if (module->library.lock() != nullptr) return CUDA_ERROR_NOT_PERMITTED;
    modules().take(module->handle);
    module->context->synchronize();  // running kernels complete first
    return CUDA_SUCCESS;
  });
}
CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  return withModule(hmod, hfunc, [&](LoadedModule& module) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto found = module.function(std::string(name));
    if (!found) return CUDA_ERROR_NOT_FOUND;
    *hfunc = reinterpret_cast<CUfunction>(found->handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  return inContext([&](auto&) -> CUresult {
    auto module = modules().find(hmod);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& each : module->code->globals) {
      if (each.name != name) continue;
      if (dptr != nullptr) *dptr = each.address;
      if (bytes != nullptr) *bytes = each.bytes;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  return withModule(mod, count, [&](LoadedModule& module) {
    *count = static_cast<unsigned>(module.code->kernels.size());
    return CUDA_SUCCESS;
  });
}
CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned int numFunctions, CUmodule mod) {
  return withModule(mod, out, [&](LoadedModule& module) {
    for (size_t index = 0; index < module.code->kernels.size() && index < numFunctions; ++index)
      out[index] = reinterpret_cast<CUfunction>(module.function(index)->handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return initialised([&] {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = 2;
    return CUDA_SUCCESS;
  });
}
