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
// Runs behind the handlers of all libraries loaded since and before those of Node.
void Leave(int status, void*) {
  if (!is_guarded) return;
  std::fflush(nullptr);
  _exit(status);
}
#endif

// guardExit(guarded): NVSHMEM ends the process by exit() where it refuses a call. exit() destroys what V8's threads
// still use, so that the process may end by SIGSEGV and its status is lost. Node itself ends those threads first.
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
