// Faults on demand, as SHOAL_SIM_FAULT describes them: what was asked for, and which of it happens now.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace shoal {

// What one library understands.
struct FaultRules {
  const char* prefix;                      // of its functions: a fault at one of another library is not looked at
  bool takesAny;                           // whether faults without a function, or at *, are this library's
  bool (*knows)(const std::string& call);  // whether there are faults at a function, or at those that begin so
  bool (*isCode)(uint64_t code);
  int code;        // of an error without code=
  uint64_t ranks;  // the most there are
  uint64_t times;  // how often a fault without times= happens; 0: each time
};

// Whether `call` is a function's name, or its beginning and *.
bool isCallOf(const std::string& call, const char* function);
bool readNumber(const std::string& text, uint64_t& number);

class Faults {
 public:
  // What happens at a call. Dying is not among it.
  struct Injected {
    uint64_t milliseconds = 0;
    bool hangs = false;
    int code = 0;  // 0: no error
  };

  explicit Faults(const FaultRules& rules) : rules_(rules) {}

  // Those of SHOAL_SIM_FAULT. What it returns is why there are none, empty where nothing is wrong.
  std::string readEnvironment();
  // Replaces them; null: none. Where something is not understood nothing changes, and `wrong` is that part.
  bool replace(const char* text, std::string& wrong);
  bool isAny() const { return isAny_; }
  // Kills the process when that is what was asked for.
  Injected next(const char* function, int rank);

 private:
  enum class Action { die, hang, slow, error };
  struct Fault {
    Action action = Action::die;
    int rank = -1;       // -1: any
    std::string call;    // empty: any
    uint64_t after = 0;  // how often it comes by before
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
