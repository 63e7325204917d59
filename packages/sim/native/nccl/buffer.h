// Checks the buffers of operations.
#pragma once

#include "communicator.h"

namespace shoal::nccl {

// The whole buffer must be live memory: of the communicator's device, pinned, or managed.
ncclResult_t checkBuffer(const Communicator& communicator, const char* function, const char* name, const void* buffer,
                         size_t bytes);

// True if memory of cuMemMap or ncclMemAlloc is mapped at this address.
bool isMapped(const void* address);

}  // namespace shoal::nccl
