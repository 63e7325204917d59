// Modules and libraries: loading, unloading, their kernels and variables.
#include "module.h"

#include <cstring>
#include <fstream>
#include <sstream>

#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "pool/pool.h"
#include "ptx/problem.h"

using namespace shoal;

namespace shoal {

HandleTable<LoadedModule>& modules() {
  static auto* table = new HandleTable<LoadedModule>(6);
  return *table;
}
HandleTable<LoadedModule>& libraries() {
  static auto* table = new HandleTable<LoadedModule>(7);
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
  auto made = std::make_shared<Allocation>(Allocation::Description{isManaged ? MemoryKind::managed : MemoryKind::device, base, bytes, Place::device, context,
                                                                   &device, isManaged ? static_cast<unsigned>(CU_MEM_ATTACH_GLOBAL) : 0u, std::move(block)});
  state().allocations.put(made);
  return made;
}

// A context takes its modules with it, and their memory.
void forgetModulesOf(const Context& context) {
  for (auto* table : {&modules(), &libraries()}) {
    for (auto& module : table->all()) {
      if (module->context.get() == &context) table->take(module->handle);
    }
  }
}
[[maybe_unused]] const bool isWatching = (Context::whenDestroyed(forgetModulesOf), true);

// Large memory is given back to the system, which gives zeroes for it when it is touched.
void clear(Device& device, const Allocation& memory) {
  constexpr uint64_t kPage = 4096, kLarge = uint64_t{2} << 20;
  const uint64_t given = memory.size < kLarge ? 0 : memory.size / kPage * kPage;
  if (given != 0) device.arena.file()->discard(device.arena.offsetOf(memory.base), given);
  memset(reinterpret_cast<void*>(memory.base + given), 0, memory.size - given);
}

// Kernels of all modules of a context share one heap, which is as large as the limit was when the first of them needed it.
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

CUresult refuse(const JitOptions& options, CUresult status, const std::string& problem) {
  if (!problem.empty()) writeErrorLog(options, problem);
  return status;
}

CUresult loadImage(uint64_t* out, HandleTable<LoadedModule>& table, const std::shared_ptr<Context>& context, const void* image, size_t available,
                   const JitOptions& options) {
  if (image == nullptr || (options.count != 0 && (options.names == nullptr || options.values == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  std::string text, problem;
  if (const CUresult status = findPtx(image, available, text, problem)) return refuse(options, status, problem);
  auto module = std::make_shared<LoadedModule>();
  if (const CUresult status = module->load(context, text, problem)) return refuse(options, status, problem);
  module->handle = table.reserve();
  table.put(module->handle, module);
  *out = module->handle;
  return CUDA_SUCCESS;
}

CUresult load(void* out, HandleTable<LoadedModule>& table, const void* image, const JitOptions& options) {
  return inContext([&](auto& context) { return out == nullptr ? CUDA_ERROR_INVALID_VALUE : loadImage(static_cast<uint64_t*>(out), table, context, image, SIZE_MAX, options); });
}

CUresult loadFile(void* out, HandleTable<LoadedModule>& table, const char* name, const JitOptions& options) {
  return inContext([&](auto& context) -> CUresult {
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(name, std::ios::binary);
    std::stringstream image;
    if (!file || !(image << file.rdbuf())) return CUDA_ERROR_FILE_NOT_FOUND;
    // What is too short for its header ends in zeroes here.
    std::string bytes = image.str();
    bytes.append(64, '\0');
    return loadImage(static_cast<uint64_t*>(out), table, context, bytes.data(), bytes.size(), options);
  });
}

template <class Handle>
CUresult unload(HandleTable<LoadedModule>& table, Handle* handle) {
  return inContext([&](auto&) -> CUresult {
    auto module = table.take(reinterpret_cast<uint64_t>(handle));
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    module->context->synchronize();  // kernels that run end first
    return CUDA_SUCCESS;
  });
}

// `body(module)` with the module of a handle.
template <class Handle, class Body>
CUresult withModule(HandleTable<LoadedModule>& table, Handle* handle, const void* out, Body&& body) {
  return inContext([&](auto&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto module = table.find(handle);
    return module ? body(*module) : CUDA_ERROR_INVALID_HANDLE;
  });
}

template <class Handle, class Function>
CUresult getFunction(HandleTable<LoadedModule>& table, Handle* handle, Function* out, const char* name) {
  return withModule(table, handle, out, [&](LoadedModule& module) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto found = module.function(std::string(name));
    if (!found) return CUDA_ERROR_NOT_FOUND;
    *out = reinterpret_cast<Function>(found->handle);
    return CUDA_SUCCESS;
  });
}

template <class Handle>
CUresult countFunctions(HandleTable<LoadedModule>& table, Handle* handle, unsigned* count) {
  return withModule(table, handle, count, [&](LoadedModule& module) {
    *count = static_cast<unsigned>(module.code->kernels.size());
    return CUDA_SUCCESS;
  });
}

}  // namespace

LoadedModule::~LoadedModule() {
  for (auto& each : functions_) functions().take(each.second->handle);
  for (auto& each : memory_) state().allocations.remove(each);
}

CUresult LoadedModule::load(const std::shared_ptr<Context>& owner, const std::string& ptx, std::string& problem) {
  context = owner;
  try {
    code = ptx::loadModule(ptx, [&](uint64_t bytes, bool isManaged) {
      auto made = allocate(owner, bytes, isManaged);
      if (!made) throw ptx::Refusal{CUDA_ERROR_OUT_OF_MEMORY, 0, "the device has not enough memory for the module's variables"};
      memory_.push_back(made);
      clear(owner->device, *made);
      return made->base;
    });
    if (code->needsHeap) heap = heapOf(owner);
    return CUDA_SUCCESS;
  } catch (const ptx::Refusal& refusal) {
    problem = "ptx input, line " + std::to_string(refusal.line) + "; error   : " + refusal.message;
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
    known->maxDynamicShared = 49152 - static_cast<int>(std::min(known->kernel->sharedBytes, 49152u));
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

CUresult findFunction(CUfunction handle, std::shared_ptr<LoadedFunction>& function, std::shared_ptr<LoadedModule>& module) {
  function = functions().find(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  module = function->module.lock();
  return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace shoal

CUresult cuModuleLoad(CUmodule* module, const char* fname) { return loadFile(module, modules(), fname, {}); }
CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load(module, modules(), image, {}); }
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions, CUjit_option* options, void** optionValues) {
  return load(module, modules(), image, {numOptions, options, optionValues});
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) { return load(module, modules(), fatCubin, {}); }
CUresult cuModuleUnload(CUmodule hmod) { return unload(modules(), hmod); }
CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) { return getFunction(modules(), hmod, hfunc, name); }

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

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) { return countFunctions(modules(), mod, count); }
CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned int numFunctions, CUmodule mod) {
  return withModule(modules(), mod, out, [&](LoadedModule& module) {
    for (size_t index = 0; index < module.code->kernels.size() && index < numFunctions; ++index) out[index] = reinterpret_cast<CUfunction>(module.function(index)->handle);
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

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption*, void**, unsigned int) {
  return load(library, libraries(), code, {numJitOptions, jitOptions, jitOptionsValues});
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions, void** jitOptionsValues,
                               unsigned int numJitOptions, CUlibraryOption*, void**, unsigned int) {
  return loadFile(library, libraries(), fileName, {numJitOptions, jitOptions, jitOptionsValues});
}
CUresult cuLibraryUnload(CUlibrary library) { return unload(libraries(), library); }
CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) { return getFunction(libraries(), library, pKernel, name); }
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) { return countFunctions(libraries(), lib, count); }
