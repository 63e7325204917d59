// Ranges of addresses without memory, taken from the system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal {

// Near `hint` where that is possible; 0 when the system has none. Nobody can touch them until something is mapped
// there.
uint64_t reserveAddresses(size_t size, size_t alignment, uint64_t hint);
void releaseAddresses(uint64_t base, size_t size);
// Takes what is mapped there away and keeps the addresses.
void emptyAddresses(uint64_t base, size_t size);

}  // namespace shoal
