#include "library.h"

#include <cstdlib>
#include <cstring>

#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "engine.h"
#include "function.h"

using namespace shoal;

namespace shoal {

HandleTable<LoadedLibrary>& libraries() {
  static auto* table = new HandleTable<LoadedLibrary>(7, "libraries");
  return *table;
}
HandleTable<LibraryKernel>& libraryKernels() {
  static auto* table = new HandleTable<LibraryKernel>(30);
  return *table;
}

LoadedLibrary::~LoadedLibrary() {
  for (auto& each : kernels_) libraryKernels().take(each.second->handle);
  for (auto& each : modules_) shoal::modules().take(each.second->handle);
}

CUresult LoadedLibrary::load(const std::shared_ptr<Context>& context, std::string text, std::string& problem) {
  text_ = std::move(text);
  if (context != nullptr) {
    std::shared_ptr<LoadedModule> module;
    std::lock_guard lock(mutex_);
    if (const CUresult status = loadInto(context, module, problem)) return status;
    kernels = module->code->kernels;
    facts = module->facts();
    return CUDA_SUCCESS;
  }
  std::vector<std::unique_ptr<uint8_t, decltype(&free)>> memory;
  try {
    const auto place = [&](uint64_t bytes, bool) {
      memory.emplace_back(static_cast<uint8_t*>(calloc(bytes, 1)), &free);
      return reinterpret_cast<uint64_t>(memory.back().get());
    };
    std::shared_ptr<ptx::Module> code;
    throwIfRefused(ptxEngine().load(text_, place, false, code));
    kernels = code->kernels;
    facts = {code->constantBytes, code->target};
    return CUDA_SUCCESS;
  } catch (const ptx::Refusal& refusal) {
    problem = describe(refusal);
    return refusal.status;
  }
}

CUresult LoadedLibrary::loadInto(const std::shared_ptr<Context>& context, std::shared_ptr<LoadedModule>& module,
                                 std::string& problem) {
  module = std::make_shared<LoadedModule>();
  module->library = weak_from_this();
  if (const CUresult status = module->load(context, text_, problem, &managed_)) return status;
  module->handle = shoal::modules().reserve();
  shoal::modules().put(module->handle, module);
  modules_[context.get()] = module;
  return CUDA_SUCCESS;
}

CUresult LoadedLibrary::moduleIn(const std::shared_ptr<Context>& context, std::shared_ptr<LoadedModule>& module) {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(context.get());
  std::string problem;
  if (found == modules_.end()) return loadInto(context, module, problem);
  module = found->second;
  return CUDA_SUCCESS;
}

std::shared_ptr<LibraryKernel> LoadedLibrary::kernel(size_t index) {
  std::lock_guard lock(mutex_);
  auto& known = kernels_[index];
  if (known == nullptr) {
    known = std::make_shared<LibraryKernel>();
    known->library = weak_from_this();
    known->index = index;
    known->facts = kernels[index];
    known->handle = libraryKernels().reserve();
    libraryKernels().put(known->handle, known);
  }
  return known;
}

void LoadedLibrary::forget(const Context& context) {
  std::lock_guard lock(mutex_);
  modules_.erase(&context);
  if (managed_ != nullptr && managed_->context.get() == &context) managed_ = nullptr;
}

std::vector<std::shared_ptr<LoadedModule>> LoadedLibrary::modules() {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<LoadedModule>> list;
  for (auto& each : modules_) list.push_back(each.second);
  return list;
}

std::shared_ptr<FunctionSettings> LibraryKernel::settingsOn(const Device& device) {
  std::lock_guard lock(mutex_);
  auto& known = settings_[&device];
  if (known == nullptr) known = std::make_shared<FunctionSettings>(facts);
  return known;
}

namespace {

// Libraries do not belong to a context, but their code is first loaded into the current context.
CUresult load(CUlibrary* out, const JitOptions& options, CUlibraryOption* names, void** values, unsigned count,
              const std::function<CUresult(std::string&, std::string&)>& read) {
  return initialised([&]() -> CUresult {
    if (out == nullptr || (options.count != 0 && (options.names == nullptr || options.values == nullptr)))
      return CUDA_ERROR_INVALID_VALUE;
    if (count != 0 && (names == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned index = 0; index < count; ++index) {
      if (names[index] != CU_LIBRARY_BINARY_IS_PRESERVED &&
          names[index] != CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::shared_ptr<Context> context;
    if (!contextStack().empty()) {
      if (const CUresult status = currentContext(context)) return status;
    }
    std::string text, problem;
    auto library = std::make_shared<LoadedLibrary>();
    CUresult status = read(text, problem);
    if (status == CUDA_SUCCESS) status = library->load(context, std::move(text), problem);
    if (status != CUDA_SUCCESS) return refuse(options, status, problem);
    library->handle = libraries().reserve();
    libraries().put(library->handle, library);
    *out = reinterpret_cast<CUlibrary>(library->handle);
    return CUDA_SUCCESS;
  });
}

template <class Body>
CUresult withLibrary(CUlibrary handle, const void* out, Body&& body) {
  return initialised([&]() -> CUresult {
    auto library = libraries().find(handle);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*library);
  });
}

// Calls `body(module)` with the library's module in the current context.
template <class Body>
CUresult inLibrary(CUlibrary handle, const void* out, Body&& body) {
  return withLibrary(handle, out, [&](LoadedLibrary& library) -> CUresult {
    std::shared_ptr<Context> context;
    if (const CUresult status = currentContext(context)) return status;
    std::shared_ptr<LoadedModule> module;
    if (const CUresult status = library.moduleIn(context, module)) return status;
    return body(*module);
  });
}

CUresult variable(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name, bool mustBeManaged) {
  return inLibrary(handle, name, [&](LoadedModule& module) -> CUresult {
    for (const auto& each : module.code->globals) {
      if (each.name != name || (mustBeManaged && !each.isManaged)) continue;
      if (address != nullptr) *address = each.address;
      if (bytes != nullptr) *bytes = each.bytes;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}

template <class Body>
CUresult withKernel(CUkernel handle, const void* out, Body&& body) {
  return initialised([&]() -> CUresult {
    auto kernel = libraryKernels().find(handle);
    auto library = kernel == nullptr ? nullptr : kernel->library.lock();
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*kernel, *library);
  });
}

// Calls `body(kernel, settings, facts)` for a kernel on a device.
template <class Body>
CUresult onDevice(CUkernel handle, CUdevice ordinal, const void* out, Body&& body) {
  return withKernel(handle, out, [&](LibraryKernel& kernel, LoadedLibrary& library) -> CUresult {
    Device* device = nullptr;
    if (const CUresult status = findDevice(ordinal, device)) return status;
    return body(kernel, *kernel.settingsOn(*device), library.facts);
  });
}

}  // namespace

}  // namespace shoal

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues,
                           unsigned int numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned int numLibraryOptions) {
  return load(library, {numJitOptions, jitOptions, jitOptionsValues}, libraryOptions, libraryOptionValues,
              numLibraryOptions, [&](std::string& text, std::string& problem) {
                return code == nullptr ? CUDA_ERROR_INVALID_VALUE : findPtx(code, SIZE_MAX, text, problem);
              });
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions, CUlibraryOption* libraryOptions,
                               void** libraryOptionValues, unsigned int numLibraryOptions) {
  return load(library, {numJitOptions, jitOptions, jitOptionsValues}, libraryOptions, libraryOptionValues,
              numLibraryOptions,
              [&](std::string& text, std::string& problem) { return findPtxInFile(fileName, text, problem); });
}
CUresult cuLibraryUnload(CUlibrary handle) {
  return initialised([&]() -> CUresult {
    auto library = libraries().take(reinterpret_cast<uint64_t>(handle));
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    for (auto& module : library->modules()) module->context->synchronize();  // running kernels complete first
    return CUDA_SUCCESS;
  });
}
CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  return withLibrary(library, pKernel, [&](LoadedLibrary& found) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; index < found.kernels.size(); ++index) {
      if (found.kernels[index].name != name) continue;
      *pKernel = reinterpret_cast<CUkernel>(found.kernel(index)->handle);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  return withLibrary(lib, count, [&](LoadedLibrary& library) {
    *count = static_cast<unsigned>(library.kernels.size());
    return CUDA_SUCCESS;
  });
}
CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  return withLibrary(lib, kernels, [&](LoadedLibrary& library) {
    for (size_t index = 0; index < library.kernels.size() && index < numKernels; ++index)
      kernels[index] = reinterpret_cast<CUkernel>(library.kernel(index)->handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  return inLibrary(library, pMod, [&](LoadedModule& module) {
    *pMod = reinterpret_cast<CUmodule>(module.handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return variable(dptr, bytes, library, name, false);
}
CUresult cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return variable(dptr, bytes, library, name, true);
}
// The host cannot call device code of the software device.
CUresult cuLibraryGetUnifiedFunction(void** fptr, CUlibrary library, const char* symbol) {
  return inLibrary(library, fptr,
                   [&](LoadedModule&) { return symbol == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND; });
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  return withKernel(kernel, pFunc, [&](LibraryKernel& found, LoadedLibrary& library) -> CUresult {
    std::shared_ptr<Context> context;
    if (const CUresult status = currentContext(context)) return status;
    std::shared_ptr<LoadedModule> module;
    if (const CUresult status = library.moduleIn(context, module)) return status;
    *pFunc = reinterpret_cast<CUfunction>(module->function(found.index)->handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  return withKernel(kernel, pLib, [&](LibraryKernel&, LoadedLibrary& library) {
    *pLib = reinterpret_cast<CUlibrary>(library.handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  return withKernel(hfunc, name, [&](LibraryKernel& found, LoadedLibrary&) {
    *name = found.facts.name.c_str();
    return CUDA_SUCCESS;
  });
}
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  return withKernel(kernel, paramOffset, [&](LibraryKernel& found, LoadedLibrary&) {
    return readParameter(found.facts, paramIndex, paramOffset, paramSize);
  });
}
CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  return onDevice(kernel, dev, pi, [&](LibraryKernel& found, FunctionSettings& settings, CodeFacts code) {
    return readAttribute(found.facts, code, settings, attrib, pi);
  });
}
CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  return onDevice(kernel, dev, &val, [&](LibraryKernel& found, FunctionSettings& settings, CodeFacts) {
    return writeAttribute(found.facts, settings, attrib, val);
  });
}
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  return onDevice(kernel, dev, &config, [&](LibraryKernel&, FunctionSettings&, CodeFacts) {
    return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}
