// One rank's side of a communicator: connecting to the others, waiting for them, and noticing when they are gone.
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

  // Ranks that come from another communicator are known to be missing when they are gone there before they came here.
  // `ranksThere` has a rank of it for each rank of this one, -1 for those that come from elsewhere.
  void setOrigin(std::shared_ptr<Endpoint> origin, std::vector<int> ranksThere);

  // Takes this rank's place, which is noticed when it dies; does not wait. `identifiers` must be the same for all.
  ncclResult_t attach(int device, int identifiers = 1);
  // Tells the others that it is there.
  void arrive();
  // Returns when all ranks are there and fit together.
  ncclResult_t waitForAll();
  // Says that this rank takes no part any more.
  void leave(RankState state);
  // Says that this rank's operations end here; it can still make new communicators.
  void revoke();

  // Returns when all ranks are at it.
  ncclResult_t barrier();
  // Every rank says some words, of the same size, and gets those of all in order of the ranks. Independent of what
  // streams do. `number` counts the exchanges of the communicator.
  ncclResult_t exchange(const void* words, size_t bytes, void* all, const char* what, uint32_t* number = nullptr);

  struct Wait {
    uint64_t concerns;  // a bit for each rank without which it would wait in vain: such a rank's death ends the wait
    const char* what;
    bool isOfStreams = true;  // false: what makes communicators and the like, which goes on when operations have failed
  };
  // Waits for `ready`, looking again whenever `word` changes.
  template <class Ready>
  ncclResult_t waitUntil(std::atomic<uint32_t>& word, const Wait& wait, Ready&& ready);

  // The first failure of any rank is everybody's.
  ncclResult_t fail(ncclResult_t result, const std::string& text);
  ncclResult_t failure() const { return static_cast<ncclResult_t>(segment->control().failure.load()); }
  // A rank whose process was killed, -1 when there is none; cheap enough to be asked often.
  int findKilled();
  // Makes this rank's waits end at once; they then answer ncclInternalError, which nobody is told.
  void abort();
  bool isAborted() const { return isAborted_.load(); }
  // The same for operations only.
  bool isRevoked() const { return isRevoked_.load(); }
  bool isStopped() const { return isAborted() || isRevoked(); }
  // Why this rank's operations were stopped, for the others.
  std::string whyStopped() const;

  // Brackets work on buffers of other ranks. `enter` answers false when the communicator has failed.
  bool enterWork();
  void leaveWork();
  // After a failure: returns when no rank works on anybody's buffers any more.
  void waitForWorkers();
  // Wakes all who wait for anything here.
  void wakeAll();

  uint64_t everybody() const { return ranks == 64 ? ~uint64_t{0} : (uint64_t{1} << ranks) - 1; }
  bool isInThisProcess(int other) const;

  const std::shared_ptr<Segment> segment;
  const int ranks;
  const int rank;
  bool isDirect = true;  // all ranks are in this process and read each other's buffers
  uint64_t step = 0;     // barriers of collectives so far; its parity says which half of the double buffers is in use

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

// 0: wait for ever. SHOAL_SIM_TIMEOUT_SECONDS, else a minute.
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
      if (ready()) return ncclSuccess;  // it was here long enough
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
