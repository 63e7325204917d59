// Memory of the device begins with a pattern where SHOAL_SIM_CHECK=1, so that the checker can tell what nobody wrote.
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

// Does nothing where the checker is off, and for memory of more than 256 MiB, all of which it would make resident.
inline void markUnwritten(uint64_t base, uint64_t bytes) {
  if (!isChecking() || bytes > uint64_t{256} << 20) return;
  auto* words = reinterpret_cast<uint64_t*>(base);
  // Allocations have more than their last bytes, and whoever looks at these looks at a whole word.
  std::fill(words, words + (bytes + 7) / 8, kUnwritten);
}

}  // namespace shoal::ptx
