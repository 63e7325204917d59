#include "engine.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace shoal {

namespace {

struct Loaded {
  const ptx::Engine* engine = nullptr;
  std::string problem;
};

Loaded loadEngine() {
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&ptxEngine), &own);
  // The program may load the driver's library through a link with another name in another folder.
  char* path = realpath(own.dli_fname, nullptr);
  std::string file = path != nullptr ? path : own.dli_fname;
  free(path);
  file = file.substr(0, file.find_last_of('/') + 1) + "libshoal-sim-ptx.so.1";
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library == nullptr ? nullptr : dlsym(library, "shoalSimPtxEngine");
  if (symbol == nullptr)
    return {nullptr, "the PTX engine of the Shoal software device cannot be loaded: " + std::string(dlerror())};
  return {reinterpret_cast<decltype(&shoalSimPtxEngine)>(symbol)(), {}};
}

}  // namespace

const ptx::Engine& ptxEngine() {
  static const Loaded& loaded = *new Loaded(loadEngine());
  if (loaded.engine == nullptr) throw ptx::Refusal{CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 0, loaded.problem};
  return *loaded.engine;
}

}  // namespace shoal
