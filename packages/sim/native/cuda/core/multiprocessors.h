// How many multiprocessors each device has, and sets of them.
#pragma once

#include <bitset>

namespace shoal {

constexpr unsigned kMostMultiprocessors = 192;
using Multiprocessors = std::bitset<kMostMultiprocessors>;

// Known once the driver is initialised.
unsigned multiprocessorCount();

}  // namespace shoal
