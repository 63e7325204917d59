#include "waiter.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "context.h"
#include "environment.h"

namespace shoal {
namespace {

using Clock = std::chrono::steady_clock;
using Query = int (*)(uint64_t);

// A query is asked again after a sixteenth of the time waited so far: short work is noticed within microseconds, long
// work costs next to nothing. The thread asks without a pause only at the very start.
constexpr auto kSpin = std::chrono::microseconds(20);
constexpr auto kShortestPause = std::chrono::microseconds(5);
constexpr auto kLongestPause = std::chrono::microseconds(500);
constexpr size_t kAskedUnderOneLock = 16;

struct Wait {
  uint64_t id;
  uint64_t context;
  Query query;
  uint64_t argument;
  int not_ready;
  std::shared_ptr<Mailbox> mailbox;
  Clock::time_point since;
};

struct Waiter {
  std::mutex arrivals_mutex;  // never held during a query, so JavaScript is never kept waiting by the driver
  std::condition_variable wake;
  std::vector<Wait> arrivals;
  bool started = false;

  std::mutex watched_mutex;  // held during a query: a wait that was forgotten is never asked again
  std::vector<Wait> watched;
};

// Never destroyed: its thread may outlive the exit of the process's main function.
Waiter& TheWaiter() {
  static auto* waiter = new Waiter;
  return *waiter;
}

int Ask(const Wait& wait) {
  if (wait.context == 0) return wait.query(wait.argument);
  ContextScope scope(wait.context);
  return scope.status() != 0 ? scope.status() : wait.query(wait.argument);
}

void Report(const Wait& wait, int status) {
  wait.mailbox->Post([id = wait.id, status](Napi::Env env) {
    Environment& environment = Environment::Of(env);
    environment.on_wait.Call({Napi::Number::New(env, static_cast<double>(id)), Napi::Number::New(env, status)});
  });
}

// Asks once for every wait; reports and drops those that ended. Returns the age of the youngest that is left.
Clock::duration AskAll(Waiter& waiter) {
  std::unique_lock<std::mutex> lock(waiter.watched_mutex);
  Clock::duration youngest = Clock::duration::max();
  size_t asked = 0;
  for (size_t i = 0; i < waiter.watched.size();) {
    // With thousands of waits the lock would be held most of the time, and forgetting one would wait for it.
    if (++asked % kAskedUnderOneLock == 0) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      if (i >= waiter.watched.size()) break;
    }
    Wait& wait = waiter.watched[i];
    const int status = Ask(wait);
    if (status == wait.not_ready) {
      youngest = std::min(youngest, Clock::now() - wait.since);
      ++i;
      continue;
    }
    Report(wait, status);
    if (i + 1 != waiter.watched.size()) wait = std::move(waiter.watched.back());
    waiter.watched.pop_back();
  }
  return youngest;
}

void TakeArrivals(Waiter& waiter) {
  // Both locks, so that a wait is always in one of the two lists for whoever wants it forgotten.
  std::scoped_lock lock(waiter.arrivals_mutex, waiter.watched_mutex);
  for (Wait& wait : waiter.arrivals) waiter.watched.push_back(std::move(wait));
  waiter.arrivals.clear();
}

void Watch() {
#ifdef __linux__
  prctl(PR_SET_TIMERSLACK, 1000UL);
#endif
  Waiter& waiter = TheWaiter();
  while (true) {
    TakeArrivals(waiter);
    const Clock::duration youngest = AskAll(waiter);
    if (youngest < kSpin) {
      std::this_thread::yield();
      continue;
    }
    std::unique_lock<std::mutex> lock(waiter.arrivals_mutex);
    const auto arrived = [&] { return !waiter.arrivals.empty(); };
    if (youngest == Clock::duration::max()) {
      waiter.wake.wait(lock, arrived);
    } else {
      waiter.wake.wait_for(lock, std::clamp<Clock::duration>(youngest / 16, kShortestPause, kLongestPause), arrived);
    }
  }
}

uint64_t Word(const Napi::Value& value) {
  bool lossless = false;
  return value.As<Napi::BigInt>().Uint64Value(&lossless);
}

// wait(id, context, query, argument, notReady): false when no thread could be had.
Napi::Value StartWait(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Environment& environment = Environment::Of(env);
  // Converted before anything is locked: a conversion may throw.
  Wait wait{static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value()), Word(info[1]),
            reinterpret_cast<Query>(Word(info[2])), Word(info[3]), info[4].As<Napi::Number>().Int32Value(),
            environment.mailbox, Clock::now()};
  Waiter& waiter = TheWaiter();
  std::lock_guard<std::mutex> lock(waiter.arrivals_mutex);
  if (!waiter.started) {
    try {
      std::thread(Watch).detach();
    } catch (const std::system_error&) {
      return Napi::Boolean::New(env, false);
    }
    waiter.started = true;
  }
  waiter.arrivals.push_back(std::move(wait));
  waiter.wake.notify_one();
  return Napi::Boolean::New(env, true);
}

size_t Forget(const std::shared_ptr<Mailbox>& mailbox, uint64_t id) {
  Waiter& waiter = TheWaiter();
  const auto forget = [&](std::vector<Wait>& waits) {
    const auto end = std::remove_if(waits.begin(), waits.end(),
                                    [&](const Wait& wait) { return wait.mailbox == mailbox && (id == 0 || wait.id == id); });
    const auto count = static_cast<size_t>(waits.end() - end);
    waits.erase(end, waits.end());
    return count;
  };
  std::scoped_lock lock(waiter.arrivals_mutex, waiter.watched_mutex);
  return forget(waiter.arrivals) + forget(waiter.watched);
}

// forget(id): true when the wait was still pending; it is not asked or reported any more.
Napi::Value ForgetWait(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  const bool found = Forget(environment.mailbox, static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value())) > 0;
  return Napi::Boolean::New(info.Env(), found);
}

}  // namespace

void ForgetWaits(const std::shared_ptr<Mailbox>& mailbox) { Forget(mailbox, 0); }

void DefineWaiter(Napi::Env env, Napi::Object exports) {
  exports.Set("wait", Napi::Function::New(env, StartWait, "wait"));
  exports.Set("forgetWait", Napi::Function::New(env, ForgetWait, "forgetWait"));
}

}  // namespace shoal
