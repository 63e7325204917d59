// Puts and signals: what a rank does to another without its help.
#pragma once

#include "endpoint.h"
#include "task.h"

namespace shoal::nccl {

// Writes, then tells the peer.
ncclResult_t put(Endpoint& endpoint, const Task& task);
// Returns when the peers have told often enough.
ncclResult_t waitForSignals(Endpoint& endpoint, const Task& task);

}  // namespace shoal::nccl
