// The number of multiprocessors of each device, and sets of multiprocessors.
#pragma once

#include <bitset>

#include "forengine.h"

namespace shoal {

constexpr unsigned kMostMultiprocessors = 192;
using Multiprocessors = std::bitset<kMostMultiprocessors>;

// Only valid after the driver is initialised.
SHOAL_FOR_ENGINE unsigned multiprocessorCount();

}  // namespace shoal
