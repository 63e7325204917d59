// The current context of a thread, switched and restored without going through JavaScript.
#pragma once

#include <napi.h>

#include <cstdint>

namespace shoal {

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
