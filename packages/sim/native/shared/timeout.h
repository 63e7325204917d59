// How long the software device's libraries wait for another process.
#pragma once

#include <cstdint>

namespace shoal {

// SHOAL_SIM_TIMEOUT_SECONDS, 60 without it. What is wrong with it is told once, by `report`.
uint64_t timeoutNanoseconds(void (*report)(const char* text));

}  // namespace shoal
