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

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

uint64_t pageSize() {
  static const uint64_t size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

bool canPopulate() {
  static const bool can = [] {
    int word = 0;
    const auto page = reinterpret_cast<uint64_t>(&word) & ~(pageSize() - 1);
    return madvise(reinterpret_cast<void*>(page), pageSize(), MADV_POPULATE_READ) == 0;
  }();
  return can;
}

// The kernel checks the range, so that a wrong host address is an error and not a crash. madvise() touches the pages
// instead of this process.
bool isTouchable(uint64_t address, size_t length, Access access) {
  uint64_t at = address & ~(pageSize() - 1);
  const uint64_t end = address + length;
  if (canPopulate()) {
    const size_t whole = (end - at + pageSize() - 1) & ~(pageSize() - 1);
    return madvise(reinterpret_cast<void*>(at), whole,
                   access == Access::read ? MADV_POPULATE_READ : MADV_POPULATE_WRITE) == 0;
  }
  // Older kernels can only report which pages are mapped.
  unsigned char resident[4096];
  while (at < end) {
    const uint64_t pages = std::min<uint64_t>((end - at + pageSize() - 1) / pageSize(), sizeof resident);
    if (mincore(reinterpret_cast<void*>(at), pages * pageSize(), resident) != 0) return false;
    at += pages * pageSize();
  }
  return true;
}

}  // namespace

Allocation::Allocation(Description description)
    : kind(description.kind),
      base(description.base),
      size(description.size),
      place(description.place),
      context(std::move(description.context)),
      device(description.device),
      flags(description.flags),
      backing(std::move(description.backing)),
      id(description.id != 0 ? description.id : nextAllocationId.fetch_add(1)),
      syncMemoryOperations(place != Place::host) {}

bool Allocation::allows(Context& user, Access access, bool isCopy) const {
  if (backing != nullptr) {
    if (!backing->isUsable() || (access == Access::read && !backing->isReadable())) return false;
    if (isCopy && !backing->isStrict()) return true;
    if (const auto rights = backing->rightsOf(user.device.ordinal)) {
      const unsigned needed =
          access == Access::read ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      return (*rights & needed) == needed;
    }
  }
  if (isCopy || (kind != MemoryKind::device && kind != MemoryKind::imported) || device == &user.device ||
      context.get() == &user)
    return true;
  std::lock_guard lock(user.settingsMutex);
  return user.peers.count(context.get()) != 0;
}

std::vector<std::shared_ptr<Allocation>> AllocationTable::all() const {
  std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<Allocation>> list;
  for (auto& entry : byBase_) list.push_back(entry.second);
  return list;
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

void LeavingAllocations::add(std::shared_ptr<Allocation> allocation) {
  std::unique_lock lock(mutex_);
  list_.push_back(std::move(allocation));
}

void LeavingAllocations::remove(const Allocation* allocation) {
  std::shared_ptr<Allocation> gone;  // destroyed after the lock is released
  std::unique_lock lock(mutex_);
  auto found = std::find_if(list_.begin(), list_.end(), [&](auto& each) { return each.get() == allocation; });
  if (found == list_.end()) return;
  gone = std::move(*found);
  list_.erase(found);
  lock.unlock();
}

std::shared_ptr<Allocation> LeavingAllocations::covering(uint64_t address, size_t length) const {
  std::shared_lock lock(mutex_);
  for (auto& each : list_) {
    if (address >= each->base && address - each->base < each->size && each->holds(address, length)) return each;
  }
  return nullptr;
}

void AddressTable::add(uint64_t base, size_t size) {
  std::unique_lock lock(mutex_);
  ranges_[base] = size;
}

void AddressTable::remove(uint64_t base) {
  std::unique_lock lock(mutex_);
  ranges_.erase(base);
}

bool AddressTable::overlaps(uint64_t address, size_t size) const {
  std::shared_lock lock(mutex_);
  auto after = ranges_.lower_bound(address);
  if (after != ranges_.end() && after->first - address < size) return true;
  if (after == ranges_.begin()) return false;
  auto before = std::prev(after);
  return address - before->first < before->second;
}

namespace {

// Calls `accept` for each allocation of the range, in order. Only adjacent mappings form one range; any other
// allocation must contain the whole range.
template <class Accept>
bool forEachAllocation(uint64_t address, size_t length, Accept&& accept) {
  auto found = state().allocations.covering(address);
  for (uint64_t at = address;;) {
    if (!found || !accept(found)) return false;
    if (found->holds(at, length)) return true;
    if (found->kind != MemoryKind::mapped) return false;
    const uint64_t end = found->base + found->size;
    length -= end - at;
    at = end;
    found = state().allocations.startingAt(end);
    if (found && found->kind != MemoryKind::mapped) return false;
  }
}

}  // namespace

Held::~Held() {
  for (auto& each : mappings_) each->backing->uses()->leave();
}

CUresult Held::add(const MemoryRange& range) {
  if (range.allocation == nullptr || range.allocation->backing == nullptr ||
      range.allocation->backing->uses() == nullptr)
    return CUDA_SUCCESS;
  const bool isThere = forEachAllocation(reinterpret_cast<uint64_t>(range.data), range.length,
                                         [&](const std::shared_ptr<Allocation>& each) {
                                           if (each->kind != MemoryKind::mapped) return false;
                                           if (std::find(mappings_.begin(), mappings_.end(), each) == mappings_.end()) {
                                             // Increment the count before checking the rights. A thread that unmaps
                                             // memory removes the rights first and then waits for the count.
                                             each->backing->uses()->enter();
                                             mappings_.push_back(each);
                                           }
                                           return each->allows(*range.user, range.access, range.isCopy);
                                         });
  return isThere ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

CUresult Held::wrote(const MemoryRange& range, size_t offset, size_t length) const {
  bool isDone = true;
  const uint64_t start = reinterpret_cast<uint64_t>(range.data) + offset;
  for (auto& each : mappings_) {
    const uint64_t from = std::max(start, each->base),
                   until = std::min<uint64_t>(start + length, each->base + each->size);
    if (from < until) isDone = each->backing->wrote(from, until - from) && isDone;
  }
  return isDone ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

CUresult checkKnownRange(const Use& use, CUdeviceptr address, size_t length, MemoryRange& range) {
  range = {reinterpret_cast<char*>(address), length, nullptr, &use.context, use.access, use.isCopy};
  const bool isAllowed = forEachAllocation(address, length, [&](const std::shared_ptr<Allocation>& each) {
    if (range.allocation == nullptr) range.allocation = each;
    return each->allows(use.context, use.access, use.isCopy);
  });
  return isAllowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool isPlainHostMemory(uint64_t address, size_t length, Access access) {
  if (address == 0 || address + length < address) return false;
  // Pageable memory must not overlap device memory. An overlap usually means that the length is wrong.
  return !state().addresses.overlaps(address, length) && !state().allocations.overlaps(address, length) &&
         isTouchable(address, length, access);
}

CUresult checkRange(const Use& use, uint64_t address, size_t length, MemoryRange& range) {
  if (state().allocations.covering(address)) return checkKnownRange(use, address, length, range);
  if (!isPlainHostMemory(address, length, use.access)) return CUDA_ERROR_INVALID_VALUE;
  range = {reinterpret_cast<char*>(address), length, nullptr, &use.context, use.access, use.isCopy};
  return CUDA_SUCCESS;
}

}  // namespace shoal
