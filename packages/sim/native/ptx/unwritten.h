// With SHOAL_SIM_CHECK=1, device memory starts with a pattern, so that the checker detects reads of unwritten memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace shoal::ptx {

constexpr uint64_t kUnwritten = 0xfff7a5c3e19b4d27u;

inline bool isChecking() {
  static const bool is = [] {
    const char* text = getenv("SHOAL_SIM_CHECK");
    return text != nullptr && *text == '1';
  }();
  return is;
}

// Does nothing if the checker is off. Skips memory above 256 MiB, because writing the pattern would make all of it
// resident.
inline void markUnwritten(uint64_t base, uint64_t bytes) {
  if (!isChecking() || bytes > uint64_t{256} << 20) return;
  auto* words = reinterpret_cast<uint64_t*>(base);
  // Allocations are padded to whole words, and the checker reads whole words at their end.
  std::fill(words, words + (bytes + 7) / 8, kUnwritten);
}

}  // namespace shoal::ptx
