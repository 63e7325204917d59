// The part of NCCL's C ABI that the software device implements; see cuda.h.
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "shoal/cuda.h"

extern "C" {
#include "shoal/nccl.gen.h"

#define NCCL_SIM_INFO_MAGIC 0x74685283u
typedef ncclGinOutboxHandle ncclGinOutboxHandle_t;
typedef ncclGinInboxA2AHandle ncclGinInboxA2AHandle_t;

// Functions of the software device only.

// Replaces the faults injected into ranks of this process; null removes all. The syntax is that of SHOAL_SIM_FAULT,
// which sets the initial faults. Returns an ncclResult_t.
SHOAL_EXPORT int shoalSimNcclFault(const char* faults);
}
