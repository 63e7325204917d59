// A communicator: one rank of a group of ranks, its queued batches and what was made with it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "config.h"
#include "endpoint.h"
#include "fault.h"
#include "task.h"

namespace shoal::nccl {

class Communicator;

// What one group queued for one rank on one stream. Runs as a single piece of device work.
struct Batch {
  std::shared_ptr<Communicator> communicator;
  std::vector<Task> tasks;
  uint64_t number = 0;
  bool isOrdered = true;  // one-sided operations keep only the order of their stream
};

// The device a rank works on.
struct Place {
  CUcontext context = nullptr;
  int device = 0;
  bool holdsPrimaryContext = false;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  enum class State { initialising, ready, finalised, failed, revoked, gone };

  static std::shared_ptr<Communicator> create(const Place& place, const Config& config);
  Communicator(const Place& place, const Config& config);

  // Checks the handle; `problem` has been told when it is not one.
  static ncclResult_t find(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // The same, and nothing is in progress; the communicator may have failed.
  static ncclResult_t findSettled(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // The same, and the communicator has not failed.
  static ncclResult_t findSound(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // The same, and the communicator must be able to take work.
  static ncclResult_t findReady(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // One that a new communicator can be made from: it may also have been revoked.
  static ncclResult_t findParent(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  ncclComm_t handle() const { return reinterpret_cast<ncclComm_t>(handle_); }

  // Shows up, without waiting. `function` is what a fault may have been asked for in, null: there is none.
  ncclResult_t attach(std::shared_ptr<Endpoint> endpoint, const char* function, int identifiers);
  // The same, and waits for the other ranks. `identifiers` is the number of unique ids they come with.
  ncclResult_t join(std::shared_ptr<Endpoint> endpoint, const char* function, int identifiers);
  // Brackets what happens in the background; meanwhile the communicator is in progress.
  void begin() { ++jobs_; }
  void settle(ncclResult_t result);
  // It will not happen.
  void forgo();
  // Its part of a group could not be queued: the ranks that wait for it stop.
  void breakOff(ncclResult_t result);
  // Writes results of a job to the caller's memory. After an abort nobody waits for them, the memory may be gone, and
  // nothing is written; then false.
  template <class Write>
  bool handOut(Write&& write) {
    std::lock_guard lock(mutex_);
    if (isAborted_) return false;
    write();
    return true;
  }

  // Injects a fault that was asked for; what it leaves to be answered.
  ncclResult_t injectFault(const char* function, bool isOperation = false);

  // Queues tasks as one batch on the stream.
  ncclResult_t enqueue(std::vector<Task> tasks, CUstream stream);
  void waitForBatches();
  // As NCCL does: a communicator ends after the graphs that have captured its operations.
  void waitForGraphs();
  ncclResult_t finalise();
  void revoke();
  // Ends the life of the handle. With `aborts`, pending work is given up first.
  void end(bool aborts);

  ncclResult_t asyncError();
  State state() const { return state_; }
  bool isSuspended() const { return isSuspended_; }
  ncclResult_t suspend();
  ncclResult_t resume();
  // Why the communicator has failed.
  std::string failureText();

  ncclResult_t createPreMulSum(ncclDataType_t type, const void* scalar, ncclScalarResidence_t residence, int& op);
  ncclResult_t destroyPreMulSum(int op);
  // Fills in what the operation means; `op` may be one made by createPreMulSum.
  ncclResult_t resolve(int op, ncclDataType_t type, Task& task);

  // An id for ranks that are to be added; there is one at a time, until they have been.
  ncclResult_t makeGrowIdentifier(ncclUniqueId& id);
  bool isGrowIdentifier(uint64_t key);
  void consumeGrowIdentifier();
  // How often a communicator has been made without these ranks before.
  uint32_t countShrinks(const std::set<int>& excluded);

  void addWindow(const std::shared_ptr<Window>& window);
  void removeWindow(const std::shared_ptr<Window>& window);
  // What device communicators have on this rank.
  void addDeviceMemory(const std::shared_ptr<Window>& window, void* memory);
  bool removeDeviceMemory(ncclWindow_t window);
  uint64_t deviceMemoryBytes();
  // The window in which memory of this rank lies, null when there is none.
  std::shared_ptr<Window> windowAround(const void* address, size_t bytes);

  ncclResult_t registerBuffer(const void* buffer, size_t bytes, void** handle);
  ncclResult_t deregisterBuffer(void* handle);

  // Only for communicators that have come up.
  Endpoint& endpoint() const { return *endpoint_; }
  const std::shared_ptr<Endpoint>& sharedEndpoint() const { return endpoint_; }
  int ranks() const { return endpoint_->ranks; }
  int rank() const { return endpoint_->rank; }

  const int device;
  const CUcontext context;
  const Config config;

 private:
  struct PreMulSum {
    ncclDataType_t type;
    uint64_t scalar;
    const void* address;  // null: the scalar is in `scalar`
  };
  static void* startCaptured(void* userData);
  static void releaseCaptured(void* userData);
  std::vector<uint64_t> book(Batch& batch) const;
  static CUresult runBatch(void* batch);
  static void discardBatch(void* batch);
  void run(const Batch& batch);
  ncclResult_t runTasks(const Batch& batch);
  void finished(const Batch& batch);
  void fail(ncclResult_t result, const std::string& text);

  uint64_t handle_ = 0;
  bool holdsPrimaryContext_;
  std::atomic<State> state_{State::initialising};
  std::atomic<int> asyncError_{ncclSuccess};
  std::atomic<int> jobs_{0};
  std::atomic<uint64_t> settlesAt_{0};  // a non-blocking communicator is in progress for a moment after it took work
  std::atomic<bool> isSuspended_{false}, isAborted_{false};
  std::shared_ptr<Endpoint> endpoint_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool isEnding_ = false;
  std::string failureText_;
  uint64_t queued_ = 0, executed_ = 0;
  std::map<int, PreMulSum> preMulSums_;
  int nextPreMulSum_ = ncclNumOps;
  std::set<std::shared_ptr<Window>> windows_;
  std::map<ncclWindow_t, std::pair<std::shared_ptr<Window>, void*>> deviceMemory_;
  std::vector<uint64_t> bookedSignals_;
  uint64_t captured_ = 0;   // operations in graphs
  uint64_t unordered_ = 0;  // batches that are on their way, but not in the order of the others
  std::set<uint64_t> growKeys_;
  std::map<std::set<int>, uint32_t> shrinks_;
  std::set<void*> registrations_;
  uint64_t nextRegistration_ = 1;
};

// Whether this thread is that of a stream, at work for a communicator.
bool isOnStream();

// Makes a communicator's context current for a scope.
class ScopedContext {
 public:
  explicit ScopedContext(CUcontext context) : status(cuCtxPushCurrent_v2(context)) {}
  ~ScopedContext() {
    if (status == CUDA_SUCCESS) cuCtxPopCurrent_v2(nullptr);
  }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;
  const CUresult status;
};

}  // namespace shoal::nccl
