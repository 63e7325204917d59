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

// Lists of types as the sources here use them: of what the header has in several parts, all that a function is declared
// for.
#define SHOAL_NVSHMEM_BITWISE_AMO_TYPES(X) SHOAL_NVSHMEM_BITWISE_AMO(X)
#define SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X) SHOAL_NVSHMEM_BITWISE_AMO(X) SHOAL_NVSHMEM_STANDARD_AMO(X)
#define SHOAL_NVSHMEM_EXTENDED_AMO_TYPES(X) SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X) SHOAL_NVSHMEM_EXTENDED_AMO(X)
#define SHOAL_NVSHMEM_REDUCE_TYPES(X) SHOAL_NVSHMEM_STANDARD_REDUCE_TYPES(X)
#define SHOAL_NVSHMEM_RMA_TYPES(X) SHOAL_NVSHMEM_STANDARD_RMA_TYPES(X)

// What the library writes its log with; nothing but their names is NVSHMEM's.
SHOAL_EXPORT void nvshmem_debug_log(int level, unsigned long flags, const char* function, int line, const char* format,
                                    ...);

// What only the software device has: why waiting is over for this process (a PE has ended, say), or NULL.
SHOAL_EXPORT const char* shoalSimNvshmemFailure(void);
// Faults of this process from now on, as SHOAL_SIM_FAULT describes them; NULL for none. An nvshmemx_status.
SHOAL_EXPORT int shoalSimNvshmemFault(const char* faults);
}
