// The heap for malloc in kernels: a part of the device's memory, one per context.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "unwritten.h"

namespace shoal::ptx {

class Heap {
 public:
  Heap(uint64_t base, uint64_t bytes) { free_[base] = bytes; }
  // Returns 0 if the heap is full.
  uint64_t allocate(uint64_t bytes) {
    const uint64_t need = bytes == 0 ? 16 : (bytes + 15) / 16 * 16;
    if (need < bytes) return 0;
    std::lock_guard lock(mutex_);
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (at->second < need) continue;
      const uint64_t start = at->first, rest = at->second - need;
      free_.erase(at);
      if (rest != 0) free_[start + need] = rest;
      used_[start] = need;
      markUnwritten(start, need);
      return start;
    }
    return 0;
  }
  // Returns false if the address was not allocated here.
  bool release(uint64_t address) {
    std::lock_guard lock(mutex_);
    auto found = used_.find(address);
    if (found == used_.end()) return false;
    uint64_t start = found->first, bytes = found->second;
    used_.erase(found);
    auto after = free_.lower_bound(start);
    if (after != free_.end() && start + bytes == after->first) {
      bytes += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == start) {
        before->second += bytes;
        return true;
      }
    }
    free_[start] = bytes;
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_, used_;
};

}  // namespace shoal::ptx
