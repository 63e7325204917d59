#include "fault.h"

#include <signal.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "futex.h"
#include "guard.h"
#include "problem.h"

namespace shoal::nccl {

namespace {

enum class Action { die, hang, slow, error };

struct Fault {
  Action action = Action::die;
  int rank = -1;          // -1: any
  std::string at;         // a stage or an operation; empty: any operation
  uint64_t after = 0;     // how often it comes by before
  uint64_t times = 1;     // how often it happens then; 0: ever after
  uint64_t milliseconds = 1000;
  ncclResult_t code = ncclSystemError;
  uint64_t passed = 0;
};

struct Faults {
  std::mutex mutex;
  std::vector<Fault> all;
  std::atomic<bool> hasAny{false};
};

constexpr const char* kStages[] = {"init", "collective", "point-to-point", "one-sided", "split", "shrink", "grow", "finalize", "destroy"};
constexpr const char* kOperations[] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter", "AlltoAll", "Gather",
                                       "Scatter",   "Send",   "Recv",      "PutSignal", "Signal",        "WaitSignal"};

// all-reduce and AllReduce are the same.
bool isSame(const std::string& given, const char* name) {
  size_t at = 0;
  for (; *name != '\0'; ++name) {
    if (*name == '-') continue;
    while (at < given.size() && given[at] == '-') ++at;
    if (at == given.size() || strncasecmp(&given[at], name, 1) != 0) return false;
    ++at;
  }
  return at == given.size();
}

bool isKnown(const std::string& at) {
  if (at == "any") return true;
  for (const char* each : kStages) {
    if (isSame(at, each)) return true;
  }
  for (const char* each : kOperations) {
    if (isSame(at, each)) return true;
  }
  return false;
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
  wrong = words[0];
  if (!isAction) return false;
  for (size_t index = 1; index < words.size(); ++index) {
    wrong = words[index];
    const size_t equals = wrong.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = wrong.substr(0, equals), value = wrong.substr(equals + 1);
    if (name == "at") {
      if (!isKnown(value)) return false;
      fault.at = value;
      continue;
    }
    uint64_t number = 0;
    if (!readNumber(value, number)) return false;
    if (name == "rank" && number < 64) fault.rank = static_cast<int>(number);
    else if (name == "after") fault.after = number;
    else if (name == "times") fault.times = number;
    else if (name == "ms") fault.milliseconds = number;
    else if (name == "code" && number >= 1 && number < ncclNumResults && number != ncclInProgress) fault.code = static_cast<ncclResult_t>(number);
    else return false;
  }
  return true;
}

bool parse(const char* text, std::vector<Fault>& faults, std::string& wrong) {
  for (const std::string& each : cut(text, ";")) {
    const auto words = cut(each, " ,");
    // Those of another library of the software device are not looked at.
    bool isForeign = false;
    for (const auto& word : words) isForeign = isForeign || word.rfind("at=nvshmem", 0) == 0;
    if (words.empty() || isForeign) continue;
    Fault fault;
    if (!parseFault(words, fault, wrong)) return false;
    faults.push_back(fault);
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

bool isAt(const Fault& fault, Stage stage, const char* operation) {
  const bool isOperation = stage == Stage::collective || stage == Stage::pointToPoint || stage == Stage::oneSided;
  if (fault.at.empty()) return isOperation;
  return fault.at == "any" || isSame(fault.at, kStages[static_cast<int>(stage)]) || (isOperation && isSame(fault.at, operation));
}

}  // namespace

FaultKind meetFault(Stage stage, const char* operation, int rank, const std::function<bool()>& isOver, ncclResult_t& code) {
  Faults& known = faults();
  if (!known.hasAny) return FaultKind::none;
  uint64_t pause = 0;
  FaultKind kind = FaultKind::none;
  {
    std::lock_guard lock(known.mutex);
    for (Fault& fault : known.all) {
      if ((fault.rank >= 0 && fault.rank != rank) || !isAt(fault, stage, operation)) continue;
      const uint64_t before = fault.passed++;
      if (before < fault.after || (fault.times != 0 && before >= fault.after + fault.times)) continue;
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
