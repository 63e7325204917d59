// Checks of the buffers that operations are given.
#pragma once

#include "communicator.h"

namespace shoal::nccl {

// The whole buffer must be live memory that the communicator's device owns, or pinned or managed memory.
ncclResult_t checkBuffer(const Communicator& communicator, const char* function, const char* name, const void* buffer,
                         size_t bytes);

// Whether memory that cuMemMap or ncclMemAlloc put there lies here.
bool isMapped(const void* address);

}  // namespace shoal::nccl
