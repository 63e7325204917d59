// One rank's side of a communicator: meeting the others, waiting for them, and noticing when they are gone.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "futex.h"
#include "segment.h"

namespace shoal::nccl {

class Endpoint {
 public:
  Endpoint(std::shared_ptr<Segment> segment, int ranks, int rank) : segment(std::move(segment)), ranks(ranks), rank(rank) {}
  ~Endpoint() { leave(RankState::left); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Announces this rank; does not wait.
  ncclResult_t attach(int device);
  // Returns when all ranks are there and fit together.
  ncclResult_t waitForAll();
  // Says that this rank takes no part any more.
  void leave(RankState state);

  // Returns when all ranks are at it.
  ncclResult_t barrier();
  // Waits for `ready`, looking again whenever `word` changes. `concerns` has a bit for each rank without which it would
  // wait in vain: such a rank's death ends the wait.
  template <class Ready>
  ncclResult_t waitUntil(std::atomic<uint32_t>& word, uint64_t concerns, const char* what, Ready&& ready);

  // The first failure of any rank is everybody's.
  ncclResult_t fail(ncclResult_t result, const std::string& text);
  ncclResult_t failure() const { return static_cast<ncclResult_t>(segment->control().failure.load()); }
  // Makes this rank's waits end at once; they then answer ncclInternalError, which nobody is told.
  void abort();
  bool isAborted() const { return isAborted_.load(); }

  // Brackets work on buffers of other ranks. `enter` answers false when the communicator has failed.
  bool enterWork();
  void leaveWork();
  // After a failure: returns when no rank works on anybody's buffers any more.
  void waitForWorkers();

  uint64_t everybody() const { return ranks == 64 ? ~uint64_t{0} : (uint64_t{1} << ranks) - 1; }

  const std::shared_ptr<Segment> segment;
  const int ranks;
  const int rank;
  bool isDirect = true;  // all ranks are in this process and read each other's buffers
  uint64_t step = 0;     // barriers of collectives so far; its parity says which half of the double buffers is in use

 private:
  int findMissing(uint64_t concerns, const char*& how) const;
  std::atomic<bool> isAborted_{false};
  bool isAttached_ = false;
};

// 0: wait for ever. SHOAL_SIM_TIMEOUT_SECONDS, else a minute.
uint64_t timeoutNanoseconds();

template <class Ready>
ncclResult_t Endpoint::waitUntil(std::atomic<uint32_t>& word, uint64_t concerns, const char* what, Ready&& ready) {
  constexpr long slice = 20000000;
  for (int spin = 0; spin < 100; ++spin) {
    if (ready()) return ncclSuccess;
  }
  const uint64_t start = nanosecondsNow(), limit = timeoutNanoseconds();
  for (;;) {
    const uint32_t seen = word.load();
    if (ready()) return ncclSuccess;
    if (isAborted()) return ncclInternalError;
    if (const ncclResult_t failed = failure()) return failed;
    const char* how = nullptr;
    const int missing = findMissing(concerns & ~(uint64_t{1} << rank), how);
    if (missing >= 0) {
      if (ready()) return ncclSuccess;  // it was here long enough
      return fail(ncclRemoteError, "rank " + std::to_string(missing) + " " + how + " while rank " + std::to_string(rank) + " waited for it in " + what);
    }
    const uint64_t waited = nanosecondsNow() - start;
    if (limit != 0 && waited >= limit) {
      return fail(ncclSystemError, "rank " + std::to_string(rank) + " waited " + std::to_string(waited / 1000000000u) + " s in " + what +
                                       " for ranks that did not come");
    }
    futexWait(word, seen, slice);
  }
}

}  // namespace shoal::nccl
