// Batches: a communicator queues the operations of one group on one stream, and runs them together.
#include <algorithm>
#include <cstring>

#include "collective.h"
#include "communicator.h"
#include "onesided.h"
#include "pointtopoint.h"
#include "problem.h"

namespace shoal::nccl {

ncclResult_t Communicator::enqueue(std::vector<Task> tasks, CUstream stream) {
  ScopedContext scope(context);
  if (scope.status != CUDA_SUCCESS) return cudaProblem(scope.status, "making the communicator's context current");
  std::vector<ShoalSimRange> ranges;
  for (const Task& task : tasks) {
    const size_t element = bytesOf(task.type);
    const size_t sent = sendElements(task, ranks(), rank()) * element;
    const size_t received = recvElements(task, ranks(), rank()) * element;
    if (sent != 0) ranges.push_back({reinterpret_cast<CUdeviceptr>(task.send), sent, 0});
    if (received != 0) ranges.push_back({reinterpret_cast<CUdeviceptr>(task.recv), received, 1});
    if (task.scalarAddress != nullptr)
      ranges.push_back({reinterpret_cast<CUdeviceptr>(task.scalarAddress), element, 0});
  }
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (const CUresult status = cuStreamIsCapturing(stream, &capture))
    return cudaProblem(status, "asking whether the stream is captured");
  auto batch = std::make_unique<Batch>();
  batch->communicator = shared_from_this();
  batch->tasks = std::move(tasks);
  batch->isOrdered =
      !std::all_of(batch->tasks.begin(), batch->tasks.end(), [](const Task& task) { return task.isOneSided(); });
  if (capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    const CUresult status =
        shoalSimCapture(stream, &Communicator::startCaptured, &Communicator::runBatch, &Communicator::discardBatch,
                        &Communicator::releaseCaptured, batch.get(), ranges.data(), ranges.size());
    if (status != CUDA_SUCCESS) return cudaProblem(status, "capturing the operation");
    batch.release();
    std::lock_guard lock(mutex_);
    ++captured_;
    return ncclSuccess;
  }
  // Take the number under the same lock that covers queueing, so that numbers and stream order agree.
  std::lock_guard lock(mutex_);
  std::vector<uint64_t> booked = book(*batch);
  const CUresult status = shoalSimEnqueue(stream, &Communicator::runBatch, &Communicator::discardBatch, batch.get(),
                                          ranges.data(), ranges.size());
  if (status != CUDA_SUCCESS) return cudaProblem(status, "queueing the operation on its stream");
  bookedSignals_ = std::move(booked);
  ++(batch->isOrdered ? queued_ : unordered_);
  batch.release();
  if (config.isBlocking) return ncclSuccess;
  constexpr uint64_t moment = 50000;
  settlesAt_ = nanosecondsNow() + moment;
  return ncclInProgress;
}

namespace {

// Counts stream work on this thread. Freeing memory from stream work would make the stream wait for itself.
thread_local int streamDepth = 0;
struct OnStream {
  OnStream() { ++streamDepth; }
  ~OnStream() { --streamDepth; }
};

}  // namespace

bool isOnStream() { return streamDepth != 0; }

// Each launch of a graph counts as one more call, in order with the other calls.
void* Communicator::startCaptured(void* userData) {
  const auto& captured = *static_cast<const Batch*>(userData);
  auto batch = std::make_unique<Batch>(captured);
  Communicator& own = *batch->communicator;
  std::lock_guard lock(own.mutex_);
  own.bookedSignals_ = own.book(*batch);
  ++(batch->isOrdered ? own.queued_ : own.unordered_);
  return batch.release();
}

void Communicator::releaseCaptured(void* userData) {
  const std::unique_ptr<Batch> batch(static_cast<Batch*>(userData));
  Communicator& own = *batch->communicator;
  std::lock_guard lock(own.mutex_);
  --own.captured_;
  own.changed_.notify_all();
}

// Reserves the signals that the batch waits for, in call order. The caller holds the mutex.
std::vector<uint64_t> Communicator::book(Batch& batch) const {
  std::vector<uint64_t> booked = bookedSignals_;
  booked.resize(static_cast<size_t>(ranks()));
  for (Task& task : batch.tasks) {
    for (SignalWait& wait : task.waits) wait.target = booked[static_cast<size_t>(wait.peer)] += wait.count;
  }
  batch.number = queued_;
  return booked;
}

CUresult Communicator::runBatch(void* userData) {
  const OnStream onStream;
  const std::unique_ptr<Batch> batch(static_cast<Batch*>(userData));
  batch->communicator->run(*batch);
  return CUDA_SUCCESS;
}

void Communicator::discardBatch(void* userData) {
  const OnStream onStream;
  const std::unique_ptr<Batch> batch(static_cast<Batch*>(userData));
  Communicator& own = *batch->communicator;
  const std::string text = "the CUDA context of rank " + std::to_string(own.rank()) + " has failed";
  own.fail(ncclUnhandledCudaError, text);
  own.endpoint().fail(ncclRemoteError, text);
  own.finished(*batch);
}

void Communicator::run(const Batch& batch) {
  Endpoint& endpoint = this->endpoint();
  if (batch.isOrdered) {
    // The work of a communicator runs in the order in which it was queued, even across streams.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return executed_ >= batch.number || endpoint.isStopped(); });
  }
  ncclResult_t result = asyncError_ == ncclSuccess ? endpoint.failure() : static_cast<ncclResult_t>(asyncError_.load());
  for (const Task& task : batch.tasks) {
    if (result != ncclSuccess || endpoint.isStopped()) break;
    result = injectFault((std::string("nccl") + nameOf(task.kind)).c_str(), true);
  }
  if (result == ncclSuccess && !endpoint.isStopped()) result = runTasks(batch);
  if (result != ncclSuccess && !endpoint.isStopped()) {
    const char* text = endpoint.segment->control().failureText;
    fail(result, text);
    problem(result, "%s", text);
  }
  finished(batch);
}

// Run operations that need no other rank first, and waits for signals last. Otherwise ranks with equal groups could
// wait for each other.
ncclResult_t Communicator::runTasks(const Batch& batch) {
  Endpoint& endpoint = this->endpoint();
  ncclResult_t result = ncclSuccess;
  for (const Task& task : batch.tasks) {
    if (task.isOneSided() && task.kind != TaskKind::waitSignal && result == ncclSuccess) result = put(endpoint, task);
  }
  PointToPoint pointToPoint(endpoint, batch.tasks);
  if (result == ncclSuccess) pointToPoint.start();
  for (const Task& asked : batch.tasks) {
    if (asked.isPointToPoint() || asked.isOneSided() || result != ncclSuccess) continue;
    Task task = asked;
    if (task.scalarAddress != nullptr) memcpy(&task.scalar, task.scalarAddress, bytesOf(task.type));
    result = runCollective(endpoint, task);
  }
  if (result == ncclSuccess) result = pointToPoint.finish();
  for (const Task& task : batch.tasks) {
    if (task.kind == TaskKind::waitSignal && result == ncclSuccess) result = waitForSignals(endpoint, task);
  }
  return result;
}

void Communicator::finished(const Batch& batch) {
  std::lock_guard lock(mutex_);
  if (batch.isOrdered) ++executed_;
  else --unordered_;
  changed_.notify_all();
}

void Communicator::waitForBatches() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return executed_ == queued_ && unordered_ == 0; });
}

void Communicator::waitForGraphs() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return captured_ == 0; });
}

}  // namespace shoal::nccl
