// The part of the CUDA driver's C ABI that the software device implements. tooling/bindgen generates the names, values
// and layouts that the sources use from the spec. Building this package requires nothing of the CUDA toolkit.
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

// Functions of the software device only.

// Describes the software device in one line. No real driver exports this symbol.
SHOAL_EXPORT const char* shoalSimDescribe(void);
// Lists objects that the program did not free, one line per kind. Returns the size of the text, including its NUL.
SHOAL_EXPORT size_t shoalSimLeft(char* text, size_t bytes);
// From now on, every context of the device fails with `code`, as after a fault on hardware. Code 0 ends the fault.
SHOAL_EXPORT CUresult shoalSimInjectError(int device, int code);
// Queues a pause on a stream.
SHOAL_EXPORT CUresult shoalSimStreamDelay(CUstream stream, uint64_t nanoseconds);
// Queues `run` on a stream as device work. `run` may block. Its result becomes the context's error unless it is 0. If
// the context has failed before, `discard` is called instead. The ranges are checked like the ranges of a copy, and
// stay alive until the work has completed.
struct ShoalSimRange {
  CUdeviceptr address;
  size_t length;
  int isWritten;
};
SHOAL_EXPORT CUresult shoalSimEnqueue(CUstream stream, CUresult (*run)(void*), void (*discard)(void*), void* userData,
                                      const ShoalSimRange* ranges, size_t rangeCount);
// Adds the work as a node to the graph that the stream is captured into. Each launch calls `start`, in launch order,
// and passes its result to `run` or `discard`. `release` is called when the last graph with this node is gone.
SHOAL_EXPORT CUresult shoalSimCapture(CUstream stream, void* (*start)(void*), CUresult (*run)(void*),
                                      void (*discard)(void*), void (*release)(void*), void* userData,
                                      const ShoalSimRange* ranges, size_t rangeCount);
}
