// This process as one PE of a job: how it came to the others, and how it waits for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control.h"
#include "exchange.h"

namespace shoal::nvshmem {

// PEs that synchronize in a slot; the caller is the one with index `own`.
struct Group {
  int slot = 0;
  std::vector<int> members;
  int own = 0;
  bool mayHaveEnded = false;  // a member whose session has ended is waited for all the same
};

class Job {
 public:
  // Waits until all PEs are there. Null with a text when that fails.
  static std::shared_ptr<Job> join(const std::shared_ptr<Control>& control, int pe, int size, std::string& problem);

  // For a job that nothing came of: a thread still answers for it.
  static void keep(std::shared_ptr<Job> job);

  const int pe;
  const int size;
  const std::shared_ptr<Control> control;
  Exchange exchange;
  static constexpr long kLookAfter = 20000000;  // nanoseconds after which it is asked whether the others are alive
  std::atomic<bool> isEnding{false};            // the session ends: whatever still waits in a stream gives up

  Group everybody(int slot) const;

  // Returns true when all members have come; `what` names the call in a failure.
  bool sync(const Group& group, const char* what);
  // The same, twice, and takes what each member says of itself, in the order of the members.
  bool tell(const Group& group, const char* what, const Description& own, std::vector<Description>& all);

  // Waits for `ready`, looking again whenever `word` changes and after `slice` nanoseconds. `concerns` has a bit for
  // each PE without which it would wait in vain: such a PE's death ends the wait, and so does its end unless
  // `mayHaveEnded`.
  template <class Ready>
  bool waitFor(std::atomic<uint32_t>& word, uint64_t concerns, bool mayHaveEnded, const char* what, Ready&& ready,
               long slice = kLookAfter);

  // What a PE changed in its own or another's heap: whoever waits for a value there looks again.
  void ring(int other);
  // Says once in this process why waiting is over.
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
        if (ready()) return true;  // it was here long enough
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
