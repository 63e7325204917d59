// Faults on demand, for tests of what the other ranks do then. SHOAL_SIM_FAULT, or a call of the library, says which:
//   KIND:rank=N,call=NAME[,after=N][,ms=N][,code=N]    several of them with ';' between
// KIND is die (the process kills itself), hang (the call never goes on), slow (it waits `ms` before each such call) or
// error (the rank's device is lost with the CUresult `code`). NAME is a C function's, or its beginning and '*'; the first
// `after` such calls of the process pass.
#pragma once

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "shoal/cuda.h"

namespace shoal::fault {

enum class Kind { die, hang, slow, error };

struct Rule {
  Kind kind = Kind::die;
  int rank = -1;
  std::string call;
  uint64_t after = 0;
  uint64_t milliseconds = 1000;
  int code = CUDA_ERROR_ILLEGAL_ADDRESS;
  uint64_t calls = 0;  // that were seen

  bool concerns(const char* function, int ofRank) const {
    if (ofRank != rank) return false;
    if (call.back() == '*') return strncmp(function, call.c_str(), call.size() - 1) == 0;
    return call == function;
  }
};

inline bool readRule(const std::string& text, Rule& rule) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  const std::string kind = text.substr(0, colon);
  if (kind == "die") rule.kind = Kind::die;
  else if (kind == "hang") rule.kind = Kind::hang;
  else if (kind == "slow") rule.kind = Kind::slow;
  else if (kind == "error") rule.kind = Kind::error;
  else return false;
  for (size_t start = colon + 1; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    start = end + 1;
    const size_t sign = part.find('=');
    if (sign == std::string::npos || sign + 1 == part.size()) return false;
    const std::string name = part.substr(0, sign), value = part.substr(sign + 1);
    if (name == "call") {
      rule.call = value;
      continue;
    }
    char* rest = nullptr;
    const unsigned long number = strtoul(value.c_str(), &rest, 10);
    if (*rest != '\0' || value[0] == '-' || number > 1000000000) return false;
    if (name == "rank") rule.rank = static_cast<int>(number);
    else if (name == "after") rule.after = number;
    else if (name == "ms") rule.milliseconds = number;
    else if (name == "code") rule.code = static_cast<int>(number);
    else return false;
  }
  return rule.rank >= 0 && !rule.call.empty();
}

class Rules {
 public:
  // Null or an empty text for none. False, and nothing changed, when it cannot be read.
  bool set(const char* text) {
    std::vector<Rule> read;
    const std::string all = text == nullptr ? "" : text;
    for (size_t start = 0; start < all.size();) {
      const size_t end = std::min(all.find(';', start), all.size());
      Rule rule;
      if (end != start && !readRule(all.substr(start, end - start), rule)) return false;
      if (end != start) read.push_back(std::move(rule));
      start = end + 1;
    }
    std::lock_guard lock(mutex_);
    rules_ = std::move(read);
    isSet_ = !rules_.empty();
    return true;
  }

  bool isSet() const { return isSet_.load(std::memory_order_relaxed); }

  // What every call of a rank comes by; does not return where the rank is to die or to hang.
  void arrive(const char* function, int rank, int device) {
    if (!isSet()) return;
    std::vector<Rule> due;
    {
      std::lock_guard lock(mutex_);
      for (Rule& rule : rules_) {
        if (rule.concerns(function, rank) && rule.calls++ >= rule.after) due.push_back(rule);
      }
    }
    for (const Rule& rule : due) {
      const timespec nap = {static_cast<time_t>(rule.milliseconds / 1000), static_cast<long>(rule.milliseconds % 1000 * 1000000)};
      switch (rule.kind) {
        case Kind::die:
          kill(getpid(), SIGKILL);
          [[fallthrough]];  // until the signal has come
        case Kind::hang:
          for (;;) pause();
        case Kind::slow:
          nanosleep(&nap, nullptr);
          break;
        case Kind::error:
          shoalSimInjectError(device, rule.code);
          break;
      }
    }
  }

 private:
  std::atomic<bool> isSet_{false};
  std::mutex mutex_;
  std::vector<Rule> rules_;
};

// Those of the library that asks; from the environment at first.
inline Rules& rules() {
  static Rules* own = [] {
    auto* made = new Rules;
    const char* text = getenv("SHOAL_SIM_FAULT");
    if (!made->set(text)) fprintf(stderr, "shoal: SHOAL_SIM_FAULT=%s cannot be read; there is no fault\n", text);
    return made;
  }();
  return *own;
}

inline void arrive(const char* function, int rank, int device) { rules().arrive(function, rank, device); }

}  // namespace shoal::fault
