// NVSHMEM's host ABI, as the software device implements it; see cuda.h.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "shoal/cuda.h"

extern "C" {

// Passed by value like CUDA's 16-bit float classes: two bytes in an integer register.
typedef struct {
  uint16_t bits;
} ShoalHalf;
typedef struct {
  uint16_t bits;
} ShoalBfloat16;

#include "shoal/nvshmem.gen.h"

// Type lists for the sources. The header splits some of its lists into parts; each list here has all types of a
// function.
#define SHOAL_NVSHMEM_BITWISE_AMO_TYPES(X) SHOAL_NVSHMEM_BITWISE_AMO(X)
#define SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X) SHOAL_NVSHMEM_BITWISE_AMO(X) SHOAL_NVSHMEM_STANDARD_AMO(X)
#define SHOAL_NVSHMEM_EXTENDED_AMO_TYPES(X) SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X) SHOAL_NVSHMEM_EXTENDED_AMO(X)
#define SHOAL_NVSHMEM_REDUCE_TYPES(X) SHOAL_NVSHMEM_STANDARD_REDUCE_TYPES(X)
#define SHOAL_NVSHMEM_RMA_TYPES(X) SHOAL_NVSHMEM_STANDARD_RMA_TYPES(X)

// The functions that the library logs with. Only their names are taken from NVSHMEM.
SHOAL_EXPORT void nvshmem_debug_log(int level, unsigned long flags, const char* function, int line, const char* format,
                                    ...);

// Only in the software device: why this process can no longer wait (for example, because a PE has ended), or NULL.
SHOAL_EXPORT const char* shoalSimNvshmemFailure(void);
// Replaces the faults of this process, in the syntax of SHOAL_SIM_FAULT; NULL removes all. Returns an nvshmemx_status.
SHOAL_EXPORT int shoalSimNvshmemFault(const char* faults);
}
