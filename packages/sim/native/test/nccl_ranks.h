// Several ranks in one process, a thread each.
#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nccl_checks.h"

namespace check {

// Runs `body` for each rank in a thread of its own, without a communicator; that which it leaves in `self` is destroyed. The
// first failure is the test's.
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

// The same with a communicator of all ranks.
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
