// Element-wise reduction over the ranks of a communicator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shoal/nccl.h"

namespace shoal::nccl {

size_t bytesOf(ncclDataType_t type);

enum class Reducer { sum, prod, max, min, avg, preMulSum };

struct Reduction {
  ncclDataType_t type;
  Reducer reducer;
  int ranks;
  const void* const* inputs;  // one for each rank, in order of the ranks
  const uint64_t* scalars;    // for preMulSum: each rank's factor, its bits in the low bytes
  void* const* outputs;       // the result is written to each; an output may be one of the inputs
  int outputCount;
  size_t count;
};

// Ranks are combined in their order, so every rank gets the same bits. 16- and 8-bit floats are combined in float and
// rounded once at the end; integers wrap around; avg divides the sum once at the end.
void reduce(const Reduction& reduction);

}  // namespace shoal::nccl
