#include "communicator.h"

#include <cstring>
#include <shared_mutex>
#include <unordered_map>

#include "collective.h"
#include "pointtopoint.h"
#include "problem.h"

namespace shoal::nccl {

namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Communicator>> communicators;
  uint64_t next = (uint64_t{8} << 44) + 0x1000;  // never used twice
};

Registry& registry() {
  static Registry* shared = new Registry;
  return *shared;
}

}  // namespace

std::shared_ptr<Communicator> Communicator::create(std::shared_ptr<Segment> segment, int ranks, int rank, int device, CUcontext context,
                                                   bool holdsPrimaryContext, bool isBlocking) {
  auto communicator = std::make_shared<Communicator>(std::move(segment), ranks, rank, device, context, holdsPrimaryContext, isBlocking);
  Registry& known = registry();
  std::unique_lock lock(known.mutex);
  communicator->handle_ = known.next;
  known.next += 16;
  known.communicators[communicator->handle_] = communicator;
  return communicator;
}

Communicator::Communicator(std::shared_ptr<Segment> segment, int ranks, int rank, int device_, CUcontext context_, bool holdsPrimaryContext,
                           bool isBlocking_)
    : endpoint(std::move(segment), ranks, rank),
      device(device_),
      context(context_),
      isBlocking(isBlocking_),
      holdsPrimaryContext_(holdsPrimaryContext) {}

ncclResult_t Communicator::find(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator) {
  Registry& known = registry();
  std::shared_lock lock(known.mutex);
  auto found = known.communicators.find(reinterpret_cast<uint64_t>(handle));
  if (found == known.communicators.end()) {
    return problem(ncclInvalidArgument, "%s: %p is not a communicator, or it has been destroyed", function, static_cast<void*>(handle));
  }
  communicator = found->second;
  return ncclSuccess;
}

ncclResult_t Communicator::findReady(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator) {
  if (const ncclResult_t result = find(handle, function, communicator)) return result;
  switch (communicator->state()) {
    case State::initialising: return problem(ncclInvalidArgument, "%s: the communicator is still being initialized", function);
    case State::finalised: return problem(ncclInvalidUsage, "%s: the communicator has been finalized", function);
    default: break;
  }
  if (const ncclResult_t failed = communicator->asyncError()) {
    return problem(failed, "%s: the communicator has failed: %s", function, communicator->endpoint.segment->control().failureText);
  }
  return ncclSuccess;
}

ncclResult_t Communicator::finishInitialisation() {
  const ncclResult_t result = endpoint.waitForAll();
  if (result != ncclSuccess) asyncError_ = result;
  state_ = result == ncclSuccess ? State::ready : State::failed;
  return result;
}

ncclResult_t Communicator::enqueue(std::vector<Task> tasks, CUstream stream) {
  ScopedContext scope(context);
  if (scope.status != CUDA_SUCCESS) return cudaProblem(scope.status, "making the communicator's context current");
  std::vector<ShoalSimRange> ranges;
  for (const Task& task : tasks) {
    const size_t element = bytesOf(task.type);
    const size_t sent = sendElements(task, endpoint.ranks, endpoint.rank) * element;
    const size_t received = recvElements(task, endpoint.ranks, endpoint.rank) * element;
    if (sent != 0) ranges.push_back({reinterpret_cast<CUdeviceptr>(task.send), sent, 0});
    if (received != 0) ranges.push_back({reinterpret_cast<CUdeviceptr>(task.recv), received, 1});
    if (task.scalarAddress != nullptr) ranges.push_back({reinterpret_cast<CUdeviceptr>(task.scalarAddress), element, 0});
  }
  auto batch = std::make_unique<Batch>();
  batch->communicator = shared_from_this();
  batch->tasks = std::move(tasks);
  // The number is taken under the lock that also covers queueing, so numbers and stream order agree.
  std::lock_guard lock(mutex_);
  batch->number = queued_;
  const CUresult status =
      shoalSimEnqueue(stream, &Communicator::runBatch, &Communicator::discardBatch, batch.get(), ranges.data(), ranges.size());
  if (status != CUDA_SUCCESS) return cudaProblem(status, "queueing the operation on its stream");
  ++queued_;
  batch.release();
  return ncclSuccess;
}

CUresult Communicator::runBatch(void* userData) {
  const std::unique_ptr<Batch> batch(static_cast<Batch*>(userData));
  batch->communicator->run(*batch);
  return CUDA_SUCCESS;
}

void Communicator::discardBatch(void* userData) {
  const std::unique_ptr<Batch> batch(static_cast<Batch*>(userData));
  Communicator& own = *batch->communicator;
  own.asyncError_ = ncclUnhandledCudaError;
  own.endpoint.fail(ncclRemoteError, "the CUDA context of rank " + std::to_string(own.endpoint.rank) + " has failed");
  own.finished();
}

