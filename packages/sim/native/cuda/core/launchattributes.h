// Attributes of launches, as streams and nodes of graphs have them, too.
#pragma once

#include "shoal/cuda.h"

namespace shoal {

bool isValidAttribute(int attribute, const CUlaunchAttributeValue& value);
// Whether a node of a kernel has it; the others are of the launch alone.
bool isNodeAttribute(int attribute);
// What it is where nobody set it.
CUlaunchAttributeValue usualAttribute(int attribute);

}  // namespace shoal
