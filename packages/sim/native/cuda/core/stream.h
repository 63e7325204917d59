// A stream: a queue of operations that are carried out in order, by a thread of its own. Branches of graphs share
// threads (Workers).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "shoal/cuda.h"

namespace shoal {

class Context;
class GreenContext;
class Stream;
struct CaptureState;

// "That stream has finished its first `sequence` operations."
struct Dependency {
  std::shared_ptr<Stream> stream;
  uint64_t sequence;
};

struct Operation {
  std::function<CUresult()> run;
  std::function<void()> discard;  // in place of run once the context has failed; may be empty
  std::function<void(const std::shared_ptr<Stream>&, uint64_t)> queued;  // told where it was queued; may be empty
  std::vector<Dependency> after;
  bool runsAfterErrors = false;
  uint64_t sequence = 0;
};

enum class StreamKind { legacyDefault, perThreadDefault, blocking, nonBlocking, branch };

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  static std::shared_ptr<Stream> create(std::shared_ptr<Context> context, StreamKind kind, int priority,
                                        std::shared_ptr<GreenContext> green = nullptr);
  Stream(std::shared_ptr<Context> context, StreamKind kind, int priority);

  static constexpr int kLeastPriority = 0, kGreatestPriority = -5;
  // A priority outside the range means its nearest end.
  static int nearestPriority(int priority) {
    return priority > kLeastPriority ? kLeastPriority : priority < kGreatestPriority ? kGreatestPriority : priority;
  }

  CUstream handle() const { return reinterpret_cast<CUstream>(handle_); }
  bool isBlocking() const { return kind != StreamKind::nonBlocking && kind != StreamKind::branch; }

  // Queues the operation and returns its number.
  uint64_t enqueue(Operation operation);
  // Carries the operation out on the calling thread when nothing is ahead of it, else queues it; `sequence` is its
  // number.
  CUresult runOrEnqueue(Operation operation, uint64_t& sequence);
  // Either way, returns when it has ended, with the context's error if it has one.
  CUresult runAndWait(Operation operation);

  uint64_t enqueued() const { return enqueued_.load(std::memory_order_acquire); }
  bool hasFinished(uint64_t sequence) const { return completed_.load(std::memory_order_acquire) >= sequence; }
  bool isIdle() const { return hasFinished(enqueued()); }
  // The operation that is being carried out, as the thread that does it sees it.
  uint64_t running() const { return completed_.load(std::memory_order_acquire) + 1; }
  void waitFor(uint64_t sequence);
  // Calls it once the first `sequence` operations have finished, perhaps at once; it must not wait.
  void whenFinished(uint64_t sequence, std::function<void()> call);
  CUresult synchronize();
  // Makes the thread that its work needs, so that queueing cannot fail for the want of one. Throws std::system_error.
  void ensureThread();
  // For the pool that a branch's thread comes from: carries out operations until one has to wait for other streams.
  void runReady();

  // No work follows; the thread ends when the queue is empty.
  void close();

  const std::shared_ptr<Context> context;
  const StreamKind kind;
  std::atomic<int> priority;
  const unsigned long long id;
  std::shared_ptr<GreenContext> green;  // whose part of the device its kernels run on; null: all of it
  std::mutex attributesMutex;
  std::map<int, CUlaunchAttributeValue> attributes;  // that somebody set
  std::atomic<bool> contextDestroyed{false};
  std::atomic<bool> isDestroyed{false};
  std::atomic<bool> isCaptured{false};
  std::shared_ptr<CaptureState> captureState;  // guarded by the mutex of graphs

 private:
  friend class Context;
  std::vector<Dependency> orderAgainstDefaultStream();
  uint64_t append(Operation operation);
  void makeThread();
  void loop();
  void execute(Operation& operation);
  void finish(uint64_t sequence);
  void awaitTurn();

  uint64_t handle_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> queue_;
  std::atomic<uint64_t> enqueued_{0};
  std::atomic<uint64_t> completed_{0};
  std::vector<std::pair<uint64_t, std::function<void()>>> waiters_;
  std::atomic<size_t> missing_{0};  // a branch: what the first operation still waits for
  bool hasThread_ = false;          // a branch: somebody sees to its first operation
  bool isClosed_ = false;
};

// What a stream argument names: 0 and the two special values are default streams, others have been created.
inline bool isDefaultStream(CUstream handle) { return reinterpret_cast<uint64_t>(handle) <= 2; }
std::shared_ptr<Stream> findDefaultStream(CUstream handle, bool perThread, Context& current);
CUresult findStream(CUstream handle, std::shared_ptr<Stream>& stream);

}  // namespace shoal
