// The memory of one device: a range of addresses taken from the system once and handed out in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace shoal {

class Arena {
 public:
  explicit Arena(size_t capacity) : capacity_(capacity) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns 0 when the device is out of memory. The block's size is rounded up to the granule.
  uint64_t allocate(size_t bytes);
  void release(uint64_t address, size_t bytes);

  size_t capacity() const { return capacity_; }
  size_t used() const;

 private:
  static constexpr size_t kGranule = 512;
  static constexpr size_t kHugePage = size_t{2} << 20;
  static size_t rounded(size_t bytes) { return (bytes + kGranule - 1) & ~(kGranule - 1); }
  bool reserve();

  const size_t capacity_;
  mutable std::mutex mutex_;
  uint64_t base_ = 0;
  size_t used_ = 0;
  std::map<uint64_t, size_t> free_;  // address to length, neighbours merged
};

}  // namespace shoal
