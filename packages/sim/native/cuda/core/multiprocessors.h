// How many multiprocessors each device has, and sets of them.
#pragma once

#include <bitset>

#include "forengine.h"

namespace shoal {

constexpr unsigned kMostMultiprocessors = 192;
using Multiprocessors = std::bitset<kMostMultiprocessors>;

// Known once the driver is initialised.
SHOAL_FOR_ENGINE unsigned multiprocessorCount();

}  // namespace shoal
