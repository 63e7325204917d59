#include "identifier.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>

#include "problem.h"
#include "segment.h"

namespace shoal::nccl {

namespace {
constexpr char kMagic[] = "SHOALSIM";  // eight bytes, then the name
constexpr size_t kMagicBytes = sizeof kMagic - 1;
}  // namespace

ncclResult_t makeIdentifier(ncclUniqueId& id) {
  removeAbandonedSegments();
  std::random_device random;
  memset(id.internal, 0, sizeof id.internal);
  memcpy(id.internal, kMagic, kMagicBytes);
  snprintf(id.internal + kMagicBytes, sizeof id.internal - kMagicBytes, "%s%d-%08x%08x%08x", kSegmentPrefix, static_cast<int>(getpid()), random(),
           random(), random());
  return ncclSuccess;
}

ncclResult_t readIdentifier(const ncclUniqueId& id, std::string& segmentName) {
  const char* name = id.internal + kMagicBytes;
  const size_t most = sizeof id.internal - kMagicBytes, length = strnlen(name, most);
  const bool isOurs = memcmp(id.internal, kMagic, kMagicBytes) == 0 && strncmp(name, kSegmentPrefix, sizeof kSegmentPrefix - 1) == 0;
  if (!isOurs || length == most || memchr(name, '/', length) != nullptr) {
    return problem(ncclInvalidArgument, "the unique id does not come from ncclGetUniqueId of this library");
  }
  segmentName.assign(name, length);
  return ncclSuccess;
}

}  // namespace shoal::nccl
