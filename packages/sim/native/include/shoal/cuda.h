// The part of the CUDA driver's C ABI that the software device speaks. Names, values and layouts are generated from the
// spec (tooling/bindgen): what the sources here name. Nothing of the CUDA toolkit is needed to build this package.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define SHOAL_EXPORT __declspec(dllexport)
#else
#define SHOAL_EXPORT __attribute__((visibility("default")))
#endif

extern "C" {

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef unsigned long long CUdeviceptr;

#include "shoal/cuda.gen.h"

// What only the software device has.

// One line that names the software device; no real driver exports this symbol.
SHOAL_EXPORT const char* shoalSimDescribe(void);
// What nobody has given back, one line a kind. Answers how many bytes that takes, its NUL included.
SHOAL_EXPORT size_t shoalSimLeft(char* text, size_t bytes);
// Makes every context of the device fail with `code` from now on, as a fault on hardware would; code 0 heals it.
SHOAL_EXPORT CUresult shoalSimInjectError(int device, int code);
// Queues a pause on a stream.
SHOAL_EXPORT CUresult shoalSimStreamDelay(CUstream stream, uint64_t nanoseconds);
// Queues `run` on a stream as device work. It may block; its result becomes the context's error unless it is 0.
// `discard` is called in its place when the context has failed before. The ranges are checked like those of a copy and
// stay alive until the work has ended.
struct ShoalSimRange {
  CUdeviceptr address;
  size_t length;
  int isWritten;
};
SHOAL_EXPORT CUresult shoalSimEnqueue(CUstream stream, CUresult (*run)(void*), void (*discard)(void*), void* userData,
                                      const ShoalSimRange* ranges, size_t rangeCount);
// The same on a stream that is captured: a node of the graph. Each launch calls `start`, in the order of launches, for
// what `run` or `discard` gets; `release` is called when no graph has the node any more.
SHOAL_EXPORT CUresult shoalSimCapture(CUstream stream, void* (*start)(void*), CUresult (*run)(void*),
                                      void (*discard)(void*), void (*release)(void*), void* userData,
                                      const ShoalSimRange* ranges, size_t rangeCount);
}
