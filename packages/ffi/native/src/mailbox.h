// Delivers messages from native threads to one JavaScript thread. Posting after that thread has ended does nothing.
#pragma once

#include <napi.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace shoal {

class Mailbox {
 public:
  using Message = std::function<void(Napi::Env)>;

  // Only on the JavaScript thread.
  void Open(Napi::Env env);
  void Close();
  void Hold();     // adds a reason to keep the event loop alive
  void Release();  // removes a reason

  // From any thread. Returns false if the JavaScript thread has ended.
  bool Post(Message message);
  // Posts without waking the event loop. The message waits for DeliverQuiet or for the next wake-up. WakeForQuiet wakes
  // the loop if such messages wait.
  void PostQuietly(Message message);
  void WakeForQuiet();

  // Only on the JavaScript thread. Delivers the posted messages without waiting for the event loop. If there are none,
  // polls for up to `patience`.
  void DeliverNow(Napi::Env env, std::chrono::nanoseconds patience = {});
  // Delivers only the quiet messages.
  void DeliverQuiet(Napi::Env env);
  // While set, posts do not wake the event loop, because JavaScript polls. A wake-up costs both threads a system call.
  void SetAsked(bool asked);

 private:
  void Signal();
  static void Deliver(napi_env env, napi_value callback, void* context, void* data);

  std::mutex mutex_;
  napi_threadsafe_function function_ = nullptr;
  napi_env env_ = nullptr;
  std::vector<Message> messages_;
  std::deque<Message> quiet_;
  std::atomic<bool> has_messages_{false};
  std::atomic<bool> asked_{false};
  bool signalled_ = false;
  bool closed_ = true;
  int holds_ = 0;
};

}  // namespace shoal
