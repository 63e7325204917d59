// The driver finds the PTX engine next to its own library, also through a link. If it is missing, the error names the
// file.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "check.h"
#include "shoal/cuda.h"

namespace {

constexpr char kText[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";

// Loads a module with this driver library. `problem` gets the JIT error log.
CUresult load(const std::string& library, std::string& problem) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  CHECK(loaded != nullptr);
  const auto call = [&](const char* name) { return dlsym(loaded, name); };
  OK(reinterpret_cast<decltype(&cuInit)>(call("cuInit"))(0));
  CUcontext context;
  OK(reinterpret_cast<decltype(&cuDevicePrimaryCtxRetain)>(call("cuDevicePrimaryCtxRetain"))(&context, 0));
  OK(reinterpret_cast<decltype(&cuCtxSetCurrent)>(call("cuCtxSetCurrent"))(context));
  char log[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module;
  const CUresult status =
      reinterpret_cast<decltype(&cuModuleLoadDataEx)>(call("cuModuleLoadDataEx"))(&module, kText, 2, options, values);
  problem = log;
  return status;
}

}  // namespace

TEST(engine_is_found_beside_the_library_and_named_if_it_is_missing) {
  Dl_info own{};
  CHECK(dladdr(reinterpret_cast<void*>(&cuInit), &own) != 0);
  const std::filesystem::path library = std::filesystem::canonical(own.dli_fname);
  char name[] = "/tmp/shoal-engine-XXXXXX";
  CHECK(mkdtemp(name) != nullptr);
  const std::filesystem::path folder = name, link = folder / "libcuda.so.1", alone = folder / "alone";
  std::filesystem::create_directory(alone);
  std::filesystem::copy_file(library, alone / library.filename());
  std::filesystem::create_symlink(library, link);
  std::string problem;
  const CUresult linked = load(link, problem), missing = load(alone / library.filename(), problem);
  std::filesystem::remove_all(folder);
  EQUAL(linked, CUDA_SUCCESS);
  EQUAL(missing, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  CHECK(problem.find((alone / "libshoal-sim-ptx.so.1").string()) != std::string::npos);
}
