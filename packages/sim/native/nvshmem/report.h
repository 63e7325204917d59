// Messages on standard error, and ending the process. NVSHMEM has no other way to report most errors.
#pragma once

#include <new>
#include <system_error>

#include "shoal/nvshmem.h"

namespace shoal::nvshmem {

void report(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Prints the reason and ends the process with status 255, as NVSHMEM does. Exit handlers do not run.
[[noreturn]] void leave(const char* format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void leaveUninitialised(const char* function);

// For functions with a status: no exception leaves the library.
template <class Body>
int withStatus(const char* function, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    report("%s: out of host memory", function);
    return NVSHMEMX_ERROR_OUT_OF_MEMORY;
  } catch (const std::system_error& error) {
    report("%s: %s", function, error.what());
    return NVSHMEMX_ERROR_INTERNAL;
  }
}

}  // namespace shoal::nvshmem
