// Two ranks of NCCL. Each has a thread, for calls that both ranks must make at the same time.
#pragma once

#include "corners.h"
#include "shoal/cuda.h"
#include "shoal/nccl.h"

namespace corners {

// The time limit is short, because a real NCCL may hang.
inline int run(int count, char** arguments, const std::vector<Group>& groups) {
  return runGroups(count, arguments, groups, 6);
}

constexpr size_t kBytes = 4 << 20;
inline ncclComm_t comm[2];
inline CUcontext context[2];
inline CUstream stream[2];
inline void* memory[2];

using Body = std::function<long long(int rank)>;

inline std::pair<long long, long long> both(const Body& body) {
  long long results[2] = {};
  std::thread other([&] {
    cuCtxSetCurrent(context[1]);
    results[1] = body(1);
  });
  cuCtxSetCurrent(context[0]);
  results[0] = body(0);
  other.join();
  return {results[0], results[1]};
}
// Prints how the calls of both ranks ended. `askFirst` prints only the first.
inline void askBoth(const std::string& name, const Body& body) {
  const auto [first, second] = both(body);
  say(name + " by 0", first);
  say(name + " by 1", second);
}
inline void askFirst(const std::string& name, const Body& body) { say(name, both(body).first); }

inline ncclResult_t settle(ncclComm_t of) {
  ncclResult_t state = ncclSuccess;
  do {
    if (const ncclResult_t result = ncclCommGetAsyncError(of, &state)) return result;
    if (state == ncclInProgress) usleep(1000);
  } while (state == ncclInProgress);
  return state;
}

inline int pair(bool isBlocking = true) {
  cuInit(0);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  for (int rank = 0; rank < 2; ++rank) {
    cuDevicePrimaryCtxRetain(&context[rank], rank);
    cuCtxSetCurrent(context[rank]);
    cuStreamCreate(&stream[rank], CU_STREAM_NON_BLOCKING);
  }
  both([&](int rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = isBlocking ? 1 : 0;
    ncclCommInitRankConfig(&comm[rank], 2, id, rank, &config);
    settle(comm[rank]);
    return ncclMemAlloc(&memory[rank], kBytes);
  });
  return cuCtxSetCurrent(context[0]);
}

inline ncclResult_t reduce(int rank) {
  return ncclAllReduce(memory[rank], memory[rank], 4, ncclFloat32, ncclSum, comm[rank], stream[rank]);
}
inline int finish(int rank) { return cuStreamSynchronize(stream[rank]); }

// The first collective of a real NCCL waits for the other rank on the host. Later collectives do not.
inline int meet() {
  both([](int rank) {
    const ncclResult_t result = reduce(rank);
    return result == ncclSuccess ? finish(rank) : result;
  });
  return 0;
}

}  // namespace corners
