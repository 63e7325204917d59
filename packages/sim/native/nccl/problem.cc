#include "problem.h"

#include <cstdio>
#include <cstring>
#include <mutex>

namespace shoal::nccl {

namespace {
// One text per process, as in NCCL. It never moves, because callers keep the pointer.
char text[1024];
std::mutex& guard() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}
}  // namespace

ncclResult_t problem(ncclResult_t result, const char* format, ...) {
  char written[sizeof text];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(written, sizeof written, format, arguments);
  va_end(arguments);
  std::lock_guard lock(guard());
  memcpy(text, written, strlen(written) + 1);
  return result;
}

const char* lastProblem() { return text; }

ncclResult_t cudaProblem(CUresult status, const char* call) {
  const char* name = nullptr;
  cuGetErrorName(status, &name);
  return problem(ncclUnhandledCudaError, "%s failed: %s (%d)", call, name == nullptr ? "unknown" : name,
                 static_cast<int>(status));
}

}  // namespace shoal::nccl
