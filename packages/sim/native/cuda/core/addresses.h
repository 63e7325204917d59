// Address ranges without memory, reserved from the operating system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal {

// Reserves near `hint` if possible. Returns 0 if the system has no addresses left. Touching a reserved range faults
// until memory is mapped there.
uint64_t reserveAddresses(size_t size, size_t alignment, uint64_t hint);
void releaseAddresses(uint64_t base, size_t size);
// Unmaps the memory and keeps the addresses reserved.
void emptyAddresses(uint64_t base, size_t size);

}  // namespace shoal
