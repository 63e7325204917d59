// Launch attributes. Streams and graph nodes have them, too.
#pragma once

#include "shoal/cuda.h"

namespace shoal {

bool isValidAttribute(int attribute, const CUlaunchAttributeValue& value);
// True if a kernel node has the attribute. Other attributes exist only for launches.
bool isNodeAttribute(int attribute);
// The default value of an attribute.
CUlaunchAttributeValue usualAttribute(int attribute);

}  // namespace shoal
