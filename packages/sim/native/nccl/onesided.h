// Puts and signals: one-sided operations, in which the peer takes no part.
#pragma once

#include "endpoint.h"
#include "task.h"

namespace shoal::nccl {

// Writes the data, then signals the peer.
ncclResult_t put(Endpoint& endpoint, const Task& task);
// Returns when the peers have sent enough signals.
ncclResult_t waitForSignals(Endpoint& endpoint, const Task& task);

}  // namespace shoal::nccl
