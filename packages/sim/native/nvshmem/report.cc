#include "report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace shoal::nvshmem {

namespace {

// A single write, so that the lines of several PEs do not mix.
void say(const char* format, va_list arguments) {
  char text[1024];
  int length = snprintf(text, sizeof text - 1, "NVSHMEM on the software device: ");
  length += vsnprintf(text + length, sizeof text - 1 - static_cast<size_t>(length), format, arguments);
  length = std::min(length, static_cast<int>(sizeof text) - 2);
  text[length] = '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, static_cast<size_t>(length) + 1);
}

}  // namespace

void report(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(format, arguments);
  va_end(arguments);
}

void leave(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(format, arguments);
  va_end(arguments);
  _exit(255);
}

void leaveUninitialised(const char* function) {
  leave("%s: NVSHMEM API called before NVSHMEM initialization has completed", function);
}

}  // namespace shoal::nvshmem
