// Finds constants by their names in the header, which the build lists in names.inc.
#include <cstring>

#include "reference.h"

int codeOf(const char* what, const std::string& name) {
  static const struct {
    const char* what;
    const char* name;
    int code;
  } names[] = {
#include "names.inc"
  };
  for (const auto& one : names)
    if (strcmp(one.what, what) == 0 && name == one.name) return one.code;
  throw std::runtime_error(std::string("the header has no ") + what + " " + name);
}
