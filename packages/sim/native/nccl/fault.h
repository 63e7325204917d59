// Fault injection: ranks that die, hang, are slow, or fail.
#pragma once

#include <functional>

#include "shoal/nccl.h"

namespace shoal::nccl {

enum class FaultKind { none, hang, error };

// Injects the fault that was requested for a rank in this NCCL function. Does not return if the process must die. A
// delay ends early if `isOver` returns true. The caller implements the rest: a hang, or an error with `code`.
FaultKind injectFault(const char* function, int rank, const std::function<bool()>& isOver, ncclResult_t& code);

// Blocks until `isOver` returns true.
void hang(const std::function<bool()>& isOver);

}  // namespace shoal::nccl
