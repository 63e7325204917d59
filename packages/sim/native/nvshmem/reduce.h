// Combining the elements of several PEs, in the order of the PEs.
#pragma once

#include <cstddef>

#include "shoal/nvshmem.h"

namespace shoal::nvshmem {

// Writes `count` elements combined from all sources. 16-bit floats are combined in float and rounded once; integers
// wrap around.
using Combine = void (*)(void* out, const void* const* sources, size_t sourceCount, size_t count);

}  // namespace shoal::nvshmem
