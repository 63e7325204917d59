// Code that all ways to make a communicator share.
#pragma once

#include "communicator.h"
#include "identifier.h"

namespace shoal::nccl {

// The place of a new rank of this thread: the current context's device, or device 0 with its primary context.
ncclResult_t findPlace(Place& place);
// The place of a communicator made from this one.
Place placeOf(const Communicator& parent);

// Connects to the other ranks under a unique id.
ncclResult_t connectRanks(Communicator& communicator, const char* function, const Identifier& identifier,
                          std::shared_ptr<Endpoint> origin, std::vector<int> ranksThere, int ranks, int rank,
                          int identifiers);

}  // namespace shoal::nccl
