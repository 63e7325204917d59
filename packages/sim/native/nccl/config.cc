#include "config.h"

#include <cstddef>
#include <cstring>

#include "problem.h"

namespace shoal::nccl {

namespace {

bool isDefined(int value) { return value != NCCL_CONFIG_UNDEF_INT; }

ncclResult_t check(const char* name, int value, int least, int most = INT_MAX) {
  if (!isDefined(value) || (value >= least && value <= most)) return ncclSuccess;
  if (most == INT_MAX)
    return problem(ncclInvalidArgument, "ncclConfig_t: %s is %d, it must be at least %d", name, value, least);
  return problem(ncclInvalidArgument, "ncclConfig_t: %s is %d, it must be from %d to %d", name, value, least, most);
}

void take(int& own, int given) {
  if (isDefined(given)) own = given;
}

void take(bool& own, int given) {
  if (isDefined(given)) own = given != 0;
}

}  // namespace

ncclResult_t readConfig(const ncclConfig_t* given, Config& config) {
  if (given == nullptr) return ncclSuccess;
  if (given->magic != NCCL_API_MAGIC) {
    return problem(ncclInvalidArgument, "ncclConfig_t: magic is 0x%x, not 0x%x: the structure was not initialized",
                   given->magic, NCCL_API_MAGIC);
  }
  constexpr size_t least = offsetof(ncclConfig_t, cgaClusterSize);
  if (given->size < least || given->size > 4096) {
    return problem(ncclInvalidArgument, "ncclConfig_t: size is %zu, which no version of NCCL has", given->size);
  }
  if (given->version < 21400)
    return problem(ncclInvalidArgument, "ncclConfig_t: version is %u, the oldest that has it is 21400", given->version);
  ncclConfig_t all = NCCL_CONFIG_INITIALIZER;
  memcpy(&all, given, given->size < sizeof all ? given->size : sizeof all);
  struct Member {
    const char* name;
    int value, least, most;
  };
  const Member members[] = {
      {"blocking", all.blocking, 0, 1},
      {"cgaClusterSize", all.cgaClusterSize, 0, INT_MAX},
      {"minCTAs", all.minCTAs, 1, INT_MAX},
      {"maxCTAs", all.maxCTAs, 1, INT_MAX},
      {"splitShare", all.splitShare, 0, 1},
      {"collnetEnable", all.collnetEnable, 0, 1},
      {"CTAPolicy", all.CTAPolicy, NCCL_CTA_POLICY_DEFAULT, NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO},
      {"shrinkShare", all.shrinkShare, 0, 1},
      {"nvlsCTAs", all.nvlsCTAs, 1, INT_MAX},
      {"nChannelsPerNetPeer", all.nChannelsPerNetPeer, 1, 64},
      {"nvlinkCentricSched", all.nvlinkCentricSched, 0, 1},
      {"graphUsageMode", all.graphUsageMode, 0, 2},
      {"numRmaCtx", all.numRmaCtx, 1, INT_MAX},
      {"maxP2pPeers", all.maxP2pPeers, 1, INT_MAX},
      {"graphStreamOrdering", all.graphStreamOrdering, 0, 1},
  };
  for (const Member& member : members) {
    if (const ncclResult_t result = check(member.name, member.value, member.least, member.most)) return result;
  }
  if (isDefined(all.minCTAs) && isDefined(all.maxCTAs) && all.minCTAs > all.maxCTAs) {
    return problem(ncclInvalidArgument, "ncclConfig_t: minCTAs is %d and maxCTAs only %d", all.minCTAs, all.maxCTAs);
  }
  take(config.isBlocking, all.blocking);
  take(config.splitShare, all.splitShare);
  take(config.shrinkShare, all.shrinkShare);
  take(config.cgaClusterSize, all.cgaClusterSize);
  take(config.minCTAs, all.minCTAs);
  take(config.maxCTAs, all.maxCTAs);
  take(config.numRmaCtx, all.numRmaCtx);
  take(config.maxP2pPeers, all.maxP2pPeers);
  if (all.commName != nullptr) config.name = all.commName;
  return ncclSuccess;
}

}  // namespace shoal::nccl
