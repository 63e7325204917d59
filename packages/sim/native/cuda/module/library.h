// Libraries: code without a context. Each context loads it when it first uses it.
#pragma once

#include <map>

#include "module.h"

namespace shoal {

struct LibraryKernel;

struct LoadedLibrary : std::enable_shared_from_this<LoadedLibrary> {
  ~LoadedLibrary();
  // With a null context, only checks the code.
  CUresult load(const std::shared_ptr<Context>& context, std::string text, std::string& problem);
  // The library's module in this context.
  CUresult moduleIn(const std::shared_ptr<Context>& context, std::shared_ptr<LoadedModule>& module);
  std::shared_ptr<LibraryKernel> kernel(size_t index);
  void forget(const Context& context);
  std::vector<std::shared_ptr<LoadedModule>> modules();

  uint64_t handle = 0;
  std::vector<ptx::Kernel> kernels;
  CodeFacts facts;

 private:
  CUresult loadInto(const std::shared_ptr<Context>& context, std::shared_ptr<LoadedModule>& module,
                    std::string& problem);
  std::string text_;
  std::mutex mutex_;
  std::map<const Context*, std::shared_ptr<LoadedModule>> modules_;
  std::unordered_map<size_t, std::shared_ptr<LibraryKernel>> kernels_;
  // The managed variables, which all contexts share. They are in memory of the first context.
  std::shared_ptr<Allocation> managed_;
};

struct LibraryKernel {
  // The settings are shared by all contexts of a device.
  std::shared_ptr<FunctionSettings> settingsOn(const Device& device);

  uint64_t handle = 0;
  size_t index = 0;
  ptx::Kernel facts;
  std::weak_ptr<LoadedLibrary> library;

 private:
  std::mutex mutex_;
  std::map<const Device*, std::shared_ptr<FunctionSettings>> settings_;
};

HandleTable<LoadedLibrary>& libraries();
HandleTable<LibraryKernel>& libraryKernels();

}  // namespace shoal
