// Faults on demand: ranks that die, hang, are slow, or have an error.
#pragma once

#include <functional>

#include "shoal/nccl.h"

namespace shoal::nccl {

enum class FaultKind { none, hang, error };

// Lets happen what was asked for a rank in this function of NCCL. Does not return when the process is to die, and not
// before the time when it is to be slow, unless `isOver`. The rest is the caller's: to hang, or to fail with `code`.
FaultKind injectFault(const char* function, int rank, const std::function<bool()>& isOver, ncclResult_t& code);

// Waits until `isOver`.
void hang(const std::function<bool()>& isOver);

}  // namespace shoal::nccl
