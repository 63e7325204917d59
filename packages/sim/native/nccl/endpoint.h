// One rank's side of a communicator: it connects to the other ranks, waits for them, and detects dead ranks.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../shared/futex.h"
#include "segment.h"

namespace shoal::nccl {

class Endpoint {
 public:
  Endpoint(std::shared_ptr<Segment> segment, int ranks, int rank)
      : segment(std::move(segment)), ranks(ranks), rank(rank) {}
  ~Endpoint() { leave(RankState::left); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Sets the communicator that the ranks come from. A rank that is gone from `origin` before it attaches here is
  // missing. `ranksThere` maps each rank to its rank in `origin`, or to -1 if it comes from elsewhere.
  void setOrigin(std::shared_ptr<Endpoint> origin, std::vector<int> ranksThere);

  // Takes this rank's slot, so that others detect its death. Does not wait. `identifiers` must be equal on all ranks.
  ncclResult_t attach(int device, int identifiers = 1);
  // Announces to the other ranks that this rank has attached.
  void arrive();
  // Returns when all ranks have attached and agree.
  ncclResult_t waitForAll();
  // Announces that this rank does not take part any more.
  void leave(RankState state);
  // Announces that this rank's operations end. The rank can still make new communicators.
  void revoke();

  // Returns when all ranks have called it.
  ncclResult_t barrier();
  // Each rank contributes the same number of bytes, and receives those of all ranks in rank order. Independent of
  // streams. `number` gets the number of this exchange.
  ncclResult_t exchange(const void* words, size_t bytes, void* all, const char* what, uint32_t* number = nullptr);

  struct Wait {
    uint64_t concerns;  // a bit per rank that the wait depends on: the death of such a rank ends the wait
    const char* what;
    // false for making communicators and the like, which continues after operations have failed
    bool isOfStreams = true;
  };
  // Waits until `ready` returns true. Checks again whenever `word` changes.
  template <class Ready>
  ncclResult_t waitUntil(std::atomic<uint32_t>& word, const Wait& wait, Ready&& ready);

  // Records a failure for all ranks. The first failure of any rank wins.
  ncclResult_t fail(ncclResult_t result, const std::string& text);
  ncclResult_t failure() const { return static_cast<ncclResult_t>(segment->control().failure.load()); }
  // A rank whose process was killed, or -1. Cheap enough for frequent calls.
  int findKilled();
  // Ends all waits of this rank at once with ncclInternalError. No caller sees this result.
  void abort();
  bool isAborted() const { return isAborted_.load(); }
  // Ends only the waits of operations.
  bool isRevoked() const { return isRevoked_.load(); }
  bool isStopped() const { return isAborted() || isRevoked(); }
  // The reason why this rank's operations stopped, as text for the other ranks.
  std::string whyStopped() const;

  // Enclose work on buffers of other ranks. `enterWork` returns false if the communicator has failed.
  bool enterWork();
  void leaveWork();
  // After a failure: returns when no rank works on another rank's buffers any more.
  void waitForWorkers();
  // Wakes all waits on this communicator.
  void wakeAll();

  uint64_t everybody() const { return ranks == 64 ? ~uint64_t{0} : (uint64_t{1} << ranks) - 1; }
  bool isInThisProcess(int other) const;

  const std::shared_ptr<Segment> segment;
  const int ranks;
  const int rank;
  bool isDirect = true;  // all ranks are in this process and read each other's buffers directly
  uint64_t step = 0;     // number of collective barriers so far; its parity selects the half of the double buffers

 private:
  int findMissing(const Wait& wait, const char*& how) const;
  bool isGone(int other, bool isOfStreams, const char*& how) const;
  std::atomic<bool> isAborted_{false}, isRevoked_{false};
  std::mutex mutex_, exchanging_;
  bool isAttached_ = false;
  uint32_t exchanges_ = 0;
  std::atomic<uint64_t> lookedAt_{0};
  std::shared_ptr<Endpoint> origin_;
  std::vector<int> ranksThere_;
};

// From SHOAL_SIM_TIMEOUT_SECONDS; 60 seconds by default. 0 waits for ever.
uint64_t timeoutNanoseconds();

template <class Ready>
ncclResult_t Endpoint::waitUntil(std::atomic<uint32_t>& word, const Wait& wait, Ready&& ready) {
  constexpr long slice = 20000000;
  for (int spin = 0; spin < 100; ++spin) {
    if (ready()) return ncclSuccess;
  }
  const uint64_t start = nanosecondsNow(), limit = timeoutNanoseconds();
  for (;;) {
    const uint32_t seen = word.load();
    if (ready()) return ncclSuccess;
    if (isAborted() || (wait.isOfStreams && isRevoked())) return ncclInternalError;
    if (wait.isOfStreams) {
      if (const ncclResult_t failed = failure()) return failed;
    }
    const char* how = nullptr;
    const int missing = findMissing(wait, how);
    if (missing >= 0) {
      if (ready()) return ncclSuccess;  // it became ready during the last check
      return fail(ncclRemoteError, "rank " + std::to_string(missing) + " " + how + " while rank " +
                                       std::to_string(rank) + " waited for it in " + wait.what);
    }
    const uint64_t waited = nanosecondsNow() - start;
    if (limit != 0 && waited >= limit) {
      return fail(ncclSystemError, "rank " + std::to_string(rank) + " waited " + std::to_string(waited / 1000000000u) +
                                       " s in " + wait.what + " for ranks that did not come");
    }
    futexWait(word, seen, slice);
  }
}

}  // namespace shoal::nccl
