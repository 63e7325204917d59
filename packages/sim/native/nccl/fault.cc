#include "fault.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "../shared/faults.h"
#include "../shared/futex.h"
#include "guard.h"
#include "problem.h"

namespace shoal::nccl {

namespace {

constexpr const char* kFunctions[] = {
    "ncclCommInitAll",
    "ncclCommInitRank",
    "ncclCommInitRankConfig",
    "ncclCommInitRankScalable",
    "ncclCommSplit",
    "ncclCommShrink",
    "ncclCommGrow",
    "ncclCommFinalize",
    "ncclCommDestroy",
    "ncclAllReduce",
    "ncclReduce",
    "ncclBroadcast",
    "ncclAllGather",
    "ncclReduceScatter",
    "ncclAlltoAll",
    "ncclGather",
    "ncclScatter",
    "ncclSend",
    "ncclRecv",
    "ncclPutSignal",
    "ncclSignal",
    "ncclWaitSignal",
};

constexpr uint64_t kRanks = 1 << 20;

const FaultRules kRules = {
    "nccl",
    true,
    [](const std::string& call) {
      return std::any_of(std::begin(kFunctions), std::end(kFunctions),
                         [&](const char* function) { return isCallOf(call, function); });
    },
    [](uint64_t code) { return code >= 1 && code < ncclNumResults && code != ncclInProgress; },
    ncclSystemError,
    kRanks,
    0,
};

Faults& faults() {
  static Faults* all = [] {
    auto* made = new Faults(kRules);
    const std::string problem = made->readEnvironment();
    if (!problem.empty()) fprintf(stderr, "shoal: %s\n", problem.c_str());
    return made;
  }();
  return *all;
}

// The rank that a launcher gave this process, or -1. Faults that kill a rank use this rank, whichever communicators the
// process is in.
int launchedRank() {
  static const int rank = [] {
    uint64_t number = 0;
    const char* text = getenv("RANK");
    return text != nullptr && readNumber(text, number) && number < kRanks ? static_cast<int>(number) : -1;
  }();
  return rank;
}

}  // namespace

FaultKind injectFault(const char* function, int rank, const std::function<bool()>& isOver, ncclResult_t& code) {
  if (!faults().isAny()) return FaultKind::none;
  const Faults::Injected injected = faults().next(function, launchedRank() < 0 ? rank : launchedRank());
  const uint64_t end = nanosecondsNow() + injected.milliseconds * 1000000;
  while (nanosecondsNow() < end && !isOver()) usleep(1000);
  code = static_cast<ncclResult_t>(injected.code);
  if (injected.hangs) return FaultKind::hang;
  return injected.code == 0 ? FaultKind::none : FaultKind::error;
}

void hang(const std::function<bool()>& isOver) {
  while (!isOver()) usleep(2000);
}

}  // namespace shoal::nccl

using namespace shoal::nccl;

int shoalSimNcclFault(const char* text) {
  return guarded([&]() -> ncclResult_t {
    std::string wrong;
    if (faults().replace(text, wrong)) return ncclSuccess;
    return problem(ncclInvalidArgument, "shoalSimNcclFault: \"%s\" is not understood in \"%s\"", wrong.c_str(), text);
  });
}
