#include "allocation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "context.h"
#include "device.h"
#include "state.h"

namespace shoal {

namespace {

std::atomic<uint64_t> nextAllocationId{1};

// Asks the system page by page, so that a wrong host address is an error and not a crash.
bool isMapped(uint64_t address, size_t length) {
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (address + length < address) return false;
  uint64_t at = address & ~(page - 1);
  const uint64_t end = address + length;
  unsigned char resident[4096];
  while (at < end) {
    const uint64_t pages = std::min<uint64_t>((end - at + page - 1) / page, sizeof resident);
    if (mincore(reinterpret_cast<void*>(at), pages * page, resident) != 0) return false;
    at += pages * page;
  }
  return true;
}

}  // namespace

Allocation::Allocation(MemoryKind kind, uint64_t base, size_t size, std::shared_ptr<Context> context, unsigned flags)
    : kind(kind), base(base), size(size), context(std::move(context)), flags(flags), id(nextAllocationId.fetch_add(1)), syncMemoryOperations(!isHost()) {}

Allocation::~Allocation() {
  switch (kind) {
    case MemoryKind::device:
    case MemoryKind::managed: context->device.arena.release(base, size); break;
    case MemoryKind::pinned: munmap(reinterpret_cast<void*>(base), size); break;
    case MemoryKind::registered: break;
  }
}

bool AllocationTable::put(std::shared_ptr<Allocation> allocation) {
  std::unique_lock lock(mutex_);
  auto after = byBase_.lower_bound(allocation->base);
  if (after != byBase_.end() && after->first < allocation->base + allocation->size) return false;
  if (after != byBase_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second->size > allocation->base) return false;
  }
  const uint64_t base = allocation->base;
  byBase_[base] = std::move(allocation);
  return true;
}

std::shared_ptr<Allocation> AllocationTable::covering(uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto after = byBase_.upper_bound(address);
  if (after == byBase_.begin()) return nullptr;
  auto& allocation = std::prev(after)->second;
  return address < allocation->base + allocation->size ? allocation : nullptr;
}

std::shared_ptr<Allocation> AllocationTable::startingAt(uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto found = byBase_.find(address);
  return found == byBase_.end() ? nullptr : found->second;
}

bool AllocationTable::overlaps(uint64_t address, size_t size) const {
  std::shared_lock lock(mutex_);
  auto after = byBase_.lower_bound(address);
  if (after != byBase_.end() && after->first < address + size) return true;
  if (after == byBase_.begin()) return false;
  auto before = std::prev(after);
  return before->first + before->second->size > address;
}

bool AllocationTable::remove(const std::shared_ptr<Allocation>& allocation) {
  std::unique_lock lock(mutex_);
  auto found = byBase_.find(allocation->base);
  if (found == byBase_.end() || found->second != allocation) return false;
  byBase_.erase(found);
  return true;
}

std::vector<std::shared_ptr<Allocation>> AllocationTable::removeAllOf(const Context* context) {
  std::vector<std::shared_ptr<Allocation>> removed;
  std::unique_lock lock(mutex_);
  for (auto at = byBase_.begin(); at != byBase_.end();) {
    if (at->second->context.get() == context) {
      removed.push_back(std::move(at->second));
      at = byBase_.erase(at);
    } else {
      ++at;
    }
  }
  return removed;
}

CUresult checkDeviceRange(CUdeviceptr address, size_t length, MemoryRange& range) {
  auto allocation = state().allocations.covering(address);
  if (!allocation || length > allocation->size - (address - allocation->base)) return CUDA_ERROR_INVALID_VALUE;
  range.data = reinterpret_cast<char*>(address);
  range.allocation = std::move(allocation);
  return CUDA_SUCCESS;
}

CUresult checkAccessibleRange(Context& context, CUdeviceptr address, size_t length, MemoryRange& range) {
  if (const CUresult status = checkDeviceRange(address, length, range)) return status;
  const Allocation& allocation = *range.allocation;
  if (allocation.kind != MemoryKind::device || &allocation.context->device == &context.device) return CUDA_SUCCESS;
  std::lock_guard lock(context.settingsMutex);
  return context.peers.count(allocation.context.get()) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult checkRange(uint64_t address, size_t length, MemoryRange& range) {
  if (auto allocation = state().allocations.covering(address)) {
    if (length > allocation->size - (address - allocation->base)) return CUDA_ERROR_INVALID_VALUE;
    range.allocation = std::move(allocation);
  } else {
    if (address == 0 || !isMapped(address, length)) return CUDA_ERROR_INVALID_VALUE;
    // Pageable memory must not run into memory of the device: that would hide a count that is too large.
    if (state().allocations.overlaps(address, length)) return CUDA_ERROR_INVALID_VALUE;
  }
  range.data = reinterpret_cast<char*>(address);
  return CUDA_SUCCESS;
}

}  // namespace shoal
