/* What the C programs with one process a rank share: they answer requests on standard input, one line each, and meet by
 * an id that the first of them prints and all of them are told.
 */
#ifndef SHOAL_BENCH_RANKS_H
#define SHOAL_BENCH_RANKS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_DEVICES 64
#define ID_BYTES 128

static void fail(const char* call, const char* words) {
  fprintf(stderr, "%s: %s\n", call, words);
  exit(1);
}

static void check_cuda(CUresult status, const char* call) {
  const char* name = "?";
  if (status == CUDA_SUCCESS) return;
  cuGetErrorName(status, &name);
  fail(call, name);
}
#define CUDA(call) check_cuda(call, #call)

static void* open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) fail("dlopen", dlerror());
  return library;
}

static void* symbol(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (address == NULL) fail(name, dlerror());
  return address;
}

/* Microseconds. */
static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* Prints `id HEX` (the first rank) or `waiting` (the others), waits for `start HEX` and reads the id from it. */
static void exchange_id(unsigned char* id, int is_first) {
  if (is_first) {
    printf("id ");
    for (int i = 0; i < ID_BYTES; ++i) printf("%02x", id[i]);
    printf("\n");
  } else {
    printf("waiting\n");
  }
  fflush(stdout);
  char text[2 * ID_BYTES + 1];
  if (scanf(" start %256s", text) != 1 || strlen(text) != 2 * ID_BYTES) fail("start", "no id on standard input");
  for (int i = 0; i < ID_BYTES; ++i) {
    unsigned byte;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1) fail("start", "the id is not hexadecimal");
    id[i] = (unsigned char)byte;
  }
}

static inline void answer(double value) {
  printf("%.4f\n", value);
  fflush(stdout);
}

/* The primary context of the device, current on this thread. */
static CUcontext enter_device(int ordinal) {
  CUdevice device;
  CUcontext context;
  CUDA(cuDeviceGet(&device, ordinal));
  CUDA(cuDevicePrimaryCtxRetain(&context, device));
  CUDA(cuCtxSetCurrent(context));
  return context;
}

#endif
