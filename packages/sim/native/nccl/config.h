// The configuration of a communicator, read from any version of the caller's structure.
#pragma once

#include <string>

#include "shoal/nccl.h"

namespace shoal::nccl {

struct Config {
  bool isBlocking = true;
  bool splitShare = false;
  bool shrinkShare = false;
  int cgaClusterSize = NCCL_CONFIG_UNDEF_INT;
  int minCTAs = NCCL_CONFIG_UNDEF_INT;
  int maxCTAs = NCCL_CONFIG_UNDEF_INT;
  int numRmaCtx = NCCL_CONFIG_UNDEF_INT;
  int maxP2pPeers = NCCL_CONFIG_UNDEF_INT;
  std::string name;
};

// Members that are undefined or missing in the caller's structure keep their value in `config`.
ncclResult_t readConfig(const ncclConfig_t* given, Config& config);

}  // namespace shoal::nccl
