/* What the programs in C share: errors, time, contexts and answers. */
#ifndef SHOAL_BENCH_COMMON_H
#define SHOAL_BENCH_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline void fail(const char* call, const char* words) {
  fprintf(stderr, "%s: %s\n", call, words);
  exit(1);
}

static inline void check_cuda(CUresult status, const char* call) {
  const char* name = "?";
  if (status == CUDA_SUCCESS) return;
  cuGetErrorName(status, &name);
  fail(call, name);
}
#define CUDA(call) check_cuda(call, #call)

/* Nanoseconds. */
static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline void answer(double value) {
  printf("%.4f\n", value);
  fflush(stdout);
}

/* The primary context of the device, current on this thread. */
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
