#include "stream.h"

#include <pthread.h>

#include <algorithm>
#include <thread>

#include "context.h"
#include "green.h"
#include "pool/pool.h"
#include "state.h"
#include "thread.h"
#include "workers.h"

namespace shoal {

namespace {
std::atomic<unsigned long long> nextStreamId{1};
}

std::shared_ptr<Stream> Stream::create(std::shared_ptr<Context> context, StreamKind kind, int priority,
                                       std::shared_ptr<GreenContext> green) {
  auto stream = std::make_shared<Stream>(context, kind, priority);
  stream->green = std::move(green);
  if (kind == StreamKind::blocking || kind == StreamKind::nonBlocking) {
    stream->handle_ = state().streams.reserve();
    state().streams.put(stream->handle_, stream);
  } else {
    stream->handle_ = kind == StreamKind::legacyDefault ? 1 : 2;
  }
  context->add(stream);
  context->hold(*stream);
  return stream;
}

Stream::Stream(std::shared_ptr<Context> context, StreamKind kind, int priority)
    : context(std::move(context)), kind(kind), priority(priority), id(nextStreamId.fetch_add(1)) {}

// The legacy default stream and the blocking streams wait for each other. The caller holds the queue mutex.
std::vector<Dependency> Stream::orderAgainstDefaultStream() {
  std::vector<Dependency> after;
  if (kind == StreamKind::legacyDefault) {
    for (auto& other : context->streams()) {
      if (other.get() != this && other->isBlocking() && !other->isIdle()) after.push_back({other, other->enqueued()});
    }
  } else if (isBlocking()) {
    std::lock_guard lock(context->streamsMutex_);
    auto& legacy = context->default_;
    if (legacy && !legacy->isIdle()) after.push_back({legacy, legacy->enqueued()});
  }
  return after;
}

// The caller holds the mutex.
void Stream::makeThread() {
  if (hasThread_) return;
  std::thread([self = shared_from_this()] { self->loop(); }).detach();
  hasThread_ = true;
}

void Stream::ensureThread() {
  std::lock_guard lock(mutex_);
  makeThread();
}

uint64_t Stream::append(Operation operation) {
  std::unique_lock lock(mutex_);
  const bool isBranch = kind == StreamKind::branch, isUnseen = isBranch && !hasThread_;
  if (!isBranch) makeThread();
  const uint64_t sequence = enqueued_.load(std::memory_order_relaxed) + 1;
  operation.sequence = sequence;
  queue_.push_back(std::move(operation));
  enqueued_.store(sequence, std::memory_order_release);
  changed_.notify_all();
  if (isUnseen) {
    hasThread_ = true;
    lock.unlock();
    awaitTurn();
  }
  return sequence;
}

// Hands a branch to the worker pool after all dependencies of its first operation have completed.
void Stream::awaitTurn() {
  std::vector<Dependency> after;
  {
    std::lock_guard lock(mutex_);
    after = queue_.front().after;
  }
  missing_ = after.size() + 1;
  const auto arrive = [self = shared_from_this()] {
    if (self->missing_.fetch_sub(1) == 1) Workers::shared().push(self);
  };
  for (auto& dependency : after) dependency.stream->whenFinished(dependency.sequence, arrive);
  arrive();
}

void Stream::runReady() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Operation operation = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    execute(operation);
    const uint64_t sequence = operation.sequence;
    operation = Operation();  // release its resources before anybody sees that it has completed
    Workers::shared().countEnd();
    finish(sequence);
    lock.lock();
    if (queue_.empty()) {
      hasThread_ = false;
      return;
    }
    const auto& after = queue_.front().after;
    if (std::any_of(after.begin(), after.end(), [](auto& each) { return !each.stream->hasFinished(each.sequence); }))
      break;
  }
  lock.unlock();
  awaitTurn();
}

uint64_t Stream::enqueue(Operation operation) {
  std::lock_guard order(context->queueMutex);
  auto after = orderAgainstDefaultStream();
  operation.after.insert(operation.after.end(), after.begin(), after.end());
  return append(std::move(operation));
}

