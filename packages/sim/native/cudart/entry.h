// How the functions of the runtime begin and end: a current device, a context that is there, the last error of the
// thread.
#pragma once

#include <shoal/cudart.h>

namespace shoal::cudart {

// Keeps a status as the thread's last error, unless it is success, and gives it back.
cudaError_t finish(CUresult status);

// Starts the driver once.
CUresult start();

// Makes the primary context of the current device current unless another context is, which then counts.
CUresult ensureContext();

// The device of the current context, or the one that cudaSetDevice named.
CUresult currentDevice(int& device);

// Retains the primary context of a device for the process, anew after a reset, and gives it.
CUresult primaryContext(int device, CUcontext& context);

// For functions that need a context: `body` gives the status.
template <class Body>
cudaError_t onDevice(Body&& body) {
  const CUresult status = ensureContext();
  return finish(status != CUDA_SUCCESS ? status : body());
}

// For functions that need the driver and no context.
template <class Body>
cudaError_t started(Body&& body) {
  const CUresult status = start();
  return finish(status != CUDA_SUCCESS ? status : body());
}

// The runtime refuses a direction that the pointers contradict.
CUresult checkDirection(const void* dst, const void* src, cudaMemcpyKind kind);

// The driver's format; false for a description of none.
bool formatOf(const cudaChannelFormatDesc& desc, CUarray_format& format, unsigned& channels);
// 0 for formats of several planes.
size_t bytesOfTexel(CUarray_format format, unsigned channels);

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
// The driver's handles, by the runtime's words.
inline CUarray driverArray(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
}
inline CUarray* driverArrayOut(cudaArray_t* array) { return reinterpret_cast<CUarray*>(array); }
inline CUmipmappedArray driverArray(cudaMipmappedArray_const_t array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray_t>(array));
}

inline CUdeviceptr* addressOut(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

// Defines a function and its twin for per-thread default streams, which differ in the driver's functions they call.
#define SHOAL_RT_TWIN(name, suffix, parameters, legacy, perThread) \
  cudaError_t name parameters {                                    \
    return onDevice([&] { return legacy; });                       \
  }                                                                \
  cudaError_t name##suffix parameters {                            \
    return onDevice([&] { return perThread; });                    \
  }

}  // namespace shoal::cudart
