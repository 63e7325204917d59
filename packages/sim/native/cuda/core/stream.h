// A stream: a queue of operations that run in order on a dedicated thread. Branches of graphs share threads (Workers).
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
  std::function<void()> discard;  // called instead of run after the context has failed; may be empty
  // called with the operation's stream and number; may be empty
  std::function<void(const std::shared_ptr<Stream>&, uint64_t)> queued;
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
  // Clamps a priority to the valid range.
  static int nearestPriority(int priority) {
    return priority > kLeastPriority ? kLeastPriority : priority < kGreatestPriority ? kGreatestPriority : priority;
  }

  CUstream handle() const { return reinterpret_cast<CUstream>(handle_); }
  bool isBlocking() const { return kind != StreamKind::nonBlocking && kind != StreamKind::branch; }

  // Queues the operation and returns its number.
  uint64_t enqueue(Operation operation);
  // Runs the operation on the calling thread if the queue is empty, and queues it otherwise. `sequence` is its number.
  CUresult runOrEnqueue(Operation operation, uint64_t& sequence);
  // Runs or queues the operation and returns after it has completed. Returns the context's error, if there is one.
  CUresult runAndWait(Operation operation);

  uint64_t enqueued() const { return enqueued_.load(std::memory_order_acquire); }
  bool hasFinished(uint64_t sequence) const { return completed_.load(std::memory_order_acquire) >= sequence; }
  bool isIdle() const { return hasFinished(enqueued()); }
  // The number of the running operation, as seen by the thread that runs it.
  uint64_t running() const { return completed_.load(std::memory_order_acquire) + 1; }
  void waitFor(uint64_t sequence);
  // Calls the function after the first `sequence` operations have completed, possibly at once. It must not block.
  void whenFinished(uint64_t sequence, std::function<void()> call);
  CUresult synchronize();
  // Starts the stream's thread, so that queueing cannot fail for lack of a thread. Throws std::system_error.
  void ensureThread();
  // For the worker pool: runs a branch's operations until one has to wait for other streams.
  void runReady();

  // No work follows. The thread ends when the queue is empty.
  void close();

  const std::shared_ptr<Context> context;
  const StreamKind kind;
  std::atomic<int> priority;
  const unsigned long long id;
  std::shared_ptr<GreenContext> green;  // its kernels run on this part of the device; null: the whole device
  std::mutex attributesMutex;
  std::map<int, CUlaunchAttributeValue> attributes;  // attributes that were set explicitly
  std::atomic<bool> contextDestroyed{false};
  std::atomic<bool> isDestroyed{false};
  std::atomic<bool> isCaptured{false};
  std::shared_ptr<CaptureState> captureState;  // guarded by the graph mutex

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
  std::atomic<size_t> missing_{0};  // branch only: dependencies of the first operation that have not completed
  bool hasThread_ = false;          // branch only: a worker or a dependency will run the first operation
  bool isClosed_ = false;
};

// A stream argument is 0 or one of the two special values for default streams, or the handle of a created stream.
inline bool isDefaultStream(CUstream handle) { return reinterpret_cast<uint64_t>(handle) <= 2; }
std::shared_ptr<Stream> findDefaultStream(CUstream handle, bool perThread, Context& current);
CUresult findStream(CUstream handle, std::shared_ptr<Stream>& stream);

}  // namespace shoal
