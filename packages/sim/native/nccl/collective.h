// The collectives. Each rank runs its part on its stream's thread.
#pragma once

#include "endpoint.h"
#include "task.h"

namespace shoal::nccl {

ncclResult_t runCollective(Endpoint& endpoint, const Task& task);

}  // namespace shoal::nccl
