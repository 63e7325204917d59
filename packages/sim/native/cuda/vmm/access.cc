// Access rights: which devices may read and write a mapping. Page protection enforces what one mapping can express:
// memory without any right cannot be touched, and memory that all may only read cannot be written.
#include <sys/mman.h>

#include <cerrno>
#include <vector>

#include "core/entry.h"
#include "multicast/object.h"
#include "space.h"

using namespace shoal;

namespace shoal {

std::optional<unsigned> Mapping::rightsOf(int device) const {
  return device >= 0 && static_cast<size_t>(device) < kDeviceSlots ? rights_[static_cast<size_t>(device)].load() : 0;
}

unsigned Mapping::together() const {
  unsigned all = hostRights_;
  for (auto& rights : rights_) all |= rights;
  return all;
}

void Mapping::protect(unsigned rights) const {
  const int protection = rights == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                         : rights != 0                                ? PROT_READ
                                                                      : PROT_NONE;
  if (mprotect(reinterpret_cast<void*>(base), size, protection) != 0)
    throw std::system_error(errno, std::generic_category(), "mprotect");
}

bool Mapping::grant(const std::vector<Grant>& grants) {
  const unsigned before = together();
  unsigned either = before;
  for (auto& each : grants) either |= each.rights;
  // Widen the page protection before the rights. Narrow it only after no operation relies on the old rights.
  if (either != before) protect(either);
  for (auto& each : grants)
    (each.device == kHost ? hostRights_ : rights_[static_cast<size_t>(each.device)]) = each.rights;
  return together() == either;
}

void Mapping::settle() {
  if (isMapped_) protect(together());
}

}  // namespace shoal

namespace {

bool isValid(CUmemAccess_flags flags) {
  return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
         flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

bool isHostLocation(CUmemLocationType type) {
  return Location::isHost(type) || type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

// Checks whether the location can reach the memory of the mapping.
CUresult checkReach(const Mapping& mapping, const CUmemLocation& from) {
  if (isHostLocation(from.type)) {
    const bool isOnHost = mapping.handle->physical && mapping.handle->physical->device == nullptr;
    return isOnHost ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  }
  // Only devices of the team can use a multicast object.
  if (mapping.handle->multicast && !mapping.handle->multicast->hasDevice(from.id)) return CUDA_ERROR_INVALID_DEVICE;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  return initialised([&]() -> CUresult {
    if (desc == nullptr || count == 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; index < count; ++index) {
      if (!isValid(desc[index].flags)) return CUDA_ERROR_INVALID_VALUE;
      if (isHostLocation(desc[index].location.type)) continue;  // the id does not matter
      Device* device = nullptr;
      if (Location::resolve(desc[index].location, device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<Mapping::Grant> grants;
    for (size_t index = 0; index < count; ++index) {
      const CUmemLocation& location = desc[index].location;
      grants.push_back(
          {isHostLocation(location.type) ? Mapping::kHost : location.id, static_cast<unsigned>(desc[index].flags)});
    }
    AddressSpace& space = addressSpace();
    std::vector<std::shared_ptr<Mapping>> chosen, unsettled;
    {
      std::lock_guard lock(space.mutex);
      chosen = space.mappingsOf(ptr, size);
      if (chosen.empty()) return CUDA_ERROR_INVALID_VALUE;
      for (auto& mapping : chosen) {
        for (size_t index = 0; index < count; ++index) {
          if (const CUresult status = checkReach(*mapping, desc[index].location)) return status;
        }
      }
      for (auto& mapping : chosen) {
        if (!mapping->grant(grants)) unsettled.push_back(mapping);
      }
    }
    // Running operations may still use the old rights. Wait for them; later operations see the new rights.
    for (auto& mapping : unsettled) {
      mapping->waitUntilUnused();
      std::lock_guard lock(space.mutex);
      mapping->settle();
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  return initialised([&]() -> CUresult {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool isHost = isHostLocation(location->type);
    Device* device = nullptr;
    if (!isHost) {
      if (const CUresult status = Location::resolve(*location, device)) return status;
    }
    AddressSpace& space = addressSpace();
    std::lock_guard lock(space.mutex);
    auto mapping = space.mappingAt(ptr);
    if (!mapping) return CUDA_ERROR_INVALID_VALUE;
    *flags = isHost ? mapping->hostRights() : mapping->rightsOf(location->id).value_or(0);
    return CUDA_SUCCESS;
  });
}
