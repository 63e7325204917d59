// Registered ranges of local memory. They never overlap.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace shoal::nvshmem {

class Registered {
 public:
  // Returns false if the range overlaps another.
  bool add(uint64_t start, uint64_t end) {
    std::lock_guard lock(mutex_);
    auto after = ends_.upper_bound(start);
    if (after != ends_.end() && after->first < end) return false;
    if (after != ends_.begin() && std::prev(after)->second > start) return false;
    ends_[start] = end;
    return true;
  }
  // Returns false if no registered range starts there.
  bool remove(uint64_t start) {
    std::lock_guard lock(mutex_);
    return ends_.erase(start) != 0;
  }
  void clear() {
    std::lock_guard lock(mutex_);
    ends_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> ends_;  // by start address
};

}  // namespace shoal::nvshmem
