/*
 * Copies between page-locked host memory and a device, as a library. All subjects then use the same memory in the same
 * process, because the speed depends on the memory's location. Waits after each copy.
 */
#include "common.h"

int copy_to_device(CUdeviceptr device, const void* host, size_t bytes, CUstream stream, size_t count,
                   double* nanoseconds) {
  const double begin = now();
  for (size_t i = 0; i < count; ++i) {
    CUDA(cuMemcpyHtoDAsync(device, host, bytes, stream));
    CUDA(cuStreamSynchronize(stream));
  }
  *nanoseconds = (now() - begin) / count;
  return 0;
}

int copy_to_host(CUdeviceptr device, void* host, size_t bytes, CUstream stream, size_t count, double* nanoseconds) {
  const double begin = now();
  for (size_t i = 0; i < count; ++i) {
    CUDA(cuMemcpyDtoHAsync(host, device, bytes, stream));
    CUDA(cuStreamSynchronize(stream));
  }
  *nanoseconds = (now() - begin) / count;
  return 0;
}
