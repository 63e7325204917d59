#include "waiter.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
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

// The waiter repeats a query after a sixteenth of the time waited so far. Short work is noticed within microseconds,
// and long work costs almost nothing. The thread polls without a pause only at the very start.
constexpr auto kSpin = std::chrono::microseconds(20);
constexpr auto kShortestPause = std::chrono::microseconds(5);
constexpr auto kLongestPause = std::chrono::microseconds(200);
// A query reads memory that the environment may free when it ends. A query that hangs must not block the end for ever.
constexpr auto kLongestEnd = std::chrono::seconds(1);

struct Wait {
  uint64_t id;
  uint64_t context;
  Query query;
  uint64_t argument;
  int not_ready;
  std::shared_ptr<Mailbox> mailbox;
  Clock::time_point since;
  bool forgotten = false;
};

using WaitHandle = std::shared_ptr<Wait>;

struct Key {
  const Mailbox* mailbox;
  uint64_t id;
  bool operator==(const Key& other) const { return mailbox == other.mailbox && id == other.id; }
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    return std::hash<const void*>()(key.mailbox) * 31 + std::hash<uint64_t>()(key.id);
  }
};

// The mutex is never held during a query, so the driver cannot make JavaScript wait.
struct Waiter {
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable answered;
  std::unordered_map<Key, WaitHandle, KeyHash> pending;  // neither reported nor forgotten
  std::vector<WaitHandle> arrivals;
  WaitHandle asking;  // the wait whose query is running
  bool started = false;
};

// Never destroyed, because its thread may outlive main().
Waiter& TheWaiter() {
  static auto* waiter = new Waiter;
  return *waiter;
}

int Ask(const Wait& wait) {
  if (wait.context == 0) return wait.query(wait.argument);
  ContextScope scope(wait.context);
  return scope.status() != 0 ? scope.status() : wait.query(wait.argument);
}

void Report(const Wait& wait, int status, bool forgotten) {
  wait.mailbox->Post([id = wait.id, status, forgotten](Napi::Env env) {
    Environment& environment = Environment::Of(env);
    environment.on_wait.Call({Napi::Number::New(env, static_cast<double>(id)), Napi::Number::New(env, status),
                              Napi::Boolean::New(env, forgotten)});
  });
}

// Runs the query once. Returns true if the query has to be repeated.
bool AskOnce(Waiter& waiter, const WaitHandle& wait) {
  {
    std::lock_guard<std::mutex> lock(waiter.mutex);
    if (wait->forgotten) return false;
    waiter.asking = wait;
  }
  const int status = Ask(*wait);
  bool forgotten = false;
  {
    std::lock_guard<std::mutex> lock(waiter.mutex);
    waiter.asking = nullptr;
    waiter.answered.notify_all();
    forgotten = wait->forgotten;
    if (!forgotten && status == wait->not_ready) return true;
    waiter.pending.erase(Key{wait->mailbox.get(), wait->id});
  }
  Report(*wait, status, forgotten);
  return false;
}

// Runs each query once and drops the waits that ended. Returns the age of the youngest remaining wait.
Clock::duration AskAll(Waiter& waiter, std::vector<WaitHandle>& watched) {
  Clock::duration youngest = Clock::duration::max();
  for (size_t i = 0; i < watched.size();) {
    if (AskOnce(waiter, watched[i])) {
      youngest = std::min(youngest, Clock::now() - watched[i]->since);
      ++i;
      continue;
    }
    watched[i] = std::move(watched.back());
    watched.pop_back();
  }
  return youngest;
}

void Watch() {
#ifdef __linux__
  prctl(PR_SET_TIMERSLACK, 1000UL);
#endif
  Waiter& waiter = TheWaiter();
  std::vector<WaitHandle> watched;
  while (true) {
    {
      std::lock_guard<std::mutex> lock(waiter.mutex);
      watched.insert(watched.end(), waiter.arrivals.begin(), waiter.arrivals.end());
      waiter.arrivals.clear();
    }
    const Clock::duration youngest = AskAll(waiter, watched);
    if (youngest < kSpin) {
      std::this_thread::yield();
      continue;
    }
    std::unique_lock<std::mutex> lock(waiter.mutex);
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

// wait(id, context, query, argument, notReady): false if the system cannot start the thread.
Napi::Value StartWait(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Environment& environment = Environment::Of(env);
  // Convert the arguments before locking, because a conversion may throw.
  auto wait = std::make_shared<Wait>(Wait{static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value()), Word(info[1]),
                                          reinterpret_cast<Query>(Word(info[2])), Word(info[3]),
                                          info[4].As<Napi::Number>().Int32Value(), environment.mailbox, Clock::now()});
  Waiter& waiter = TheWaiter();
  std::lock_guard<std::mutex> lock(waiter.mutex);
  if (!waiter.started) {
    try {
      std::thread(Watch).detach();
    } catch (const std::system_error&) {
      return Napi::Boolean::New(env, false);
    }
    waiter.started = true;
  }
  waiter.pending[Key{wait->mailbox.get(), wait->id}] = wait;
  waiter.arrivals.push_back(std::move(wait));
  waiter.wake.notify_one();
  return Napi::Boolean::New(env, true);
}

// forget(id): returns 1 if the wait was pending; it is neither queried nor reported any more. Returns 2 if its query is
// running; the wait is reported as forgotten when the query has returned. Returns 0 if its end was reported already.
Napi::Value ForgetWait(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::Of(info.Env());
  const auto id = static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value());
  Waiter& waiter = TheWaiter();
  int outcome = 0;
  {
    std::lock_guard<std::mutex> lock(waiter.mutex);
    const auto found = waiter.pending.find(Key{environment.mailbox.get(), id});
    if (found != waiter.pending.end()) {
      found->second->forgotten = true;
      outcome = waiter.asking == found->second ? 2 : 1;
      waiter.pending.erase(found);
    }
  }
  return Napi::Number::New(info.Env(), outcome);
}

}  // namespace

void ForgetWaits(const std::shared_ptr<Mailbox>& mailbox) {
  Waiter& waiter = TheWaiter();
  std::unique_lock<std::mutex> lock(waiter.mutex);
  for (auto entry = waiter.pending.begin(); entry != waiter.pending.end();) {
    if (entry->second->mailbox != mailbox) {
      ++entry;
      continue;
    }
    entry->second->forgotten = true;
    entry = waiter.pending.erase(entry);
  }
  waiter.answered.wait_for(lock, kLongestEnd,
                           [&] { return waiter.asking == nullptr || waiter.asking->mailbox != mailbox; });
}

void DefineWaiter(Napi::Env env, Napi::Object exports) {
  exports.Set("wait", Napi::Function::New(env, StartWait, "wait"));
  exports.Set("forgetWait", Napi::Function::New(env, ForgetWait, "forgetWait"));
}

}  // namespace shoal
