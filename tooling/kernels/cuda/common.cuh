// What the kernels of the corpus share: kernels of one thread an element.
#pragma once

#include <cstdint>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

// `NAME(x, out, n)`: the body has `a`, the element, and `o`, the M results of it.
#define EACH1(NAME, A, R, M, ...)                                      \
  extern "C" __global__ void NAME(const A* x, R* out, int n) {         \
    const int i = INDEX;                                               \
    if (i >= n) return;                                                \
    const A a = x[i];                                                  \
    R* o = out + i * M;                                                \
    __VA_ARGS__                                                        \
  }
#define EACH2(NAME, A, B, R, M, ...)                                   \
  extern "C" __global__ void NAME(const A* x, const B* y, R* out, int n) { \
    const int i = INDEX;                                               \
    if (i >= n) return;                                                \
    const A a = x[i];                                                  \
    const B b = y[i];                                                  \
    R* o = out + i * M;                                                \
    __VA_ARGS__                                                        \
  }
#define EACH3(NAME, A, B, C, R, M, ...)                                \
  extern "C" __global__ void NAME(const A* x, const B* y, const C* z, R* out, int n) { \
    const int i = INDEX;                                               \
    if (i >= n) return;                                                \
    const A a = x[i];                                                  \
    const B b = y[i];                                                  \
    const C c = z[i];                                                  \
    R* o = out + i * M;                                                \
    __VA_ARGS__                                                        \
  }
