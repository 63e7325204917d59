// NVSHMEM's host ABI, as the software device speaks it: see cuda.h.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "shoal/cuda.h"

extern "C" {

// Passed by value as CUDA's classes of 16-bit floats are: two bytes in an integer register.
typedef struct {
  uint16_t bits;
} ShoalHalf;
typedef struct {
  uint16_t bits;
} ShoalBfloat16;

#include "shoal/nvshmem.gen.h"

// Every list below calls X(name in the functions, C type).
#define SHOAL_NVSHMEM_BITWISE_AMO_TYPES(X) \
  X(uint, unsigned int)                    \
  X(ulong, unsigned long)                  \
  X(ulonglong, unsigned long long)         \
  X(int32, int32_t)                        \
  X(uint32, uint32_t)                      \
  X(int64, int64_t)                        \
  X(uint64, uint64_t)
#define SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X) \
  SHOAL_NVSHMEM_BITWISE_AMO_TYPES(X)        \
  X(int, int)                               \
  X(long, long)                             \
  X(longlong, long long)                    \
  X(size, size_t)                           \
  X(ptrdiff, ptrdiff_t)
#define SHOAL_NVSHMEM_EXTENDED_AMO_TYPES(X) \
  SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X)       \
  X(float, float)                           \
  X(double, double)
#define SHOAL_NVSHMEM_WAIT_TYPES(X)   \
  SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X) \
  X(short, short)                     \
  X(ushort, unsigned short)
#define SHOAL_NVSHMEM_BITWISE_REDUCE_TYPES(X) \
  X(uchar, unsigned char)                     \
  X(ushort, unsigned short)                   \
  X(uint, unsigned int)                       \
  X(ulong, unsigned long)                     \
  X(ulonglong, unsigned long long)            \
  X(int8, int8_t)                             \
  X(int16, int16_t)                           \
  X(int32, int32_t)                           \
  X(int64, int64_t)                           \
  X(uint8, uint8_t)                           \
  X(uint16, uint16_t)                         \
  X(uint32, uint32_t)                         \
  X(uint64, uint64_t)                         \
  X(size, size_t)
#define SHOAL_NVSHMEM_REDUCE_TYPES(X)   \
  SHOAL_NVSHMEM_BITWISE_REDUCE_TYPES(X) \
  X(char, char)                         \
  X(schar, signed char)                 \
  X(short, short)                       \
  X(int, int)                           \
  X(long, long)                         \
  X(longlong, long long)                \
  X(bfloat16, ShoalBfloat16)            \
  X(half, ShoalHalf)                    \
  X(float, float)                       \
  X(double, double)
#define SHOAL_NVSHMEM_RMA_TYPES(X) \
  SHOAL_NVSHMEM_REDUCE_TYPES(X)    \
  X(ptrdiff, ptrdiff_t)
// X(bits)
#define SHOAL_NVSHMEM_SIZES(X) X(8) X(16) X(32) X(64) X(128)

// What the library writes its log with; nothing but their names is NVSHMEM's.
SHOAL_EXPORT void nvshmem_debug_log(int level, unsigned long flags, const char* function, int line, const char* format, ...);

// What only the software device has: why waiting is over for this process (a PE has ended, say), or NULL.
SHOAL_EXPORT const char* shoalSimNvshmemFailure(void);
// Faults of this process from now on, as SHOAL_SIM_FAULT describes them; NULL for none. An nvshmemx_status.
SHOAL_EXPORT int shoalSimNvshmemFault(const char* faults);
}
