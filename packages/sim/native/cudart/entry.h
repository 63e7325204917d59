// The start and end of runtime functions: the current device, a context, and the thread's last error.
#pragma once

#include <shoal/cudart.h>

namespace shoal::cudart {

// Returns the status. Stores it as the thread's last error if it is not success.
cudaError_t finish(CUresult status);

// Starts the driver once.
CUresult start();

// Makes the primary context of the current device current, unless another context is current already.
CUresult ensureContext();

// The device of the current context, or the one chosen by cudaSetDevice.
CUresult currentDevice(int& device);

// Returns the primary context of a device. Retains it once for the process, and again after a reset.
CUresult primaryContext(int device, CUcontext& context);

// For functions that need a context. `body` returns the status.
template <class Body>
cudaError_t onDevice(Body&& body) {
  const CUresult status = ensureContext();
  return finish(status != CUDA_SUCCESS ? status : body());
}

// For functions that need the driver but no context.
template <class Body>
cudaError_t started(Body&& body) {
  const CUresult status = start();
  return finish(status != CUDA_SUCCESS ? status : body());
}

// The runtime refuses a copy direction that contradicts the pointers.
CUresult checkDirection(const void* dst, const void* src, cudaMemcpyKind kind);

// Finds the driver's format. Returns false if the description is not a format.
bool formatOf(const cudaChannelFormatDesc& desc, CUarray_format& format, unsigned& channels);
// 0 for planar formats.
size_t bytesOfTexel(CUarray_format format, unsigned channels);

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
// Conversions from the runtime's handles to the driver's.
inline CUarray driverArray(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
}
inline CUarray* driverArrayOut(cudaArray_t* array) { return reinterpret_cast<CUarray*>(array); }
inline CUmipmappedArray driverArray(cudaMipmappedArray_const_t array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray_t>(array));
}

inline CUdeviceptr* addressOut(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

// Defines a function and its variant for per-thread default streams. They call different driver functions.
#define SHOAL_RT_TWIN(name, suffix, parameters, legacy, perThread) \
  cudaError_t name parameters {                                    \
    return onDevice([&] { return legacy; });                       \
  }                                                                \
  cudaError_t name##suffix parameters {                            \
    return onDevice([&] { return perThread; });                    \
  }

}  // namespace shoal::cudart
