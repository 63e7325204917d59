// What a program is told of an error besides its name.
#pragma once

#include <string>

#include "forengine.h"
#include "shoal/cuda.h"

namespace shoal {

// From now on cuGetErrorString adds this to what it says of the result.
SHOAL_FOR_ENGINE void describeResult(CUresult result, const std::string& report);

// Adds a line to what cuLogsDumpToMemory gives, and calls those who listen.
void logError(const std::string& message);

class Context;
// A context cannot be used any more: tells the log, and writes a core dump where one is asked for.
void reportFailure(const Context& context, CUresult result);

}  // namespace shoal
