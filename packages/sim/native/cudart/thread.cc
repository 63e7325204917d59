// The current device and the last error of each thread, and the primary contexts that the runtime retains.
#include <mutex>
#include <vector>

#include "entry.h"

namespace shoal::cudart {

namespace {

struct ThreadState {
  int device = 0;
  int lastError = 0;
};

ThreadState& thread() {
  thread_local ThreadState state;
  return state;
}

// Per device: true if the runtime has retained the primary context.
std::mutex mutex;
std::vector<bool>& retained() {
  static auto* devices = new std::vector<bool>();
  return *devices;
}

bool isActive(int device) {
  unsigned flags = 0;
  int active = 0;
  return cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

}  // namespace

cudaError_t finish(CUresult status) {
  if (status != CUDA_SUCCESS) thread().lastError = status;
  return status;
}

CUresult start() { return cuInit(0); }

CUresult primaryContext(int device, CUcontext& context) {
  std::lock_guard lock(mutex);
  auto& devices = retained();
  if (devices.size() <= static_cast<size_t>(device)) devices.resize(static_cast<size_t>(device) + 1);
  // After a reset, the runtime's reference must still be released.
  if (devices[static_cast<size_t>(device)] && !isActive(device)) {
    devices[static_cast<size_t>(device)] = false;
    cuDevicePrimaryCtxRelease_v2(device);
  }
  if (const CUresult status = cuDevicePrimaryCtxRetain(&context, device)) return status;
  if (devices[static_cast<size_t>(device)]) cuDevicePrimaryCtxRelease_v2(device);
  devices[static_cast<size_t>(device)] = true;
  return CUDA_SUCCESS;
}

CUresult currentDevice(int& device) {
  if (const CUresult status = start()) return status;
  CUcontext context = nullptr;
  if (const CUresult status = cuCtxGetCurrent(&context)) return status;
  if (context != nullptr && cuCtxGetDevice(&device) == CUDA_SUCCESS) return CUDA_SUCCESS;
  device = thread().device;
  return CUDA_SUCCESS;
}

CUresult ensureContext() {
  if (const CUresult status = start()) return status;
  CUcontext context = nullptr;
  if (const CUresult status = cuCtxGetCurrent(&context)) return status;
  unsigned version = 0;
  if (context != nullptr && cuCtxGetApiVersion(context, &version) == CUDA_SUCCESS) return CUDA_SUCCESS;
  if (const CUresult status = primaryContext(thread().device, context)) return status;
  return cuCtxSetCurrent(context);
}

}  // namespace shoal::cudart

using namespace shoal::cudart;

cudaError_t cudaGetLastError(void) {
  const int last = thread().lastError;
  thread().lastError = 0;
  return last;
}

cudaError_t cudaPeekAtLastError(void) { return thread().lastError; }

cudaError_t cudaGetDevice(int* device) {
  return finish(device == nullptr ? CUDA_ERROR_INVALID_VALUE : currentDevice(*device));
}

cudaError_t cudaSetDevice(int device) {
  return started([&]() -> CUresult {
    int count = 0;
    if (const CUresult status = cuDeviceGetCount(&count)) return status;
    if (device < 0 || device >= count) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext context = nullptr;
    if (const CUresult status = primaryContext(device, context)) return status;
    thread().device = device;
    return cuCtxSetCurrent(context);
  });
}

cudaError_t cudaDeviceReset(void) {
  int device = 0;
  if (const CUresult status = currentDevice(device)) return finish(status);
  thread().device = device;
  cuCtxSetCurrent(nullptr);
  const CUresult status = cuDevicePrimaryCtxReset_v2(device);
  std::lock_guard lock(mutex);
  auto& devices = retained();
  if (devices.size() > static_cast<size_t>(device) && devices[static_cast<size_t>(device)]) {
    devices[static_cast<size_t>(device)] = false;
    cuDevicePrimaryCtxRelease_v2(device);
  }
  return finish(status);
}
