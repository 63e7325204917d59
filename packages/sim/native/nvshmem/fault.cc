#include "fault.h"

#include <time.h>
#include <unistd.h>

#include <string>

#include "../shared/faults.h"
#include "report.h"
#include "shoal/nvshmem.h"

namespace shoal::nvshmem {

namespace {

const FaultRules kRules = {
    "nvshmem",
    false,
    [](const std::string&) { return true; },
    [](uint64_t code) { return code >= 1 && code <= 999; },
    CUDA_ERROR_ILLEGAL_ADDRESS,
    64,
    1,
};

Faults& faults() {
  static Faults* all = [] {
    auto* made = new Faults(kRules);
    const std::string problem = made->readEnvironment();
    if (!problem.empty()) report("%s", problem.c_str());
    return made;
  }();
  return *all;
}

}  // namespace

bool hasFaults() { return faults().isAny(); }

void injectFault(const char* function, int pe, int device) {
  if (!hasFaults()) return;
  const Faults::Injected injected = faults().next(function, pe);
  if (injected.code != 0) shoalSimInjectError(device, injected.code);
  const timespec interval = {static_cast<time_t>(injected.milliseconds / 1000),
                             static_cast<long>(injected.milliseconds % 1000 * 1000000)};
  if (injected.milliseconds != 0) nanosleep(&interval, nullptr);
  while (injected.hangs) pause();
}

}  // namespace shoal::nvshmem

using namespace shoal::nvshmem;

int shoalSimNvshmemFault(const char* text) {
  std::string wrong;
  if (faults().replace(text, wrong)) return NVSHMEMX_SUCCESS;
  report("shoalSimNvshmemFault: \"%s\" is not understood in \"%s\"", wrong.c_str(), text);
  return NVSHMEMX_ERROR_INVALID_VALUE;
}
