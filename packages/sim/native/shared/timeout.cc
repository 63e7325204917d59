#include "timeout.h"

#include <cstdlib>
#include <string>

namespace shoal {

namespace {

constexpr double kSeconds = 60;

double readSeconds(void (*report)(const char*)) {
  const char* text = getenv("SHOAL_SIM_TIMEOUT_SECONDS");
  if (text == nullptr || *text == '\0') return kSeconds;
  char* end = nullptr;
  const double seconds = strtod(text, &end);
  if (*end == '\0' && seconds >= 0 && seconds <= 1e9) return seconds;
  report((std::string("SHOAL_SIM_TIMEOUT_SECONDS=") + text + " is not a number of seconds; 60 is used").c_str());
  return kSeconds;
}

}  // namespace

uint64_t timeoutNanoseconds(void (*report)(const char*)) {
  static const auto value = static_cast<uint64_t>(readSeconds(report) * 1e9);
  return value;
}

}  // namespace shoal
