#include "fault.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "report.h"
#include "shoal/nvshmem.h"

namespace shoal::nvshmem {

namespace {

enum class Action { die, hang, slow, error };

struct Fault {
  Action action = Action::die;
  int pe = -1;         // -1: any
  std::string at;      // a function, or its beginning and '*'
  uint64_t after = 0;  // how often it comes by before
  uint64_t times = 1;  // how often it happens then; 0: ever after
  uint64_t milliseconds = 1000;
  int code = CUDA_ERROR_ILLEGAL_ADDRESS;
  uint64_t passed = 0;

  bool isAt(const char* function) const {
    if (at.back() == '*') return strncmp(function, at.c_str(), at.size() - 1) == 0;
    return at == function;
  }
};

struct Faults {
  std::mutex mutex;
  std::vector<Fault> all;
  std::atomic<bool> hasAny{false};
};

std::vector<std::string> cut(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (size_t start = 0; (start = text.find_first_not_of(separators, start)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(separators, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end;
  }
  return parts;
}

bool readNumber(const std::string& text, uint64_t& number) {
  char* end = nullptr;
  number = strtoull(text.c_str(), &end, 10);
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

// `wrong` is the part that was not understood.
bool parseFault(const std::vector<std::string>& words, Fault& fault, std::string& wrong) {
  constexpr const char* actions[] = {"die", "hang", "slow", "error"};
  const auto action = std::find(std::begin(actions), std::end(actions), wrong = words[0]);
  if (action == std::end(actions)) return false;
  fault.action = static_cast<Action>(action - actions);
  for (size_t index = 1; index < words.size(); ++index) {
    wrong = words[index];
    const size_t equals = wrong.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = wrong.substr(0, equals), value = wrong.substr(equals + 1);
    if (name == "call" || name == "at") {
      fault.at = value;
      continue;
    }
    uint64_t number = 0;
    if (!readNumber(value, number)) return false;
    if (name == "rank" && number < 64) fault.pe = static_cast<int>(number);
    else if (name == "after") fault.after = number;
    else if (name == "times") fault.times = number;
    else if (name == "ms") fault.milliseconds = number;
    else if (name == "code" && number >= 1 && number <= 999) fault.code = static_cast<int>(number);
    else return false;
  }
  return true;
}

bool parse(const char* text, std::vector<Fault>& faults, std::string& wrong) {
  for (const std::string& each : cut(text, ";")) {
    const auto words = cut(each, " ,");
    // Those of another library of the software device are not looked at: a function of this one says whose it is.
    const bool isOwn = std::any_of(words.begin(), words.end(), [](auto& word) { return word.rfind("at=nvshmem", 0) == 0 || word.rfind("call=nvshmem", 0) == 0; });
    if (!isOwn) continue;
    Fault fault;
    if (!parseFault(words, fault, wrong)) return false;
    faults.push_back(std::move(fault));
  }
  return true;
}

Faults& faults() {
  static Faults* all = [] {
    auto* made = new Faults;
    std::string wrong;
    const char* text = getenv("SHOAL_SIM_FAULT");
    if (text != nullptr && !parse(text, made->all, wrong)) {
      report("SHOAL_SIM_FAULT=%s: \"%s\" is not understood; there will be no faults", text, wrong.c_str());
      made->all.clear();
    }
    made->hasAny = !made->all.empty();
    return made;
  }();
  return *all;
}

}  // namespace

bool hasFaults() { return faults().hasAny; }

void meetFault(const char* function, int pe, int device) {
  Faults& known = faults();
  if (!known.hasAny) return;
  uint64_t milliseconds = 0;
  bool isHanging = false;
  {
    std::lock_guard lock(known.mutex);
    for (Fault& fault : known.all) {
      if ((fault.pe >= 0 && fault.pe != pe) || !fault.isAt(function)) continue;
      const uint64_t before = fault.passed++;
      if (before < fault.after || (fault.times != 0 && before >= fault.after + fault.times)) continue;
      switch (fault.action) {
        case Action::die: kill(getpid(), SIGKILL); break;
        case Action::hang: isHanging = true; break;
        case Action::slow: milliseconds += fault.milliseconds; break;
        case Action::error: shoalSimInjectError(device, fault.code); break;
      }
    }
  }
  const timespec nap = {static_cast<time_t>(milliseconds / 1000), static_cast<long>(milliseconds % 1000 * 1000000)};
  if (milliseconds != 0) nanosleep(&nap, nullptr);
  while (isHanging) pause();
}

}  // namespace shoal::nvshmem

using namespace shoal::nvshmem;

int shoalSimNvshmemFault(const char* text) {
  std::vector<Fault> made;
  std::string wrong;
  if (text != nullptr && !parse(text, made, wrong)) {
    report("shoalSimNvshmemFault: \"%s\" is not understood in \"%s\"", wrong.c_str(), text);
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  Faults& known = faults();
  std::lock_guard lock(known.mutex);
  known.all = std::move(made);
  known.hasAny = !known.all.empty();
  return NVSHMEMX_SUCCESS;
}
