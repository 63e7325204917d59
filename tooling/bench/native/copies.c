/* Copies between page-locked host memory and a device, as a library: the same memory in the same process, since where
 * host memory lies decides how fast it is. Each copy is waited for. */
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
