// This process as one PE of a job: it joins the other PEs and waits for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control.h"
#include "exchange.h"

namespace shoal::nvshmem {

// The PEs that synchronize in a slot. The caller has the index `own`.
struct Group {
  int slot = 0;
  std::vector<int> members;
  int own = 0;
  bool mayHaveEnded = false;  // waits for a member even if its session has ended
};

class Job {
 public:
  // Waits until all PEs have attached. Returns null and a text on failure.
  static std::shared_ptr<Job> join(const std::shared_ptr<Control>& control, int pe, int size, std::string& problem);

  // Keeps a job that could not start, because a thread still serves requests for it.
  static void keep(std::shared_ptr<Job> job);

  const int pe;
  const int size;
  const std::shared_ptr<Control> control;
  Exchange exchange;
  static constexpr long kLookAfter = 20000000;  // nanoseconds until a wait checks whether the other PEs are alive
  std::atomic<bool> isEnding{false};            // the session is ending: work that still waits in a stream stops

  Group everybody(int slot) const;

  // Returns true when all members have arrived. `what` names the call in a failure text.
  bool sync(const Group& group, const char* what);
  // Synchronizes twice, and collects the descriptions of all members in member order.
  bool tell(const Group& group, const char* what, const Description& own, std::vector<Description>& all);

  // Waits until `ready` returns true. Checks again whenever `word` changes, and every `slice` nanoseconds. `concerns`
  // has a bit for each PE that the wait depends on. The death of such a PE ends the wait. So does the end of its
  // session, unless `mayHaveEnded` is set.
  template <class Ready>
  bool waitFor(std::atomic<uint32_t>& word, uint64_t concerns, bool mayHaveEnded, const char* what, Ready&& ready,
               long slice = kLookAfter);

  // Called after a PE changed its own or another PE's heap. Waits for a value in that heap check again.
  void ring(int other);
  // Reports the failure once per process.
  void tellFailure();
  void fail(const std::string& text);

 private:
  Job(const std::shared_ptr<Control>& shared, int own, int all) : pe(own), size(all), control(shared) {}
  int findMissing(uint64_t concerns, bool mayHaveEnded, const char*& how) const;
  std::atomic<bool> hasTold_{false};
};

template <class Ready>
bool Job::waitFor(std::atomic<uint32_t>& word, uint64_t concerns, bool mayHaveEnded, const char* what, Ready&& ready,
                  long slice) {
  for (int spin = 0; spin < 100; ++spin) {
    if (ready()) return true;
  }
  const uint64_t start = nanosecondsNow();
  uint64_t looked = start;
  for (;;) {
    const uint32_t seen = word.load();
    if (ready()) return true;
    if (isEnding.load()) return false;
    if (control->failure() != nullptr) {
      tellFailure();
      return false;
    }
    const uint64_t now = nanosecondsNow();
    if (now - looked >= uint64_t{kLookAfter}) {
      looked = now;
      const char* how = nullptr;
      const int missing = findMissing(concerns & ~(uint64_t{1} << pe), mayHaveEnded, how);
      if (missing >= 0) {
        if (ready()) return true;  // it became ready during the last check
        fail("PE " + std::to_string(missing) + " " + how + " while PE " + std::to_string(pe) + " waited for it in " +
             what);
        return false;
      }
      const uint64_t limit = timeoutNanoseconds();
      if (limit != 0 && now - start >= limit) {
        fail("PE " + std::to_string(pe) + " waited " + std::to_string((now - start) / 1000000000u) + " s in " + what +
             " for what did not come");
        return false;
      }
    }
    futexWait(word, seen, slice);
  }
}

}  // namespace shoal::nvshmem
