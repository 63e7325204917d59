#include "workers.h"

#include <pthread.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "device.h"
#include "state.h"
#include "stream.h"

namespace shoal {

namespace {

constexpr size_t kResident = 128;
constexpr auto kMoment = std::chrono::milliseconds(10);
// A thread without work ends after this time.
constexpr auto kPatience = std::chrono::seconds(1);

thread_local bool isWorker = false;
thread_local unsigned waitingDepth = 0;

}  // namespace

Workers& Workers::shared() {
  static Workers* workers = new Workers;
  return *workers;
}

std::shared_ptr<void> Workers::lease() {
  std::lock_guard lock(mutex_);
  if (idle_ + computing_ + waiting_ == 0 && !makeOne()) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "a thread for a graph");
  }
  ++leases_;
  return {this, [](Workers* workers) {
            std::lock_guard returned(workers->mutex_);
            --workers->leases_;
          }};
}

void Workers::push(std::shared_ptr<Stream> stream) {
  std::lock_guard lock(mutex_);
  ready_.push_back(std::move(stream));
  changed_.notify_one();
  makeMore();
}

bool Workers::hasRoom() const { return computing_ < kResident * state().devices.size(); }

bool Workers::makeOne() {
  try {
    std::thread([this] { loop(); }).detach();
  } catch (const std::exception&) {
    return false;  // the existing threads continue, and each change tries again
  }
  ++idle_;
  return true;
}

// The caller holds the mutex.
void Workers::makeMore() {
  while (ready_.size() > idle_ && computing_ + idle_ < kResident * state().devices.size() && waiting_ < kResident) {
    if (!makeOne()) break;
  }
  if (ready_.empty() || idle_ != 0 || waiting_ == 0 || isWatched_) return;
  try {
    std::thread([this] { watch(); }).detach();
    isWatched_ = true;
  } catch (const std::exception&) {
  }
}

void Workers::loop() {
  pthread_setname_np(pthread_self(), "shoal-graph");
  isWorker = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool hasWork = changed_.wait_for(lock, kPatience, [&] { return !ready_.empty() && hasRoom(); });
    if (!hasWork) {
      const bool isNeeded = !ready_.empty() || (leases_ != 0 && idle_ + computing_ + waiting_ == 1);
      if (isNeeded) continue;
      --idle_;
      return;
    }
    auto stream = std::move(ready_.front());
    ready_.pop_front();
    --idle_;
    ++computing_;
    lock.unlock();
    stream->runReady();
    stream.reset();
    lock.lock();
    --computing_;
    ++idle_;
  }
}

// Adds a thread whenever no operation has completed for a moment, while work waits for a thread.
void Workers::watch() {
  pthread_setname_np(pthread_self(), "shoal-graph");
  std::unique_lock lock(mutex_);
  while (!ready_.empty() && idle_ == 0) {
    const size_t before = ended_;
    lock.unlock();
    std::this_thread::sleep_for(kMoment);
    lock.lock();
    if (ended_ == before && !ready_.empty() && idle_ == 0 && hasRoom()) makeOne();
  }
  isWatched_ = false;
}

Workers::Waiting::Waiting() {
  if (!isWorker || waitingDepth++ != 0) return;
  Workers& own = shared();
  std::lock_guard lock(own.mutex_);
  --own.computing_;
  ++own.waiting_;
  own.changed_.notify_one();  // a thread may take its place
  own.makeMore();
}

Workers::Waiting::~Waiting() {
  if (!isWorker || --waitingDepth != 0) return;
  Workers& own = shared();
  std::lock_guard lock(own.mutex_);
  --own.waiting_;
  ++own.computing_;
}

}  // namespace shoal
