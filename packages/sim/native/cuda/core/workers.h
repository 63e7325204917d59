// Threads that run the parallel branches of graphs. Branches share threads, because a graph may have tens of thousands
// of branches.
//
// An operation whose dependencies have completed gets a thread at once, with two exceptions:
// - kResident operations compute on each device. A GPU also runs only so many kernels at a time, so more kernels that
//   wait for one another would not complete there either. Operations that only compute complete by themselves.
// - kResident operations wait for something else (Waiting): the program, another process, or another branch. One of
//   them may wait for the operation that has no thread. So the pool adds a thread whenever no operation has completed
//   for a moment. Host functions that the program serves one by one do complete, so they need no extra threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

namespace shoal {

class Stream;

class Workers {
 public:
  static Workers& shared();

  // While the lease lives, the pool has at least one thread. Throws std::system_error if no thread can be started.
  std::shared_ptr<void> lease();
  // Call when all dependencies of the stream's first operation have completed.
  void push(std::shared_ptr<Stream> stream);
  void countEnd() { ended_.fetch_add(1, std::memory_order_relaxed); }

  // A scope in which the calling thread waits for something else. Has no effect on threads outside the pool.
  class Waiting {
   public:
    Waiting();
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
  };

 private:
  bool hasRoom() const;
  bool makeOne();
  void makeMore();
  void loop();
  void watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Stream>> ready_;
  size_t idle_ = 0, computing_ = 0, waiting_ = 0, leases_ = 0;
  std::atomic<size_t> ended_{0};
  bool isWatched_ = false;
};

}  // namespace shoal
