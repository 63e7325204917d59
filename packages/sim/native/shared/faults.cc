#include "faults.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace shoal {

namespace {

std::vector<std::string> cut(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (size_t start = 0; (start = text.find_first_not_of(separators, start)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(separators, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end;
  }
  return parts;
}

struct Setting {
  std::string name, value;
  bool isCall() const { return name == "call" || name == "at"; }
};

bool beginsWith(const std::string& text, const char* prefix) { return text.compare(0, strlen(prefix), prefix) == 0; }

bool readSetting(const std::string& word, Setting& setting) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return false;
  setting = {word.substr(0, equals), word.substr(equals + 1)};
  return true;
}

}  // namespace

bool isCallOf(const std::string& call, const char* function) {
  if (call.empty() || call.back() != '*') return call == function;
  return strncmp(function, call.c_str(), call.size() - 1) == 0;
}

bool readNumber(const std::string& text, uint64_t& number) {
  char* end = nullptr;
  number = strtoull(text.c_str(), &end, 10);
  // strtoull would accept a sign or spaces before the digits. In ASCII both are below '0', so the first check refuses
  // them. strtoull stops at any other character.
  return text[0] >= '0' && *end == '\0';
}

bool Faults::isOwn(const std::vector<std::string>& words) const {
  bool isAnywhere = true;
  for (const std::string& word : words) {
    Setting setting;
    if (!readSetting(word, setting) || !setting.isCall()) continue;
    if (beginsWith(setting.value, rules_.prefix)) return true;
    isAnywhere = isAnywhere && (setting.value.empty() || setting.value == "*");
  }
  return isAnywhere && rules_.takesAny;
}

bool Faults::parse(const std::vector<std::string>& words, Fault& fault, std::string& wrong) const {
  constexpr const char* actions[] = {"die", "hang", "slow", "error"};
  const auto action = std::find(std::begin(actions), std::end(actions), wrong = words[0]);
  if (action == std::end(actions)) return false;
  fault.action = static_cast<Action>(action - actions);
  fault.times = rules_.times;
  fault.code = rules_.code;
  std::string unknownCode;
  for (size_t index = 1; index < words.size(); ++index) {
    wrong = words[index];
    Setting setting;
    if (!readSetting(wrong, setting)) return false;
    if (setting.isCall()) {
      if (!setting.value.empty() && !rules_.knows(setting.value)) return false;
      fault.call = setting.value;
      continue;
    }
    uint64_t number = 0;
    if (!readNumber(setting.value, number)) return false;
    if (setting.name == "rank" && number < rules_.ranks) fault.rank = static_cast<int>(number);
    else if (setting.name == "after") fault.after = number;
    else if (setting.name == "times") fault.times = number;
    else if (setting.name == "ms") fault.milliseconds = number;
    else if (setting.name == "code" && rules_.isCode(number)) fault.code = static_cast<int>(number);
    else if (setting.name == "code") unknownCode = wrong;
    else return false;
  }
  wrong = unknownCode;
  // Without a function name, the code may be meant for another library.
  return unknownCode.empty() || !beginsWith(fault.call, rules_.prefix);
}

bool Faults::replace(const char* text, std::string& wrong) {
  std::vector<Fault> made;
  for (const std::string& each : cut(text == nullptr ? "" : text, ";")) {
    const auto words = cut(each, " ,:");
    if (words.empty() || !isOwn(words)) continue;
    Fault fault;
    if (!parse(words, fault, wrong)) return false;
    made.push_back(std::move(fault));
  }
  std::lock_guard lock(mutex_);
  all_ = std::move(made);
  isAny_ = !all_.empty();
  return true;
}

std::string Faults::readEnvironment() {
  const char* text = getenv("SHOAL_SIM_FAULT");
  std::string wrong;
  if (text == nullptr || replace(text, wrong)) return "";
  return std::string("SHOAL_SIM_FAULT=") + text + ": \"" + wrong + "\" is not understood; there will be no faults";
}

Faults::Injected Faults::next(const char* function, int rank) {
  Injected injected;
  std::lock_guard lock(mutex_);
  for (Fault& fault : all_) {
    if ((fault.rank >= 0 && fault.rank != rank) || !(fault.call.empty() || isCallOf(fault.call, function))) continue;
    const uint64_t before = fault.passed++;
    if (before < fault.after || (fault.times != 0 && before - fault.after >= fault.times)) continue;
    switch (fault.action) {
      case Action::die: kill(getpid(), SIGKILL); break;
      case Action::hang: injected.hangs = true; break;
      case Action::slow: injected.milliseconds += fault.milliseconds; break;
      case Action::error: injected.code = fault.code; break;
    }
  }
  return injected;
}

}  // namespace shoal
