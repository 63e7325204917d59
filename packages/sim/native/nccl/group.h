// Groups: what is asked for between ncclGroupStart and ncclGroupEnd starts together.
#pragma once

#include <memory>

#include "communicator.h"

namespace shoal::nccl {

// Both act at once outside a group, and at the end of the outermost group inside one.
ncclResult_t submitTask(const std::shared_ptr<Communicator>& communicator, const Task& task, CUstream stream);
ncclResult_t submitInitialisation(const std::shared_ptr<Communicator>& communicator, ncclComm_t* result);

// Remembers the first error of the group of this thread, if it is in one; returns it unchanged.
ncclResult_t noteError(ncclResult_t result);

}  // namespace shoal::nccl
