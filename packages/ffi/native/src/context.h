// The current context of a thread, switched and restored without going through JavaScript.
#pragma once

#include <napi.h>

#include <atomic>
#include <cstdint>

namespace shoal {

using GetCurrent = int (*)(uint64_t*);
// cuCtxGetCurrent, once it is known.
extern std::atomic<GetCurrent> get_current_context;

constexpr int kNotInitialized = 3;

// What is current on a thread.
struct CurrentContext {
  int status;  // 0, or the library's code when it could not be asked
  uint64_t context;
};

// Here, as nearly every call asks, and most often finds the context that it needs.
inline CurrentContext AskCurrentContext() {
  const GetCurrent get = get_current_context.load(std::memory_order_acquire);
  uint64_t context = 0;
  const int status = get == nullptr ? kNotInitialized : get(&context);
  return {status, context};
}

// Makes a context current on the calling thread for the life of this object.
class ContextScope {
 public:
  explicit ContextScope(uint64_t context, CurrentContext current = AskCurrentContext());
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  int status() const { return status_; }  // 0, or the library's code when the switch failed

 private:
  uint64_t previous_;
  bool changed_ = false;
  int status_ = 0;
};

void DefineContext(Napi::Env env, Napi::Object exports);

}  // namespace shoal
