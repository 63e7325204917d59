// The current context of a thread. Native code switches and restores it without a call into JavaScript.
#pragma once

#include <napi.h>

#include <atomic>
#include <cstdint>

namespace shoal {

using GetCurrent = int (*)(uint64_t*);
// cuCtxGetCurrent, or null until its address is known.
extern std::atomic<GetCurrent> get_current_context;

constexpr int kNotInitialized = 3;

// The context that is current on a thread.
struct CurrentContext {
  int status;  // 0, or the library's code if the query failed
  uint64_t context;
};

// Inline because nearly every call asks, and the needed context is usually current already.
inline CurrentContext AskCurrentContext() {
  const GetCurrent get = get_current_context.load(std::memory_order_acquire);
  uint64_t context = 0;
  const int status = get == nullptr ? kNotInitialized : get(&context);
  return {status, context};
}

// Makes a context current on the calling thread for the lifetime of this object.
class ContextScope {
 public:
  explicit ContextScope(uint64_t context, CurrentContext current = AskCurrentContext());
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  int status() const { return status_; }  // 0, or the library's code if the switch failed

 private:
  uint64_t previous_;
  bool changed_ = false;
  int status_ = 0;
};

void DefineContext(Napi::Env env, Napi::Object exports);

}  // namespace shoal
