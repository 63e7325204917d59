// The memory of one device: one address range, reserved once and handed out in blocks. The arena also counts the memory
// in use, including memory outside the range. The range is a shared file, so that other processes can map allocations
// of cuMemAlloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "backing.h"
#include "sharedfile.h"

namespace shoal {

class Arena {
 public:
  explicit Arena(size_t capacity) : capacity_(capacity) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns 0 if the device is out of memory. The block's size is rounded up to the granule.
  uint64_t allocate(size_t bytes);
  void release(uint64_t address, size_t bytes);

  // Counts memory outside the range. Returns false if the device has too little memory left.
  bool count(size_t bytes);
  void discount(size_t bytes);

  // The offset of an address in the arena's file. Only for addresses that the arena handed out.
  const std::shared_ptr<SharedFile>& file() const { return file_; }
  size_t offsetOf(uint64_t address) const { return address - base_; }

  size_t capacity() const { return capacity_; }
  size_t used() const;

 private:
  static constexpr size_t kGranule = 512;
  static constexpr size_t kHugePage = size_t{2} << 20;
  static size_t rounded(size_t bytes) { return (bytes + kGranule - 1) & ~(kGranule - 1); }
  bool reserve();

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::shared_ptr<SharedFile> file_;
  uint64_t base_ = 0;
  size_t used_ = 0;
  std::map<uint64_t, size_t> free_;  // address → length; adjacent blocks are merged
};

// A block of an arena. It returns to the arena when nothing uses it any more.
class ArenaBlock : public Backing {
 public:
  ArenaBlock(Arena& arena, uint64_t base, size_t size, bool isShareable)
      : arena_(arena), base_(base), size_(size), isShareable_(isShareable) {}
  ~ArenaBlock() override { arena_.release(base_, size_); }
  bool isLegacyIpcCapable() const override { return isShareable_; }

 private:
  Arena& arena_;
  const uint64_t base_;
  const size_t size_;
  const bool isShareable_;
};

}  // namespace shoal
