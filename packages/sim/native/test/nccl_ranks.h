// Several ranks in one process, one thread each.
#pragma once

#include <unistd.h>

#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nccl_checks.h"

namespace check {

// Waits until another rank has reached a point. Ends early if a rank has failed.
template <class Condition>
void waitUntil(Condition&& condition) {
  for (int attempt = 0; !condition(); ++attempt) {
    if (attempt == 30000) throw Failure("another rank has not come so far");
    usleep(1000);
  }
}

// Runs `body` for each rank on its own thread, without a communicator. Destroys the communicator that it leaves in
// `self`. The first failure fails the test.
template <class Body>
void inThreads(int ranks, Body&& body) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::string failure;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Primary primary(rank);
        Rank self = {nullptr, check::stream(), rank, ranks};
        body(self);
        if (self.comm != nullptr) NCCL(ncclCommDestroy(self.comm));
        OK(cuStreamDestroy_v2(self.stream));
      } catch (const std::exception& error) {
        std::lock_guard lock(mutex);
        if (failure.empty()) failure = "rank " + std::to_string(rank) + ": " + error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (!failure.empty()) throw Failure(failure);
}

// Runs `body` for each rank with a communicator of all ranks.
template <class Body>
void onRanks(int ranks, Body&& body) {
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  inThreads(ranks, [&](Rank& self) {
    NCCL(ncclCommInitRank(&self.comm, ranks, id, self.rank));
    body(self);
  });
}

}  // namespace check
