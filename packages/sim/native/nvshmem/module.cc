// Modules and libraries whose kernels call NVSHMEM: there is no device library for the software device.
#include "report.h"
#include "session.h"

using namespace shoal::nvshmem;

namespace {

constexpr char kState[] = "nvshmemi_device_state_d";  // where the device library keeps what the host tells it

int check(const char* function, CUresult status) {
  if (status == CUDA_SUCCESS) {
    report("%s: kernels that call NVSHMEM do not run on the software device", function);
    return NVSHMEMX_ERROR_NOT_SUPPORTED;
  }
  const char* name = nullptr;
  cuGetErrorName(status, &name);
  report("%s: %s is not to be found: %s", function, kState, name == nullptr ? "unknown error of the driver" : name);
  return NVSHMEMX_ERROR_INTERNAL;
}

int checkModule(const char* function, CUmodule module) {
  const auto session = require(function);
  InContext scope(*session);
  CUdeviceptr address = 0;
  size_t bytes = 0;
  return check(function, cuModuleGetGlobal_v2(&address, &bytes, module, kState));
}

int checkLibrary(const char* function, CUlibrary library) {
  const auto session = require(function);
  InContext scope(*session);
  unsigned kernels = 0;
  return check(function, cuLibraryGetKernelCount(&kernels, library));
}

}  // namespace

int nvshmemx_cumodule_init(CUmodule module) { return checkModule("nvshmemx_cumodule_init", module); }
int nvshmemx_cumodule_finalize(CUmodule module) { return checkModule("nvshmemx_cumodule_finalize", module); }
int nvshmemx_culibrary_init(CUlibrary library) { return checkLibrary("nvshmemx_culibrary_init", library); }
int nvshmemx_culibrary_finalize(CUlibrary library) { return checkLibrary("nvshmemx_culibrary_finalize", library); }