void Communicator::run(const Batch& batch) {
  {
    // A communicator's work runs in the order in which it was queued, whatever the streams.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return executed_ >= batch.number || endpoint.isAborted(); });
  }
  ncclResult_t result = asyncError();
  if (result == ncclSuccess && !endpoint.isAborted()) {
    PointToPoint pointToPoint(endpoint, batch.tasks);
    pointToPoint.start();
    for (const Task& asked : batch.tasks) {
      if (asked.isPointToPoint() || result != ncclSuccess) continue;
      Task task = asked;
      if (task.scalarAddress != nullptr) memcpy(&task.scalar, task.scalarAddress, bytesOf(task.type));
      result = runCollective(endpoint, task);
    }
    if (result == ncclSuccess) result = pointToPoint.finish();
  }
  if (result != ncclSuccess && !endpoint.isAborted()) {
    int none = ncclSuccess;
    if (asyncError_.compare_exchange_strong(none, result)) problem(result, "%s", endpoint.segment->control().failureText);
  }
  finished();
}

void Communicator::finished() {
  std::lock_guard lock(mutex_);
  ++executed_;
  changed_.notify_all();
}

void Communicator::waitForBatches() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return executed_ == queued_; });
}

ncclResult_t Communicator::finalise() {
  waitForBatches();
  state_ = State::finalised;
  return asyncError();
}

void Communicator::end(bool aborts) {
  {
    Registry& known = registry();
    std::unique_lock lock(known.mutex);
    known.communicators.erase(handle_);
  }
  if (aborts) {
    endpoint.abort();
    {
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    }
    endpoint.leave(RankState::aborted);
  } else {
    waitForBatches();
    endpoint.leave(RankState::left);
  }
  state_ = State::gone;
  if (holdsPrimaryContext_) {
    holdsPrimaryContext_ = false;
    cuDevicePrimaryCtxRelease_v2(device);
  }
}

ncclResult_t Communicator::asyncError() const {
  if (state_ == State::initialising) return ncclInProgress;
  if (const int own = asyncError_.load()) return static_cast<ncclResult_t>(own);
  return endpoint.failure();
}

ncclResult_t Communicator::createPreMulSum(ncclDataType_t type, const void* scalar, ncclScalarResidence_t residence, int& op) {
  PreMulSum made = {type, 0, nullptr};
  if (residence == ncclScalarHostImmediate) memcpy(&made.scalar, scalar, bytesOf(type));
  else made.address = scalar;
  std::lock_guard lock(mutex_);
  op = nextPreMulSum_++;
  preMulSums_[op] = made;
  return ncclSuccess;
}

ncclResult_t Communicator::destroyPreMulSum(int op) {
  std::lock_guard lock(mutex_);
  if (op >= 0 && op < ncclNumOps) return problem(ncclInvalidArgument, "ncclRedOpDestroy: %d is a built-in operation", op);
  if (preMulSums_.erase(op) == 0) return problem(ncclInvalidArgument, "ncclRedOpDestroy: %d is not an operation of this communicator", op);
  return ncclSuccess;
}

ncclResult_t Communicator::resolve(int op, ncclDataType_t type, Task& task) {
  switch (op) {
    case ncclSum: task.reducer = Reducer::sum; return ncclSuccess;
    case ncclProd: task.reducer = Reducer::prod; return ncclSuccess;
    case ncclMax: task.reducer = Reducer::max; return ncclSuccess;
    case ncclMin: task.reducer = Reducer::min; return ncclSuccess;
    case ncclAvg: task.reducer = Reducer::avg; return ncclSuccess;
    default: break;
  }
  std::lock_guard lock(mutex_);
  auto found = preMulSums_.find(op);
  if (found == preMulSums_.end()) return problem(ncclInvalidArgument, "%s: %d is not a reduction operation", nameOf(task.kind), op);
  if (found->second.type != type) {
    return problem(ncclInvalidArgument, "%s: the operation was made for data type %d, not %d", nameOf(task.kind), found->second.type, type);
  }
  task.reducer = Reducer::preMulSum;
  task.scalar = found->second.scalar;
  task.scalarAddress = found->second.address;
  return ncclSuccess;
}

ncclResult_t Communicator::registerBuffer(const void*, size_t, void** handle) {
  std::lock_guard lock(mutex_);
  *handle = reinterpret_cast<void*>(nextRegistration_++ * 16);
  registrations_.insert(*handle);
  return ncclSuccess;
}

ncclResult_t Communicator::deregisterBuffer(void* handle) {
  std::lock_guard lock(mutex_);
  if (registrations_.erase(handle) == 0) return problem(ncclInvalidArgument, "ncclCommDeregister: %p is not a registration", handle);
  return ncclSuccess;
}

}  // namespace shoal::nccl
