// A communicator: one rank of a clique, its queued batches and what was made with it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "endpoint.h"
#include "task.h"

namespace shoal::nccl {

class Communicator;

// What one group queued for one rank on one stream. Runs as a single piece of device work.
struct Batch {
  std::shared_ptr<Communicator> communicator;
  std::vector<Task> tasks;
  uint64_t number = 0;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  enum class State { initialising, ready, finalised, failed, gone };

  static std::shared_ptr<Communicator> create(std::shared_ptr<Segment> segment, int ranks, int rank, int device, CUcontext context,
                                              bool holdsPrimaryContext, bool isBlocking);
  Communicator(std::shared_ptr<Segment> segment, int ranks, int rank, int device, CUcontext context, bool holdsPrimaryContext, bool isBlocking);

  // Checks the handle; `problem` has been told when it is not one.
  static ncclResult_t find(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  // The same, and the communicator must be able to take work.
  static ncclResult_t findReady(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator);
  ncclComm_t handle() const { return reinterpret_cast<ncclComm_t>(handle_); }

  // Initialisation has two halves, so that one thread can bring several ranks up together.
  ncclResult_t attach() { return endpoint.attach(device); }
  ncclResult_t finishInitialisation();

  // Queues tasks as one batch on the stream.
  ncclResult_t enqueue(std::vector<Task> tasks, CUstream stream);
  void waitForBatches();
  ncclResult_t finalise();
  // Ends the life of the handle. With `aborts`, pending work is given up first.
  void end(bool aborts);

  ncclResult_t asyncError() const;
  void setState(State state) { state_ = state; }
  State state() const { return state_; }

  ncclResult_t createPreMulSum(ncclDataType_t type, const void* scalar, ncclScalarResidence_t residence, int& op);
  ncclResult_t destroyPreMulSum(int op);
  // Fills in what the operation means; `op` may be one made by createPreMulSum.
  ncclResult_t resolve(int op, ncclDataType_t type, Task& task);

  ncclResult_t registerBuffer(const void* buffer, size_t bytes, void** handle);
  ncclResult_t deregisterBuffer(void* handle);

  Endpoint endpoint;
  const int device;
  const CUcontext context;
  const bool isBlocking;

 private:
  struct PreMulSum {
    ncclDataType_t type;
    uint64_t scalar;
    const void* address;  // null: the scalar is in `scalar`
  };
  static CUresult runBatch(void* batch);
  static void discardBatch(void* batch);
  void run(const Batch& batch);
  void finished();

  uint64_t handle_ = 0;
  bool holdsPrimaryContext_;
  std::atomic<State> state_{State::initialising};
  std::atomic<int> asyncError_{ncclSuccess};

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t queued_ = 0, executed_ = 0;
  std::map<int, PreMulSum> preMulSums_;
  int nextPreMulSum_ = ncclNumOps;
  std::set<void*> registrations_;
  uint64_t nextRegistration_ = 1;
};

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
