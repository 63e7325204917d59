// What the ways to make a communicator have in common.
#pragma once

#include "communicator.h"
#include "identifier.h"

namespace shoal::nccl {

// Where a new rank of this thread works: the device of the current context, else device 0 and its primary context.
ncclResult_t findPlace(Place& place);
// Where a communicator made from this one works.
Place placeOf(const Communicator& parent);

// Connects to the other ranks under a unique id.
ncclResult_t connectRanks(Communicator& communicator, const char* function, const Identifier& identifier,
                          std::shared_ptr<Endpoint> origin, std::vector<int> ranksThere, int ranks, int rank,
                          int identifiers);

}  // namespace shoal::nccl
