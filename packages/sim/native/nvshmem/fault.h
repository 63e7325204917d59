// Fault injection: PEs that die, hang or are slow, and devices that fail.
#pragma once

namespace shoal::nvshmem {

// Injects the fault that was requested for this call. Does not return if the PE must die or hang.
void injectFault(const char* function, int pe, int device);
bool hasFaults();

}  // namespace shoal::nvshmem
