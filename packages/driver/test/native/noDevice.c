// A driver of CUDA 12.4 on a machine with no device.
#include <stddef.h>

enum { NO_DEVICE = 100, NOT_FOUND = 500 };

int cuInit(unsigned flags) {
  (void)flags;
  return NO_DEVICE;
}

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}

int cuCtxGetCurrent(void** context) {
  *context = NULL;
  return 3;
}

int cuCtxSetCurrent(void* context) {
  (void)context;
  return 3;
}

int cuGetErrorName(int status, const char** name) {
  *name = status == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
  return 0;
}

int cuGetErrorString(int status, const char** text) {
  *text = status == NO_DEVICE ? "no CUDA-capable device is detected" : "unknown error";
  return 0;
}
