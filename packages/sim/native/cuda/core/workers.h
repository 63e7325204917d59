// Threads that carry out the parallel branches of graphs. A branch has none of its own: a graph may have tens of
// thousands.
//
// The rule that keeps work going: an operation whose turn has come gets a thread at once, unless
// - kResident operations compute on each device. A GPU holds no more kernels at a time either, so kernels that wait for
// one another
//   beyond that number would not end there. What computes only ends by itself.
// - kResident operations wait for something else (Waiting): the program, another process, another branch. One of them
// may wait for
//   the operation that has no thread. So a further thread is made whenever nothing has ended for a moment. Host
//   functions that the program serves one by one do end, and need no further threads.
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

  // While it lives there is at least one thread. Throws std::system_error when none can be made.
  std::shared_ptr<void> lease();
  // The first operation of the stream has nothing left to wait for.
  void push(std::shared_ptr<Stream> stream);
  void countEnd() { ended_.fetch_add(1, std::memory_order_relaxed); }

  // A scope in which the calling thread waits for something else. Nothing happens on other threads than those of the
  // pool.
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
