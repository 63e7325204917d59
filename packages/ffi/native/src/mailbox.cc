#include "mailbox.h"

#include <utility>

namespace shoal {
namespace {

void Tell(Napi::Env env, const Mailbox::Message& message) {
  Napi::HandleScope scope(env);
  try {
    message(env);
  } catch (const Napi::Error& error) {
    // An exception in a JavaScript callback becomes an uncaught exception of the program, as in any event handler.
    napi_fatal_exception(env, error.Value());
  }
}

}  // namespace

void Mailbox::Open(Napi::Env env) {
  Napi::String name = Napi::String::New(env, "shoal");
  if (napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, Deliver, &function_) !=
      napi_ok) {
    throw Napi::Error::New(env, "could not create the thread-safe function of the addon");
  }
  napi_unref_threadsafe_function(env, function_);
  env_ = env;
  closed_ = false;
}

void Mailbox::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  // Node destroys the thread-safe function while it ends the environment. No thread may use it after this point.
  closed_ = true;
  function_ = nullptr;
  messages_.clear();
  quiet_.clear();
  has_messages_.store(false, std::memory_order_relaxed);
}

void Mailbox::Hold() {
  if (holds_++ == 0 && function_ != nullptr) napi_ref_threadsafe_function(env_, function_);
}

void Mailbox::Release() {
  if (--holds_ == 0 && function_ != nullptr) napi_unref_threadsafe_function(env_, function_);
}

bool Mailbox::Post(Message message) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return false;
    messages_.push_back(std::move(message));
    if (!asked_) Signal();
  }
  // Set the flag after releasing the lock: a thread that polls the flag takes the lock as soon as the flag is set.
  has_messages_.store(true, std::memory_order_release);
  return true;
}

void Mailbox::PostQuietly(Message message) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!closed_) quiet_.push_back(std::move(message));
}

void Mailbox::WakeForQuiet() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_ || quiet_.empty()) return;
  if (!asked_) Signal();
  has_messages_.store(true, std::memory_order_release);
}

void Mailbox::SetAsked(bool asked) {
  asked_ = asked;
  if (asked) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!messages_.empty() || !quiet_.empty()) Signal();
}

void Mailbox::Signal() {
  if (!signalled_) signalled_ = napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking) == napi_ok;
}

void Mailbox::DeliverNow(Napi::Env env, std::chrono::nanoseconds patience) {
  if (patience.count() > 0) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!has_messages_.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until) {
    }
  }
  std::vector<Message> messages;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    messages.swap(messages_);
    has_messages_.store(false, std::memory_order_relaxed);
  }
  for (const Message& message : messages) Tell(env, message);
  DeliverQuiet(env);
}

void Mailbox::DeliverQuiet(Napi::Env env) {
  // Deliver one message at a time, because the JavaScript that it calls may deliver the rest.
  while (true) {
    Message message;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (quiet_.empty()) return;
      message = std::move(quiet_.front());
      quiet_.pop_front();
    }
    Tell(env, message);
  }
}

void Mailbox::Deliver(napi_env env, napi_value, void* context, void*) {
  if (env == nullptr) return;  // the environment is going away
  auto* self = static_cast<Mailbox*>(context);
  {
    std::lock_guard<std::mutex> lock(self->mutex_);
    self->signalled_ = false;
  }
  self->DeliverNow(env);
}

}  // namespace shoal
