/* Shared by the benchmark's programs: time, contexts, files and answers. */
#ifndef SHOAL_BENCH_COMMON_H
#define SHOAL_BENCH_COMMON_H

#include "library.h"
#include <cuda.h>
#include <errno.h>
#include <time.h>

static inline void check_cuda(CUresult status, const char* call) {
  const char* name = "?";
  if (status == CUDA_SUCCESS) return;
  cuGetErrorName(status, &name);
  fail(call, name);
}
#define CUDA(call) check_cuda(call, #call)

/* In nanoseconds. */
static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline void answer(double value) {
  printf("%.4f\n", value);
  fflush(stdout);
}

/* Reads a file as text, terminated by a zero. */
static inline char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) fail(path, strerror(errno));
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char* text = malloc(size + 1);
  if (fread(text, 1, size, file) != (size_t)size) fail(path, strerror(errno));
  text[size] = 0;
  fclose(file);
  return text;
}

/* Makes the device's primary context current on this thread. */
static inline CUcontext enter_device(int ordinal) {
  CUdevice device;
  CUcontext context;
  CUDA(cuInit(0));
  CUDA(cuDeviceGet(&device, ordinal));
  CUDA(cuDevicePrimaryCtxRetain(&context, device));
  CUDA(cuCtxSetCurrent(context));
  return context;
}

#endif
