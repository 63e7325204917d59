// Primary contexts: one per device, shared by everybody who retains it.
#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"

using namespace shoal;

namespace {

template <class Body>
CUresult onDevice(CUdevice ordinal, Body&& body) {
  return initialised([&]() -> CUresult {
    Device* device = nullptr;
    if (const CUresult status = findDevice(ordinal, device)) return status;
    std::lock_guard lock(device->primaryMutex);
    return body(*device);
  });
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!device.primary->alive) {
      if (const int lost = device.error) return static_cast<CUresult>(lost);
      device.primary->activate(device.primaryFlags);
    }
    ++device.primaryRetained;
    *pctx = device.primary->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return onDevice(dev, [&](Device& device) {
    if (device.primaryRetained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device.primaryRetained == 0 && device.primary->alive) device.primary->destroy();
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return onDevice(dev, [&](Device& device) {
    if (device.greenContexts > 0) return CUDA_ERROR_NOT_PERMITTED;
    // Every retain still needs its release.
    if (device.primary->alive) device.primary->destroy();
    device.primaryFlags = 0;
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  return onDevice(dev, [&](Device& device) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *active = device.primary->alive ? 1 : 0;
    *flags = device.primaryFlags;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  return onDevice(dev, [&](Device& device) {
    if (!areFlagsValid(flags) || (flags & CU_CTX_MAP_HOST) != 0) return CUDA_ERROR_INVALID_VALUE;
    device.primaryFlags = flags;
    if (device.primary->alive) device.primary->flags = flags;
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}
