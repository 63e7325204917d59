// What the library says on the standard error stream, and how it ends a process: NVSHMEM has no other way to tell.
#pragma once

namespace shoal::nvshmem {

void report(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Says why and ends the process with status 255, as NVSHMEM does; no exit handler runs.
[[noreturn]] void leave(const char* format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void leaveUninitialised(const char* function);

}  // namespace shoal::nvshmem
