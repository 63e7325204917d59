// Managed memory after its allocation. The software device keeps it in one place, so advice, prefetches and attachments
// are checked, stored and reported, but move nothing.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "core/allocation.h"
#include "core/device.h"
#include "core/entry.h"
#include "core/stream.h"
#include "vmm/physical.h"

using namespace shoal;

namespace {

constexpr int kNoDevice = -2;
constexpr int kHost = -1;
constexpr uint64_t kPage = 4096;

bool isSame(const CUmemLocation& left, const CUmemLocation& right) {
  return left.type == right.type && left.id == right.id;
}

// A location without a type means that no location is set.
struct Advice {
  bool isReadMostly = false;
  CUmemLocation preferred = {};
  CUmemLocation prefetched = {};
  std::set<int> accessedBy;
};

// The advice for the pages of one allocation. Each entry applies up to the next one.
class AdvisedPages {
 public:
  explicit AdvisedPages(const std::shared_ptr<Allocation>& memory) : memory_(memory), base_(memory->base) {
    byPage_[0];
  }

  bool isGone() const { return memory_.expired(); }

  template <class Body>
  void forEach(CUdeviceptr address, size_t count, Body&& body) {
    const uint64_t end = (address - base_ + count - 1) / kPage + 1;
    const auto last = splitAt(end);
    for (auto piece = splitAt((address - base_) / kPage); piece != last; ++piece) body(piece->second);
  }

 private:
  using Pieces = std::map<uint64_t, Advice>;
  Pieces::iterator splitAt(uint64_t page) {
    auto next = byPage_.upper_bound(page);
    auto covering = std::prev(next);
    return covering->first == page ? covering : byPage_.emplace_hint(next, page, covering->second);
  }

  const std::weak_ptr<Allocation> memory_;
  const uint64_t base_;
  Pieces byPage_;
};

std::mutex mutex;

// The pages of an allocation, by its id, which is never reused. The caller holds the mutex.
AdvisedPages& pagesOf(const std::shared_ptr<Allocation>& memory) {
  static auto* all = new std::map<unsigned long long, AdvisedPages>;
  if (const auto known = all->find(memory->id); known != all->end()) return known->second;
  for (auto entry = all->begin(); entry != all->end();)
    entry = entry->second.isGone() ? all->erase(entry) : std::next(entry);
  return all->emplace(memory->id, AdvisedPages(memory)).first->second;
}

// The managed allocation that contains the whole range, or null.
std::shared_ptr<Allocation> findManaged(CUdeviceptr address, size_t count) {
  auto found = state().allocations.covering(address);
  if (!found || count == 0 || !found->holds(address, count)) return nullptr;
  const bool isManaged =
      found->kind == MemoryKind::managed || (found->backing != nullptr && found->backing->isManaged());
  return isManaged ? found : nullptr;
}

CUresult checkLocation(const CUmemLocation& location) {
  Device* device = nullptr;
  if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) return CUDA_SUCCESS;
  return Location::resolve(location, device);
}

int ordinalOf(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_NONE ? kNoDevice : kHost;
}

// Older functions name a device by its ordinal, and the host by -1.
CUmemLocation locationOf(CUdevice device) {
  if (device == kHost) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

void apply(Advice& kept, CUmem_advise advice, const CUmemLocation& location) {
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: kept.isReadMostly = true; break;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: kept.isReadMostly = false; break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: kept.preferred = location; break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: kept.preferred = {}; break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY: kept.accessedBy.insert(ordinalOf(location)); break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY: kept.accessedBy.erase(ordinalOf(location)); break;
  }
}

bool needsLocation(CUmem_advise advice) {
  return advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
         advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

CUresult advise(CUdeviceptr address, size_t count, CUmem_advise advice, const CUmemLocation& location) {
  return initialised([&]() -> CUresult {
    const auto memory = findManaged(address, count);
    if (!memory || advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
      return CUDA_ERROR_INVALID_VALUE;
    if (needsLocation(advice)) {
      if (const CUresult status = checkLocation(location)) return status;
    }
    std::lock_guard lock(mutex);
    pagesOf(memory).forEach(address, count, [&](Advice& kept) { apply(kept, advice, location); });
    return CUDA_SUCCESS;
  });
}

CUresult prefetch(CUdeviceptr address, size_t count, const CUmemLocation& location, unsigned flags, CUstream handle,
                  bool perThread) {
  return onStream(handle, perThread, [&](auto&, auto&) -> CUresult {
    const auto memory = findManaged(address, count);
    if (!memory || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkLocation(location)) return status;
    std::lock_guard lock(mutex);
    pagesOf(memory).forEach(address, count, [&](Advice& kept) { kept.prefetched = location; });
    return CUDA_SUCCESS;
  });
}

// A batch of ranges. Each location applies to the ranges from its index up to the next index. Discards have no
// locations.
struct Batch {
  const CUdeviceptr* addresses;
  const size_t* sizes;
  size_t count;
  const CUmemLocation* locations = nullptr;
  const size_t* firsts = nullptr;
  size_t locationCount = 0;
};

// A discard changes nothing here: reads after it are undefined, so they may return the old contents.
CUresult prefetchBatch(const Batch& batch, bool isPrefetch, unsigned long long flags, CUstream handle, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    const auto& [addresses, sizes, count, locations, firsts, locationCount] = batch;
    if (count == 0 || addresses == nullptr || sizes == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream->kind == StreamKind::legacyDefault) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::shared_ptr<Allocation>> memories;
    for (size_t index = 0; index < count; ++index) {
      memories.push_back(findManaged(addresses[index], sizes[index]));
      if (!memories.back()) return CUDA_ERROR_INVALID_VALUE;
    }
    if (!isPrefetch) return CUDA_SUCCESS;
    if (locations == nullptr || firsts == nullptr || locationCount == 0 || locationCount > count || firsts[0] != 0)
      return CUDA_ERROR_INVALID_VALUE;
    for (size_t at = 0; at < locationCount; ++at) {
      if (firsts[at] >= count || (at > 0 && firsts[at] <= firsts[at - 1])) return CUDA_ERROR_INVALID_VALUE;
      if (const CUresult status = checkLocation(locations[at])) return status;
    }
    std::lock_guard lock(mutex);
    for (size_t index = 0, at = 0; index < count; ++index) {
      if (at + 1 < locationCount && firsts[at + 1] == index) ++at;
      pagesOf(memories[index]).forEach(addresses[index], sizes[index], [&](Advice& kept) {
        kept.prefetched = locations[at];
      });
    }
    return CUDA_SUCCESS;
  });
}

