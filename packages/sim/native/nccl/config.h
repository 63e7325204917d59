// The configuration of a communicator, of whatever version the caller's structure is.
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

// Members that are undefined, or that the structure does not have, stay as they are in `config`.
ncclResult_t readConfig(const ncclConfig_t* given, Config& config);

}  // namespace shoal::nccl
