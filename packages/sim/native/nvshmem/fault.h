// Faults on demand: PEs that die, hang or are slow, and devices that are lost.
#pragma once

namespace shoal::nvshmem {

// Lets happen what was asked for at this call. Does not return when the PE is to die or to hang.
void injectFault(const char* function, int pe, int device);
bool hasFaults();

}  // namespace shoal::nvshmem
