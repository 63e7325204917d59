// Memory of the device begins with a pattern where SHOAL_SIM_CHECK=1, so that the checker can tell what nobody wrote.
#pragma once

#include <cstdint>

namespace shoal::ptx {

constexpr uint64_t kUnwritten = 0xfff7a5c3e19b4d27u;

// Does nothing where the checker is off, and for memory of more than 256 MiB, all of which it would make resident.
void markUnwritten(uint64_t base, uint64_t bytes);

}  // namespace shoal::ptx
