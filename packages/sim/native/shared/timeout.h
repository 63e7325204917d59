// The time that the software device's libraries wait for another process.
#pragma once

#include <cstdint>

namespace shoal {

// From SHOAL_SIM_TIMEOUT_SECONDS; 60 seconds by default. Reports an invalid value once, through `report`.
uint64_t timeoutNanoseconds(void (*report)(const char* text));

}  // namespace shoal
