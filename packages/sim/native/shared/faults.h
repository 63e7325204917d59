// Fault injection, in the syntax of SHOAL_SIM_FAULT: the requested faults, and which of them happens at a call.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace shoal {

// The faults that one library accepts.
struct FaultRules {
  const char* prefix;  // of its functions; faults at functions of other libraries are skipped
  bool takesAny;       // true if faults without a function, or at *, belong to this library
  // true if faults are supported at this function, or at functions with this prefix
  bool (*knows)(const std::string& call);
  bool (*isCode)(uint64_t code);
  int code;        // default for errors without code=
  uint64_t ranks;  // maximum number of ranks
  uint64_t times;  // default for faults without times=; 0: at every call
};

// True if `call` is the function's name, or a prefix of the name and *.
bool isCallOf(const std::string& call, const char* function);
bool readNumber(const std::string& text, uint64_t& number);

class Faults {
 public:
  // The effects of a fault at a call, except a kill.
  struct Injected {
    uint64_t milliseconds = 0;
    bool hangs = false;
    int code = 0;  // 0: no error
  };

  explicit Faults(const FaultRules& rules) : rules_(rules) {}

  // Reads SHOAL_SIM_FAULT. Returns the reason if it is invalid, and an empty text otherwise.
  std::string readEnvironment();
  // Replaces all faults; null removes them. If a part is invalid, nothing changes and `wrong` is that part.
  bool replace(const char* text, std::string& wrong);
  bool isAny() const { return isAny_; }
  // Returns the fault for this call. Kills the process if that was requested.
  Injected next(const char* function, int rank);

 private:
  enum class Action { die, hang, slow, error };
  struct Fault {
    Action action = Action::die;
    int rank = -1;       // -1: any rank
    std::string call;    // empty: any function
    uint64_t after = 0;  // number of calls to skip first
    uint64_t times = 0;
    uint64_t milliseconds = 1000;
    int code = 0;
    uint64_t passed = 0;
  };

  bool isOwn(const std::vector<std::string>& words) const;
  bool parse(const std::vector<std::string>& words, Fault& fault, std::string& wrong) const;

  const FaultRules& rules_;
  std::mutex mutex_;
  std::vector<Fault> all_;
  std::atomic<bool> isAny_{false};
};

}  // namespace shoal
