#include "signals.h"

#include <csignal>

#include <array>
#include <cstddef>

namespace shoal {
namespace {

constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};
using Actions = std::array<struct sigaction, kSignals.size()>;

Actions Now() {
  Actions actions{};
  for (size_t index = 0; index < kSignals.size(); ++index) sigaction(kSignals[index], nullptr, &actions[index]);
  return actions;
}

// The handlers from before any library was loaded.
const Actions& First() {
  static const Actions actions = Now();
  return actions;
}

bool IsSameHandler(const struct sigaction& one, const struct sigaction& other) {
  return one.sa_handler == other.sa_handler && one.sa_handler != SIG_DFL && one.sa_handler != SIG_IGN;
}

// restoreSignals(): NVRTC installs its own handlers while it compiles, and restores the earlier handlers without their
// flags. Node's one-shot handler then runs for ever, and only SIGKILL can end the process.
void Restore(const Napi::CallbackInfo&) {
  const Actions& first = First();
  const Actions now = Now();
  for (size_t index = 0; index < kSignals.size(); ++index) {
    if (!IsSameHandler(now[index], first[index]) || now[index].sa_flags == first[index].sa_flags) continue;
    sigaction(kSignals[index], &first[index], nullptr);
  }
}

}  // namespace

void DefineSignals(Napi::Env env, Napi::Object exports) {
  First();
  exports.Set("restoreSignals", Napi::Function::New(env, Restore, "restoreSignals"));
}

}  // namespace shoal
