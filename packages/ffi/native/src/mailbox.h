// Delivers messages from native threads to one JavaScript thread. Posting after that thread has ended is a safe no-op.
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

  // On the JavaScript thread.
  void Open(Napi::Env env);
  void Close();
  void Hold();     // one more reason to keep the event loop alive
  void Release();  // one less

  // From any thread. False when the JavaScript thread has ended.
  bool Post(Message message);
  // The same without waking the event loop: for DeliverQuiet, or for whenever the loop is woken next. WakeForQuiet
  // wakes it.
  void PostQuietly(Message message);
  void WakeForQuiet();

  // On the JavaScript thread: what was posted, without waiting for the event loop to be woken; looks out for it so
  // long.
  void DeliverNow(Napi::Env env, std::chrono::nanoseconds patience = {});
  // The same of nothing but the quiet messages.
  void DeliverQuiet(Napi::Env env);
  // Who asks need not be woken, which costs both threads a call of the system.
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
