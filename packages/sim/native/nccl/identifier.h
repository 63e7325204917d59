// The unique id: 128 bytes that carry the name under which the ranks meet.
#pragma once

#include <string>

#include "shoal/nccl.h"

namespace shoal::nccl {

ncclResult_t makeIdentifier(ncclUniqueId& id);
ncclResult_t readIdentifier(const ncclUniqueId& id, std::string& segmentName);

}  // namespace shoal::nccl
