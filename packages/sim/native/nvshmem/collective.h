// Collective operations of a team.
#pragma once

#include "reduce.h"
#include "session.h"

namespace shoal::nvshmem {

enum class CollectiveKind : uint32_t { broadcast = 400, fcollect, allToAll, reduce, reduceScatter };

struct Collective {
  const char* function;
  CollectiveKind kind;
  uint32_t type;  // index in the list of types, to check that all PEs agree
  size_t elementBytes;
  uint32_t operation;  // for reductions
  Combine combine;
  nvshmem_team_t team;
  void* destination;
  const void* source;
  size_t count;
  int root = 0;
};

// Both return an nvshmemx_status.
int run(const Collective& wanted);
int runOnStream(const Collective& wanted, cudaStream_t stream);

}  // namespace shoal::nvshmem
