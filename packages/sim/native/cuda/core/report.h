// Error information for the program beyond the result code.
#pragma once

#include <string>

#include "forengine.h"
#include "shoal/cuda.h"

namespace shoal {

// cuGetErrorString appends this report to its text for the result from now on.
SHOAL_FOR_ENGINE void describeResult(CUresult result, const std::string& report);

// Adds a line to the log that cuLogsDumpToMemory returns, and calls the registered log callbacks.
void logError(const std::string& message);

class Context;
// Called when a context becomes unusable. Logs the failure, and writes a core dump if the program enabled it.
void reportFailure(const Context& context, CUresult result);

}  // namespace shoal
