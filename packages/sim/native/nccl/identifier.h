// The unique id: 128 bytes that name the rendezvous.
#pragma once

#include "rendezvous.h"
#include "shoal/nccl.h"

namespace shoal::nccl {

struct Identifier {
  char magic[8];
  RendezvousAddress rendezvous;
  uint64_t key;
};

ncclResult_t makeIdentifier(ncclUniqueId& id);
ncclResult_t readIdentifier(const ncclUniqueId& id, Identifier& identifier);

}  // namespace shoal::nccl
