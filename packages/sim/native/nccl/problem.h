// The text that ncclGetLastError returns.
#pragma once

#include <cstdarg>
#include <cstring>
#include <string>

#include "shoal/nccl.h"

namespace shoal::nccl {

// Stores the text and returns the result, for use as `return problem(ncclInvalidArgument, "...")`.
ncclResult_t problem(ncclResult_t result, const char* format, ...) __attribute__((format(printf, 2, 3)));
const char* lastProblem();

// Translates a failed call of the CUDA driver.
ncclResult_t cudaProblem(CUresult status, const char* call);

inline std::string because(const char* what, int error) { return std::string(what) + ": " + strerror(error); }

}  // namespace shoal::nccl
