#include "heap.h"

#include <unistd.h>

#include <algorithm>

#include "report.h"

namespace shoal::nvshmem {

namespace {

constexpr uint64_t kGranularity = uint64_t{2} << 20;
constexpr uint64_t kGrowth = uint64_t{64} << 20;
constexpr uint64_t kAlignment = 512;

enum Kind : uint32_t { allocation = 100, release, mapping, addition, removal };

constexpr uint64_t rounded(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

bool areEqual(const std::vector<Description>& all) {
  for (const Description& each : all) {
    if (each.kind != all[0].kind || each.count != all[0].count || each.value != all[0].value) return false;
  }
  return true;
}

bool allAre(const std::vector<Description>& all, uint64_t value) {
  return std::all_of(all.begin(), all.end(), [value](auto& each) { return each.value == value; });
}

}  // namespace

bool Heap::open(uint64_t limit, uint64_t step, std::string& problem) {
  limit_ = rounded(limit, kGranularity);
  step_ = rounded(step, kGranularity);
  bases_.assign(static_cast<size_t>(job_.size), 0);
  for (CUdeviceptr& base : bases_) {
    // The second half of the range is for user memory that is added to the heap.
    if (cuMemAddressReserve(&base, 2 * limit_, 0, 0, 0) != CUDA_SUCCESS) {
      problem = "no addresses for the symmetric heap";
      return false;
    }
  }
  return true;
}

Heap::~Heap() {
  for (const CUdeviceptr base : bases_) {
    if (base == 0) continue;
    for (auto& [offset, part] : parts_) cuMemUnmap(base + offset, part.size);
    cuMemAddressFree(base, 2 * limit_);
  }
}

bool Heap::mapAt(int pe, uint64_t offset, uint64_t size, CUmemGenericAllocationHandle handle) {
  const CUdeviceptr address = bases_[static_cast<size_t>(pe)] + offset;
  if (cuMemMap(address, size, 0, handle, 0) != CUDA_SUCCESS) return false;
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (cuMemSetAccess(address, size, &access, 1) == CUDA_SUCCESS) return true;
  cuMemUnmap(address, size);
  return false;
}

bool Heap::share(CUmemGenericAllocationHandle own, bool isOwnMade, uint64_t offset, uint64_t size, const char* what) {
  const Group all = job_.everybody(kManagementSlot);
  int descriptor = -1;
  if (isOwnMade &&
      cuMemExportToShareableHandle(&descriptor, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
    isOwnMade = false;
  const uint64_t key = isOwnMade ? job_.exchange.offer(descriptor) : 0;
  std::vector<Description> told;
  bool isFine = job_.tell(all, what, Description{mapping, 0, 0, 0, size, 0, key, isOwnMade}, told) && allAre(told, 1);
  if (isFine) {
    int mapped = 0;
    for (; mapped < job_.size && isFine; ++mapped) {
      CUmemGenericAllocationHandle handle = own;
      if (mapped != job_.pe) {
        const int theirs = Exchange::fetch(job_.control->pe(mapped).exchange, told[static_cast<size_t>(mapped)].source);
        isFine = theirs >= 0 &&
                 cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(theirs)),
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS;
        if (theirs >= 0) close(theirs);
      }
      if (!isFine) break;
      isFine = mapAt(mapped, offset, size, handle);
      if (mapped != job_.pe) cuMemRelease(handle);
      if (!isFine) break;
    }
    std::vector<Description> done;
    const bool isFineHere = isFine;
    isFine = job_.tell(all, what, Description{mapping, 0, 0, 0, size, 0, 0, isFineHere}, done) && allAre(done, 1);
    if (!isFine) {
      for (int pe = 0; pe < mapped; ++pe) cuMemUnmap(bases_[static_cast<size_t>(pe)] + offset, size);
    }
  }
  if (key != 0) job_.exchange.withdraw(key);
  if (descriptor >= 0) close(descriptor);
  return isFine;
}

bool Heap::grow(uint64_t bytes) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  const bool isMade = grown_ + bytes <= limit_ && cuMemCreate(&handle, bytes, &properties, 0) == CUDA_SUCCESS;
  const bool isShared = share(handle, isMade, grown_, bytes, "an allocation");
  if (isMade) cuMemRelease(handle);
  if (!isShared) return false;
  std::lock_guard lock(mutex_);
  parts_[grown_] = Part{bytes, false};
  addFree(grown_, bytes);
  grown_ += bytes;
  return true;
}

uint64_t Heap::take(uint64_t size, uint64_t alignment) {
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    const uint64_t start = rounded(block->first, alignment), skipped = start - block->first;
    if (block->second < skipped || block->second - skipped < size) continue;
    const uint64_t rest = block->second - skipped - size;
    if (skipped == 0) free_.erase(block);
    else block->second = skipped;
    if (rest != 0) free_[start + size] = rest;
    taken_[start] = size;
    return start;
  }
  return kNoOffset;
}

void Heap::addFree(uint64_t offset, uint64_t size) {
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && offset + size == after->first) {
    size += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

void* Heap::allocate(const char* function, size_t size, size_t alignment) {
  std::vector<Description> all;
  if (!job_.tell(job_.everybody(kManagementSlot), function, Description{allocation, 0, 0, 0, size, 0, 0, alignment},
                 all))
    return nullptr;
  if (!areEqual(all)) {
    report("%s: the PEs ask for different things; PE %d for %zu bytes", function, job_.pe, size);
    return nullptr;
  }
  // All PEs run the same steps from here on, so all find the same offset.
  const uint64_t need = rounded(std::max<uint64_t>(size, 1), kAlignment);
  if (size == 0 || need < size || need > limit_) return nullptr;
  const uint64_t aligned = std::max<uint64_t>(alignment, kAlignment);
  for (int attempt = 0; attempt < 3; ++attempt) {
    {
      std::lock_guard lock(mutex_);
      const uint64_t offset = take(need, aligned);
      if (offset != kNoOffset) return at(job_.pe, offset);
    }
    const uint64_t least = rounded(need + (aligned > kGranularity ? aligned : 0), std::max(step_, kGranularity));
    if (attempt == 0 && step_ == 0 && least < kGrowth && grow(kGrowth)) continue;
    if (job_.control->failure() != nullptr || !grow(least)) return nullptr;
  }
  return nullptr;
}

void Heap::free(void* pointer) {
  const uint64_t offset = reservedOffsetOf(pointer);
  std::vector<Description> all;
  if (!job_.tell(job_.everybody(kManagementSlot), "nvshmem_free", Description{release, 0, 0, 0, offset, 0, 0, 0}, all))
    return;
  if (!areEqual(all)) return report("nvshmem_free: the PEs free different memory; nothing is freed");
  std::lock_guard lock(mutex_);
  auto found = taken_.find(offset);
  if (found == taken_.end()) leave("nvshmem_free: %p was not allocated", pointer);
  addFree(offset, found->second);
  taken_.erase(found);
}

void* Heap::add(void* own, size_t size) {
  std::vector<Description> all;
  if (!job_.tell(job_.everybody(kManagementSlot), "nvshmemx_buffer_register_symmetric",
                 Description{addition, 0, 0, 0, size, 0, 0, 0}, all))
    return nullptr;
  if (!areEqual(all)) {
    report("nvshmemx_buffer_register_symmetric: the PEs ask for different sizes; PE %d for %zu bytes", job_.pe, size);
    return nullptr;
  }
  if (size == 0 || size % kGranularity != 0 || size > limit_) return nullptr;
  uint64_t offset = limit_;
  {
    std::lock_guard lock(mutex_);
    for (auto& [start, part] : parts_) {
      if (start < limit_) continue;
      if (start - offset >= size) break;
      offset = start + part.size;
    }
  }
  if (offset + size > 2 * limit_) return nullptr;
  CUmemGenericAllocationHandle handle = 0;
  const bool isMapped = cuMemRetainAllocationHandle(&handle, own) == CUDA_SUCCESS;
  const bool isShared = share(handle, isMapped, offset, size, "nvshmemx_buffer_register_symmetric");
  if (isMapped) cuMemRelease(handle);
  if (!isShared) return nullptr;
  std::lock_guard lock(mutex_);
  parts_[offset] = Part{size, true};
  return at(job_.pe, offset);
}

int Heap::remove(void* added, size_t size) {
  const uint64_t offset = reservedOffsetOf(added);
  std::vector<Description> all;
  if (!job_.tell(job_.everybody(kManagementSlot), "nvshmemx_buffer_unregister_symmetric",
                 Description{removal, 0, 0, 0, offset, 0, 0, size}, all))
    return -1;
  if (!areEqual(all)) return -1;
  {
    std::lock_guard lock(mutex_);
    auto found = parts_.find(offset);
    if (found == parts_.end() || !found->second.isAdded || found->second.size != size) return -1;
    parts_.erase(found);
  }
  for (const CUdeviceptr base : bases_) cuMemUnmap(base + offset, size);
  return 0;
}

uint64_t Heap::reservedOffsetOf(const void* address) const {
  const auto number = reinterpret_cast<CUdeviceptr>(address);
  const CUdeviceptr base = bases_[static_cast<size_t>(job_.pe)];
  return number >= base && number - base < 2 * limit_ ? number - base : kNoOffset;
}

bool Heap::findPart(const void* address, uint64_t& offset, uint64_t& start, uint64_t& size) const {
  offset = reservedOffsetOf(address);
  std::lock_guard lock(mutex_);
  auto after = parts_.upper_bound(offset);
  if (offset == kNoOffset || after == parts_.begin()) return false;
  auto part = std::prev(after);
  start = part->first;
  size = part->second.size;
  return offset - start < size;
}

bool Heap::isMapped(uint64_t offset, size_t bytes) const {
  std::lock_guard lock(mutex_);
  auto after = parts_.upper_bound(offset);
  if (after == parts_.begin()) return false;
  auto part = std::prev(after);
  // The grown part of the heap is contiguous.
  if (!part->second.isAdded) return offset <= grown_ && bytes <= grown_ - offset;
  const uint64_t skipped = offset - part->first;
  return skipped <= part->second.size && bytes <= part->second.size - skipped;
}

uint64_t Heap::offsetOf(const void* address, size_t bytes) const {
  const uint64_t offset = reservedOffsetOf(address);
  return offset != kNoOffset && isMapped(offset, bytes) ? offset : kNoOffset;
}

}  // namespace shoal::nvshmem
