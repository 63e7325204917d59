// Combines the elements of several PEs, in PE order.
#pragma once

#include <cstddef>

#include "shoal/nvshmem.h"

namespace shoal::nvshmem {

// Writes `count` elements, combined from all sources. Floats of 16 bits are combined in float and rounded once.
// Integers wrap around.
using Combine = void (*)(void* out, const void* const* sources, size_t sourceCount, size_t count);

}  // namespace shoal::nvshmem
