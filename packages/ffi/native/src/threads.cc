#include "threads.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace shoal {
namespace {

constexpr auto kIdle = std::chrono::seconds(10);
// A lane polls this long for the next task, so that calls in quick succession do not each wait for a thread to wake up.
constexpr auto kLaneSpin = std::chrono::microseconds(30);
// A lane is idle when it gets no task for this long.
constexpr auto kLanePause = std::chrono::milliseconds(1);

struct Pool {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Task> tasks;
  size_t idle = 0;
};

// Never destroyed, because its threads may outlive main().
Pool& ThePool() {
  static auto* pool = new Pool;
  return *pool;
}

void Serve() {
  Pool& pool = ThePool();
  std::unique_lock<std::mutex> lock(pool.mutex);
  while (true) {
    if (pool.tasks.empty()) {
      ++pool.idle;
      const bool woken = pool.wake.wait_for(lock, kIdle, [&] { return !pool.tasks.empty(); });
      --pool.idle;
      if (!woken) return;
    }
    Task task = std::move(pool.tasks.front());
    pool.tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

bool StartThread(Task body) {
  try {
    std::thread(std::move(body)).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

bool HasSpareProcessors() {
  static const bool has = std::thread::hardware_concurrency() >= 4;
  return has;
}

bool RunOnThread(Task task) {
  Pool& pool = ThePool();
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.tasks.push_back(std::move(task));
  if (pool.idle >= pool.tasks.size()) {
    pool.wake.notify_one();
    return true;
  }
  if (StartThread(Serve)) return true;
  pool.tasks.pop_back();
  return false;
}

bool Lane::Run(Task task, Task when_idle) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return false;
    if (!started_) {
      if (!StartThread([self = shared_from_this()] { self->Serve(); })) return false;
      started_ = true;
    }
    tasks_.push_back(std::move(task));
    if (when_idle) when_idle_ = std::move(when_idle);
  }
  // Set the flag after releasing the lock: a thread that polls the flag takes the lock as soon as the flag is set.
  has_news_.store(true, std::memory_order_release);
  wake_.notify_one();
  return true;
}

void Lane::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  has_news_.store(true, std::memory_order_release);
  wake_.notify_one();
}

bool Lane::WaitUntilIdle(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mutex_);
  return idle_.wait_for(lock, patience, [&] { return tasks_.empty() && !running_; });
}

void Lane::Serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto has_news = [&] { return closed_ || !tasks_.empty(); };
  while (true) {
    if (when_idle_ && tasks_.empty()) {
      wake_.wait_for(lock, kLanePause, has_news);
      if (tasks_.empty()) std::exchange(when_idle_, nullptr)();
    }
    wake_.wait(lock, has_news);
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    has_news_.store(closed_ || !tasks_.empty(), std::memory_order_relaxed);
    running_ = true;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    running_ = false;
    if (tasks_.empty()) idle_.notify_all();
    lock.unlock();
    if (HasSpareProcessors()) {
      const auto until = std::chrono::steady_clock::now() + kLaneSpin;
      while (!has_news_.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until) {
      }
    }
    lock.lock();
  }
}

}  // namespace shoal
