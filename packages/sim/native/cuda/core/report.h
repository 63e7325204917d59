// What a program is told of an error besides its name.
#pragma once

#include <string>

#include "shoal/cuda.h"

namespace shoal {

// From now on cuGetErrorString adds this to what it says of the result.
void describeResult(CUresult result, const std::string& report);

}  // namespace shoal
