// Modules and libraries whose kernels call NVSHMEM.
#include "report.h"
#include "session.h"

using namespace shoal::nvshmem;

namespace {

// `find` returns the device library's variable.
template <class Find>
int tell(const char* function, Find&& find) {
  const auto session = require(function);
  InContext scope(*session);
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  if (const CUresult status = find(variable, bytes)) {
    const char* name = nullptr;
    cuGetErrorName(status, &name);
    report("%s: %s is not to be found: %s", function, kDeviceStateName,
           name == nullptr ? "unknown error of the driver" : name);
    return NVSHMEMX_ERROR_INTERNAL;
  }
  std::string problem;
  if (session->kernels.tell(variable, bytes, problem)) return NVSHMEMX_SUCCESS;
  report("%s: %s", function, problem.c_str());
  return NVSHMEMX_ERROR_INTERNAL;
}

// The state is freed with the module.
template <class Find>
int forget(const char* function, Find&& find) {
  const auto session = require(function);
  InContext scope(*session);
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  return find(variable, bytes) == CUDA_SUCCESS ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INTERNAL;
}

auto in(CUmodule module) {
  return [=](CUdeviceptr& variable, size_t& bytes) {
    return cuModuleGetGlobal_v2(&variable, &bytes, module, kDeviceStateName);
  };
}
auto in(CUlibrary library) {
  return [=](CUdeviceptr& variable, size_t& bytes) {
    return cuLibraryGetGlobal(&variable, &bytes, library, kDeviceStateName);
  };
}

}  // namespace

int nvshmemx_cumodule_init(CUmodule module) { return tell("nvshmemx_cumodule_init", in(module)); }
int nvshmemx_cumodule_finalize(CUmodule module) { return forget("nvshmemx_cumodule_finalize", in(module)); }
int nvshmemx_culibrary_init(CUlibrary library) { return tell("nvshmemx_culibrary_init", in(library)); }
int nvshmemx_culibrary_finalize(CUlibrary library) { return forget("nvshmemx_culibrary_finalize", in(library)); }
