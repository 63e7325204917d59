// Mapping and unmapping physical memory. The same memory can be mapped several times.
#include <sys/mman.h>

#include "core/addresses.h"
#include "core/entry.h"
#include "multicast/object.h"
#include "space.h"

using namespace shoal;

namespace shoal {

Mapping::Mapping(Range reserved, uint64_t base, size_t size, std::shared_ptr<MemoryHandle> handle)
    : base(base), size(size), handle(std::move(handle)), reserved_(reserved) {
  void* at = reinterpret_cast<void*>(base);
  // A multicast object has no memory. Its pages only receive writes, which are then forwarded.
  if (this->handle->physical) this->handle->physical->file->map(0, size, PROT_NONE, at);
}

bool Mapping::wrote(uint64_t address, size_t length) {
  return !handle->multicast || handle->multicast->pass(address - base, reinterpret_cast<const char*>(address), length);
}

std::shared_ptr<SharedFile> Mapping::locate(uint64_t address, size_t& inFile) const {
  inFile = address - base;
  return handle->physical ? handle->physical->file : nullptr;
}

bool Mapping::isRdmaCapable() const {
  return handle->physical && handle->physical->properties.allocFlags.gpuDirectRDMACapable != 0;
}

}  // namespace shoal

namespace {

bool overlapsMapping(const Reservation& reservation, uint64_t address, size_t size) {
  auto after = reservation.mappings.lower_bound(address);
  if (after != reservation.mappings.end() && after->first < address + size) return true;
  if (after == reservation.mappings.begin()) return false;
  const Mapping& before = *std::prev(after)->second;
  return before.base + before.size > address;
}

}  // namespace

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return initialised([&]() -> CUresult {
    if (flags != 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
    auto memory = memoryHandles().find(handle);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    const size_t available = memory->physical ? memory->physical->size : memory->multicast->size();
    // As on hardware, only the whole memory can be mapped.
    if (offset != 0 || size != available) return CUDA_ERROR_NOT_SUPPORTED;
    if (!isGranular(ptr)) return CUDA_ERROR_INVALID_VALUE;
    // Real drivers block here until the team is complete.
    if (memory->multicast) {
      if (const CUresult status = memory->multicast->waitForTeam()) return status;
    }
    AddressSpace& space = addressSpace();
    std::lock_guard lock(space.mutex);
    Reservation* reservation = space.around(ptr, size);
    if (reservation == nullptr || overlapsMapping(*reservation, ptr, size)) return CUDA_ERROR_INVALID_VALUE;
    auto mapping = std::make_shared<Mapping>(Mapping::Range{reservation->base, reservation->size}, ptr, size, memory);
    const Physical* physical = memory->physical.get();
    const Place place = physical != nullptr && physical->device == nullptr ? Place::host : Place::device;
    Device* device = physical != nullptr ? physical->device : nullptr;
    reservation->mappings[ptr] = mapping;
    state().allocations.put(std::make_shared<Allocation>(
        Allocation::Description{MemoryKind::mapped, ptr, size, place, nullptr, device, 0, std::move(mapping)}));
    return CUDA_SUCCESS;
  });
}

// As on hardware, queued work does not keep the mapping and fails when it runs. Unmapping waits for running work.
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  return initialised([&]() -> CUresult {
    AddressSpace& space = addressSpace();
    std::vector<std::shared_ptr<Mapping>> leaving;
    {
      std::lock_guard lock(space.mutex);
      if (!space.mappingsIn(ptr, size, leaving)) return CUDA_ERROR_INVALID_VALUE;
      for (auto& mapping : leaving) {
        mapping->leave();
        if (auto allocation = state().allocations.startingAt(mapping->base)) state().allocations.remove(allocation);
      }
    }
    for (auto& mapping : leaving) mapping->waitUntilUnused();
    // The range stayed reserved up to here, so no other call has mapped over it.
    std::lock_guard lock(space.mutex);
    Reservation* reservation = space.around(ptr, 1);
    for (auto& mapping : leaving) {
      emptyAddresses(mapping->base, mapping->size);
      reservation->mappings.erase(mapping->base);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  return initialised([&]() -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    AddressSpace& space = addressSpace();
    std::lock_guard lock(space.mutex);
    auto mapping = space.mappingAt(reinterpret_cast<uint64_t>(addr));
    if (!mapping) return CUDA_ERROR_INVALID_VALUE;
    memoryHandles().retain(mapping->handle);
    *handle = mapping->handle->number;
    return CUDA_SUCCESS;
  });
}
