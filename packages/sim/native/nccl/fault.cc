#include "fault.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "../shared/futex.h"
#include "guard.h"
#include "problem.h"

namespace shoal::nccl {

namespace {

enum class Action { die, hang, slow, error };

struct Fault {
  Action action = Action::die;
  int rank = -1;          // -1: any
  std::string call;       // a function, or its beginning and *; empty: any
  uint64_t after = 0;     // how often it comes by before
  uint64_t milliseconds = 1000;
  ncclResult_t code = ncclSystemError;
  uint64_t passed = 0;
};

struct Faults {
  std::mutex mutex;
  std::vector<Fault> all;
  std::atomic<bool> hasAny{false};
};

constexpr const char* kFunctions[] = {
    "ncclCommInitAll", "ncclCommInitRank", "ncclCommInitRankConfig", "ncclCommInitRankScalable", "ncclCommSplit", "ncclCommShrink",
    "ncclCommGrow", "ncclCommFinalize", "ncclCommDestroy", "ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather",
    "ncclReduceScatter", "ncclAlltoAll", "ncclGather", "ncclScatter", "ncclSend", "ncclRecv", "ncclPutSignal", "ncclSignal", "ncclWaitSignal",
};

bool matches(const std::string& call, const std::string& function) {
  if (call.empty()) return true;
  if (call.back() != '*') return call == function;
  return function.compare(0, call.size() - 1, call, 0, call.size() - 1) == 0;
}

// Of this library, not of another one of the software device.
bool isOwn(const std::string& call) { return call.empty() || call == "*" || call.rfind("nccl", 0) == 0; }

bool isKnown(const std::string& call) {
  return std::any_of(std::begin(kFunctions), std::end(kFunctions), [&](const char* function) { return matches(call, function); });
}

bool readNumber(const std::string& text, uint64_t& number) {
  char* end = nullptr;
  number = strtoull(text.c_str(), &end, 10);
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

std::vector<std::string> cut(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (size_t start = 0; (start = text.find_first_not_of(separators, start)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(separators, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end;
  }
  return parts;
}

// `wrong` is the part that was not understood.
bool parseFault(const std::vector<std::string>& words, Fault& fault, std::string& wrong) {
  constexpr const char* actions[] = {"die", "hang", "slow", "error"};
  bool isAction = false;
  for (int action = 0; action < 4; ++action) {
    if (words[0] != actions[action]) continue;
    fault.action = static_cast<Action>(action);
    isAction = true;
  }
  uint64_t code = 0;
  wrong = words[0];
  if (!isAction) return false;
  for (size_t index = 1; index < words.size(); ++index) {
    wrong = words[index];
    const size_t equals = wrong.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = wrong.substr(0, equals), value = wrong.substr(equals + 1);
    if (name == "call" || name == "at") {
      if (isOwn(value) && !isKnown(value)) return false;
      fault.call = value;
      continue;
    }
    uint64_t number = 0;
    if (!readNumber(value, number)) return false;
    if (name == "rank") fault.rank = static_cast<int>(std::min<uint64_t>(number, 1 << 20));
    else if (name == "after") fault.after = number;
    else if (name == "ms") fault.milliseconds = number;
    else if (name == "code") code = number;
    else return false;
  }
  const bool isResult = code >= 1 && code < ncclNumResults && code != ncclInProgress;
  if (isResult) fault.code = static_cast<ncclResult_t>(code);
  // Without a function the code may be meant for another library.
  wrong = "code=" + std::to_string(code);
  if (code != 0 && !isResult && fault.call.rfind("nccl", 0) == 0) return false;
  return true;
}

bool parse(const char* text, std::vector<Fault>& faults, std::string& wrong) {
  for (const std::string& each : cut(text, ";")) {
    const auto words = cut(each, " ,:");
    if (words.empty()) continue;
    Fault fault;
    if (!parseFault(words, fault, wrong)) return false;
    if (isOwn(fault.call)) faults.push_back(fault);
  }
  return true;
}

Faults& faults() {
  static Faults* all = [] {
    auto* made = new Faults;
    std::string wrong;
    const char* text = getenv("SHOAL_SIM_FAULT");
    if (text != nullptr && !parse(text, made->all, wrong)) {
      fprintf(stderr, "shoal: SHOAL_SIM_FAULT=%s: \"%s\" is not understood; there will be no faults\n", text, wrong.c_str());
      made->all.clear();
    }
    made->hasAny = !made->all.empty();
    return made;
  }();
  return *all;
}

// The rank that a launcher gave this process, -1 without one: who is to die is that, whatever communicators it is in.
int launchedRank() {
  static const int rank = [] {
    uint64_t number = 0;
    const char* text = getenv("RANK");
    return text != nullptr && readNumber(text, number) && number < 1 << 20 ? static_cast<int>(number) : -1;
  }();
  return rank;
}

}  // namespace

FaultKind meetFault(const char* function, int rank, const std::function<bool()>& isOver, ncclResult_t& code) {
  Faults& known = faults();
  if (!known.hasAny) return FaultKind::none;
  const int own = launchedRank() < 0 ? rank : launchedRank();
  uint64_t pause = 0;
  FaultKind kind = FaultKind::none;
  {
    std::lock_guard lock(known.mutex);
    for (Fault& fault : known.all) {
      if ((fault.rank >= 0 && fault.rank != own) || !matches(fault.call, function) || fault.passed++ < fault.after) continue;
      switch (fault.action) {
        case Action::die: kill(getpid(), SIGKILL); break;
        case Action::slow: pause += fault.milliseconds; break;
        case Action::hang: kind = FaultKind::hang; break;
        case Action::error:
          kind = FaultKind::error;
          code = fault.code;
          break;
      }
    }
  }
  const uint64_t end = nanosecondsNow() + pause * 1000000;
  while (nanosecondsNow() < end && !isOver()) usleep(1000);
  return kind;
}

void hang(const std::function<bool()>& isOver) {
  while (!isOver()) usleep(2000);
}

}  // namespace shoal::nccl

using namespace shoal::nccl;

int shoalSimNcclFault(const char* text) {
  return guarded([&]() -> ncclResult_t {
    std::vector<Fault> made;
    std::string wrong;
    if (text != nullptr && !parse(text, made, wrong)) {
      return problem(ncclInvalidArgument, "shoalSimNcclFault: \"%s\" is not understood in \"%s\"", wrong.c_str(), text);
    }
    Faults& known = faults();
    std::lock_guard lock(known.mutex);
    known.all = std::move(made);
    known.hasAny = !known.all.empty();
    return ncclSuccess;
  });
}
