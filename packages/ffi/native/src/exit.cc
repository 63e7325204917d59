#include "exit.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace shoal {
namespace {

std::atomic<bool> is_guarded{false};
std::atomic<bool> is_ending{false};

#ifdef __GLIBC__
// Runs after the exit handlers of all libraries that were loaded later, and before the handlers of Node.
void Leave(int status, void*) {
  if (!is_guarded) return;
  std::fflush(nullptr);
  _exit(status);
}
#endif

// guardExit(guarded): NVSHMEM calls exit() when it refuses a call. exit() destroys objects that V8's threads still use,
// so the process can die of SIGSEGV and lose its status. Node itself stops those threads first.
void Guard(const Napi::CallbackInfo& info) {
#ifdef __GLIBC__
  [[maybe_unused]] static const int registered = on_exit(Leave, nullptr);
#endif
  is_guarded = info[0].As<Napi::Boolean>();
  is_ending = !is_guarded;
}

}  // namespace

bool ProcessIsEnding() { return is_ending; }

void DefineExit(Napi::Env env, Napi::Object exports) {
  exports.Set("guardExit", Napi::Function::New(env, Guard, "guardExit"));
}

}  // namespace shoal
