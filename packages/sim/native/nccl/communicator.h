// A communicator: one rank of a group, its queued batches, and the objects made with it.
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

// The operations of one group for one rank on one stream. They run as a single piece of device work.
struct Batch {
  std::shared_ptr<Communicator> communicator;
  std::vector<Task> tasks;
  uint64_t number = 0;
  bool isOrdered = true;  // false for one-sided operations, which only keep the order of their stream
};

// The device that a rank works on.
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

  // Looks up a handle. If it is invalid, records the problem.
  static ncclResult_t find(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // Also requires that nothing is in progress. The communicator may have failed.
  static ncclResult_t findSettled(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // Also requires that the communicator has not failed.
  static ncclResult_t findSound(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // Also requires that the communicator accepts work.
  static ncclResult_t findReady(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // Finds a communicator that new ones can be made from. It may also be revoked.
  static ncclResult_t findParent(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  ncclComm_t handle() const { return reinterpret_cast<ncclComm_t>(handle_); }

  // Attaches this rank, without waiting for the others. `function` is the name to inject faults for; null injects none.
  ncclResult_t attach(std::shared_ptr<Endpoint> endpoint, const char* function, int identifiers);
  // Attaches, and waits for the other ranks. `identifiers` is the number of unique ids that the ranks use.
  ncclResult_t join(std::shared_ptr<Endpoint> endpoint, const char* function, int identifiers);
  // begin() and settle() enclose a background job. The communicator is in progress in between.
  void begin() { ++jobs_; }
  void settle(ncclResult_t result);
  // The job will not run.
  void forgo();
  // Called if its part of a group could not be queued. Stops the ranks that wait for it.
  void breakOff(ncclResult_t result);
  // Writes a job's results to the caller's memory. After an abort, no caller waits and the memory may be freed, so
  // nothing is written and the function returns false.
  template <class Write>
  bool handOut(Write&& write) {
    std::lock_guard lock(mutex_);
    if (isAborted_) return false;
    write();
    return true;
  }

  // Injects the fault that was requested for this function. Returns the result that the caller must return.
  ncclResult_t injectFault(const char* function, bool isOperation = false);

  // Queues tasks as one batch on the stream.
  ncclResult_t enqueue(std::vector<Task> tasks, CUstream stream);
  void waitForBatches();
  // As in NCCL, a communicator lives until the graphs with its operations are destroyed.
  void waitForGraphs();
  ncclResult_t finalise();
  void revoke();
  // Ends the communicator and its handle. With `aborts`, cancels pending work first.
  void end(bool aborts);

  ncclResult_t asyncError();
  State state() const { return state_; }
  bool isSuspended() const { return isSuspended_; }
  ncclResult_t suspend();
  ncclResult_t resume();
  // The reason for the failure of the communicator.
  std::string failureText();

  ncclResult_t createPreMulSum(ncclDataType_t type, const void* scalar, ncclScalarResidence_t residence, int& op);
  ncclResult_t destroyPreMulSum(int op);
  // Fills in the reduction of the task. `op` may come from createPreMulSum.
  ncclResult_t resolve(int op, ncclDataType_t type, Task& task);

  // Creates an id for ranks to be added. Only one can be pending, until these ranks were added.
  ncclResult_t makeGrowIdentifier(ncclUniqueId& id);
  bool isGrowIdentifier(uint64_t key);
  void consumeGrowIdentifier();
  // The number of earlier communicators that were made without exactly these ranks.
  uint32_t countShrinks(const std::set<int>& excluded);

  void addWindow(const std::shared_ptr<Window>& window);
  void removeWindow(const std::shared_ptr<Window>& window);
  // The memory of device communicators on this rank.
  void addDeviceMemory(const std::shared_ptr<Window>& window, void* memory);
  bool removeDeviceMemory(ncclWindow_t window);
  uint64_t deviceMemoryBytes();
  // The window that contains memory of this rank, or null.
  std::shared_ptr<Window> windowAround(const void* address, size_t bytes);

  ncclResult_t registerBuffer(const void* buffer, size_t bytes, void** handle);
  ncclResult_t deregisterBuffer(void* handle);

  // Only for communicators that have an endpoint.
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
    const void* address;  // null: the value is in `scalar`
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
  // a non-blocking communicator stays in progress for a moment after it accepts work
  std::atomic<uint64_t> settlesAt_{0};
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
  uint64_t captured_ = 0;   // operations captured in graphs
  uint64_t unordered_ = 0;  // batches in flight without an order relative to other batches
  std::set<uint64_t> growKeys_;
  std::map<std::set<int>, uint32_t> shrinks_;
  std::set<void*> registrations_;
  uint64_t nextRegistration_ = 1;
};

// True if this thread runs stream work of a communicator.
bool isOnStream();

// Makes the communicator's context current until the end of the scope.
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