CUresult Stream::runOrEnqueue(Operation operation, uint64_t& sequence) {
  {
    std::lock_guard order(context->queueMutex);
    auto after = orderAgainstDefaultStream();
    operation.after.insert(operation.after.end(), after.begin(), after.end());
    bool isFirst = true;
    for (auto& dependency : operation.after) isFirst = isFirst && dependency.stream->hasFinished(dependency.sequence);
    {
      std::lock_guard lock(mutex_);
      isFirst = isFirst && isIdle();
      if (isFirst) {
        sequence = enqueued_.load(std::memory_order_relaxed) + 1;
        enqueued_.store(sequence, std::memory_order_release);
      }
    }
    if (!isFirst) {
      sequence = append(std::move(operation));
      return CUDA_SUCCESS;
    }
  }
  execute(operation);
  finish(sequence);
  return context->status();
}

CUresult Stream::runAndWait(Operation operation) {
  uint64_t sequence = 0;
  const CUresult ran = runOrEnqueue(std::move(operation), sequence);
  waitFor(sequence);
  return ran != CUDA_SUCCESS ? ran : context->status();
}

void Stream::execute(Operation& operation) {
  const bool hasFailed = context->error.load() != CUDA_SUCCESS;
  if (hasFailed && !operation.runsAfterErrors) {
    if (operation.discard) operation.discard();
  } else {
    const CUresult result = operation.run();
    if (result != CUDA_SUCCESS) context->fail(result);
  }
}

void Stream::finish(uint64_t sequence) {
  std::vector<std::function<void()>> calls;
  {
    std::lock_guard lock(mutex_);
    completed_.store(sequence, std::memory_order_release);
    changed_.notify_all();
    const auto isDue = [&](auto& waiter) {
      if (waiter.first > sequence) return false;
      calls.push_back(std::move(waiter.second));
      return true;
    };
    waiters_.erase(std::remove_if(waiters_.begin(), waiters_.end(), isDue), waiters_.end());
  }
  for (auto& call : calls) call();
}

void Stream::whenFinished(uint64_t sequence, std::function<void()> call) {
  {
    std::lock_guard lock(mutex_);
    if (!hasFinished(sequence)) {
      waiters_.emplace_back(sequence, std::move(call));
      return;
    }
  }
  call();
}

void Stream::loop() {
  pthread_setname_np(pthread_self(), "shoal-stream");
  std::unique_lock lock(mutex_);
  for (;;) {
    // The thread may have to wait for an earlier operation that runs on a calling thread.
    changed_.wait(lock, [&] {
      if (queue_.empty()) return isClosed_;
      return completed_.load(std::memory_order_acquire) + 1 == queue_.front().sequence;
    });
    if (queue_.empty()) {
      hasThread_ = false;
      return;
    }
    Operation operation = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    for (auto& dependency : operation.after) dependency.stream->waitFor(dependency.sequence);
    const uint64_t sequence = operation.sequence;
    execute(operation);
    operation = Operation();  // release its resources before anybody sees that it has completed
    finish(sequence);
    lock.lock();
  }
}

void Stream::waitFor(uint64_t sequence) {
  if (hasFinished(sequence)) return;
  const Workers::Waiting waiting;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return hasFinished(sequence); });
}

CUresult Stream::synchronize() {
  if (const CUresult status = context->status()) return status;
  std::vector<Dependency> all;
  {
    std::lock_guard order(context->queueMutex);
    all = orderAgainstDefaultStream();
    all.push_back({shared_from_this(), enqueued()});
  }
  // Only the default stream has to wait for the other streams. The earlier work of a blocking stream already waits for
  // the default stream.
  if (kind != StreamKind::legacyDefault) all.erase(all.begin(), all.end() - 1);
  for (auto& dependency : all) dependency.stream->waitFor(dependency.sequence);
  trimPoolsAfterWaiting();
  return context->status();
}

void Stream::close() {
  std::lock_guard lock(mutex_);
  isClosed_ = true;
  changed_.notify_all();
}

std::shared_ptr<Stream> findDefaultStream(CUstream handle, bool perThread, Context& current) {
  const bool isOwn = handle == CU_STREAM_PER_THREAD || (handle == nullptr && perThread);
  return isOwn ? current.perThreadDefaultStream() : current.defaultStream();
}

CUresult findStream(CUstream handle, std::shared_ptr<Stream>& stream) {
  stream = state().streams.find(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->contextDestroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream->green && stream->green->isDestroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return stream->context->status();
}

}  // namespace shoal
