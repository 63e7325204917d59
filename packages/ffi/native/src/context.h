// The current context of a thread, switched and restored without going through JavaScript.
#pragma once

#include <napi.h>

#include <atomic>
#include <cstdint>

namespace shoal {

using GetCurrent = int (*)(uint64_t*);
// cuCtxGetCurrent, once it is known.
extern std::atomic<GetCurrent> get_current_context;

// Whether a context is current on the calling thread: here, as nearly every call asks, and is answered yes.
inline bool IsCurrentContext(uint64_t context) {
  const GetCurrent get = get_current_context.load(std::memory_order_acquire);
  uint64_t current = 0;
  return get != nullptr && get(&current) == 0 && current == context;
}

// Makes a context current on the calling thread for the life of this object.
class ContextScope {
 public:
  explicit ContextScope(uint64_t context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  int status() const { return status_; }  // 0, or the library's code when the switch failed

 private:
  uint64_t previous_ = 0;
  bool changed_ = false;
  int status_ = 0;
};

void DefineContext(Napi::Env env, Napi::Object exports);

}  // namespace shoal
