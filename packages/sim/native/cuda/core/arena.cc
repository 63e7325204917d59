#include "arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "addresses.h"

namespace shoal {

// Reserves more addresses than the device has memory. A fragmented device can then still serve every allocation that
// its capacity allows.
bool Arena::reserve() {
  if (base_ != 0) return true;
  const size_t length = (capacity_ * 2 + kHugePage - 1) & ~(kHugePage - 1);
  file_ = SharedFile::create(Content::arena, length, "", 0);
  const uint64_t start = reserveAddresses(length, kHugePage, 0);
  if (start == 0) return false;
  file_->map(0, length, PROT_READ | PROT_WRITE, reinterpret_cast<void*>(start));
  // A fork child does not inherit the range: it cannot use CUDA, and its copy would only keep the memory alive.
  madvise(reinterpret_cast<void*>(start), length, MADV_DONTFORK);
  base_ = start;
  free_[base_] = length;
  return true;
}

bool Arena::count(size_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > capacity_ || used_ > capacity_ - bytes) return false;
  used_ += bytes;
  return true;
}

void Arena::discount(size_t bytes) {
  std::lock_guard lock(mutex_);
  used_ -= bytes;
}

uint64_t Arena::allocate(size_t bytes) {
  if (bytes == 0 || bytes > capacity_) return 0;
  const size_t need = rounded(bytes);
  std::lock_guard lock(mutex_);
  if (used_ + need > std::max(capacity_, rounded(capacity_)) || !reserve()) return 0;
  const uint64_t alignment = need >= kHugePage ? kHugePage : kGranule;
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    const uint64_t start = (block->first + alignment - 1) & ~(alignment - 1);
    const uint64_t skipped = start - block->first;
    if (block->second < skipped + need) continue;
    const uint64_t rest = block->second - skipped - need;
    if (skipped == 0) free_.erase(block);
    else block->second = skipped;
    if (rest != 0) free_[start + need] = rest;
    used_ += need;
    // Huge pages cause fewer page faults when a large block is first touched.
    if (need >= kHugePage) madvise(reinterpret_cast<void*>(start), need / kHugePage * kHugePage, MADV_HUGEPAGE);
    return start;
  }
  return 0;
}

void Arena::release(uint64_t address, size_t bytes) {
  const size_t length = rounded(bytes);
  // Large blocks go back to the system. Small blocks stay, because they are likely to be allocated again soon.
  if (length >= kHugePage) file_->discard(offsetOf(address), length);
  std::lock_guard lock(mutex_);
  used_ -= length;
  auto after = free_.lower_bound(address);
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += length;
      if (after != free_.end() && before->first + before->second == after->first) {
        before->second += after->second;
        free_.erase(after);
      }
      return;
    }
  }
  if (after != free_.end() && address + length == after->first) {
    const size_t merged = length + after->second;
    free_.erase(after);
    free_[address] = merged;
    return;
  }
  free_[address] = length;
}

size_t Arena::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace shoal
