// Waits on a word of memory, which processes may share.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace shoal {

// Returns when the word differs from `seen`, after a wake-up, or on timeout. Callers check their condition in every
// case.
inline void futexWait(std::atomic<uint32_t>& word, uint32_t seen, long nanoseconds) {
  const timespec limit = {0, nanoseconds};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, seen, &limit, nullptr, 0);
}

inline void futexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

inline uint64_t nanosecondsNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace shoal
