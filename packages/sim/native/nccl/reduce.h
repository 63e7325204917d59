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
  const void* const* inputs;  // one per rank, in rank order
  const uint64_t* scalars;    // for preMulSum: the factor of each rank, in the low bytes
  void* const* outputs;       // all outputs get the result; an output may be one of the inputs
  int outputCount;
  size_t count;
};

// Combines in rank order, so every rank gets the same bits. Floats of 16 and 8 bits are combined in float and rounded
// once at the end. Integers wrap around. avg divides the sum once at the end.
void reduce(const Reduction& reduction);

}  // namespace shoal::nccl