CUresult attach(CUstream handle, CUdeviceptr address, size_t length, unsigned flags, bool perThread) {
  return onStream(handle, perThread, [&](auto&, auto&) -> CUresult {
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
      return CUDA_ERROR_INVALID_VALUE;
    // The default stream means all streams, so it cannot be a single stream.
    if (flags == CU_MEM_ATTACH_SINGLE && handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto memory = findManaged(address, length == 0 ? 1 : length);
    const bool isWhole = memory && memory->base == address && (length == 0 || length == memory->size);
    return isWhole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

// The location that all pieces share, or none.
CUmemLocation common(const std::vector<const Advice*>& pieces, CUmemLocation Advice::* member) {
  const CUmemLocation first = pieces.front()->*member;
  const bool isCommon =
      std::all_of(pieces.begin(), pieces.end(), [&](auto* piece) { return isSame(piece->*member, first); });
  return isCommon ? first : CUmemLocation{};
}

std::vector<int> accessors(const std::vector<const Advice*>& pieces, size_t count) {
  std::vector<int> found;
  for (const int device : pieces.front()->accessedBy) {
    if (std::all_of(pieces.begin(), pieces.end(), [&](auto* piece) { return piece->accessedBy.count(device) != 0; }))
      found.push_back(device);
  }
  found.resize(count, kNoDevice);
  return found;
}

CUresult checkAnswer(CUmem_range_attribute attribute, const void* data, size_t size) {
  const bool isList = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
  const bool isKnown =
      attribute >= CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY && attribute <= CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID;
  const bool fits = isList ? size != 0 && size % sizeof(int) == 0 : size == sizeof(int);
  return isKnown && fits && data != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void describe(const std::vector<const Advice*>& pieces, CUmem_range_attribute attribute, void* data, size_t size) {
  int value = 0;
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      value = std::all_of(pieces.begin(), pieces.end(), [](auto* piece) { return piece->isReadMostly; });
      break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      const auto found = accessors(pieces, size / sizeof(int));
      memcpy(data, found.data(), size);
      return;
    }
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: value = ordinalOf(common(pieces, &Advice::preferred)); break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: value = ordinalOf(common(pieces, &Advice::prefetched)); break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: value = common(pieces, &Advice::preferred).type; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: value = common(pieces, &Advice::preferred).id; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: value = common(pieces, &Advice::prefetched).type; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: value = common(pieces, &Advice::prefetched).id; break;
  }
  memcpy(data, &value, sizeof value);
}

}  // namespace

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return advise(devPtr, count, advice, locationOf(device));
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
  return advise(devPtr, count, advice, location);
}

SHOAL_TWIN(cuMemPrefetchAsync, _ptsz, (CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream),
           prefetch(devPtr, count, locationOf(dstDevice), 0, hStream, perThread))
SHOAL_TWIN(cuMemPrefetchAsync_v2, _ptsz,
           (CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream),
           prefetch(devPtr, count, location, flags, hStream, perThread))
#define SHOAL_PREFETCHES                                                                                   \
  (CUdeviceptr * dptrs, size_t* sizes, size_t count, CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs, \
   size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
SHOAL_TWIN(cuMemPrefetchBatchAsync, _ptsz, SHOAL_PREFETCHES,
           prefetchBatch({dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs}, true, flags, hStream,
                         perThread))
SHOAL_TWIN(cuMemDiscardAndPrefetchBatchAsync, _ptsz, SHOAL_PREFETCHES,
           prefetchBatch({dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs}, true, flags, hStream,
                         perThread))
SHOAL_TWIN(cuMemDiscardBatchAsync, _ptsz,
           (CUdeviceptr * dptrs, size_t* sizes, size_t count, unsigned long long flags, CUstream hStream),
           prefetchBatch({dptrs, sizes, count}, false, flags, hStream, perThread))
SHOAL_TWIN(cuStreamAttachMemAsync, _ptsz, (CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags),
           attach(hStream, dptr, length, flags, perThread))

CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count) {
  return initialised([&]() -> CUresult {
    const auto memory = findManaged(devPtr, count);
    if (!memory || data == nullptr || dataSizes == nullptr || attributes == nullptr || numAttributes == 0)
      return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; index < numAttributes; ++index) {
      if (const CUresult status = checkAnswer(attributes[index], data[index], dataSizes[index])) return status;
    }
    std::lock_guard lock(mutex);
    std::vector<const Advice*> pieces;
    pagesOf(memory).forEach(devPtr, count, [&](const Advice& kept) { pieces.push_back(&kept); });
    for (size_t index = 0; index < numAttributes; ++index)
      describe(pieces, attributes[index], data[index], dataSizes[index]);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr,
                                size_t count) {
  return cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}
