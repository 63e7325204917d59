// Reservation of address ranges.
#include <algorithm>

#include "core/addresses.h"
#include "core/entry.h"
#include "space.h"

using namespace shoal;

namespace shoal {

AddressSpace& addressSpace() {
  static AddressSpace* all = new AddressSpace;
  return *all;
}

Reservation* AddressSpace::around(uint64_t address, size_t size) {
  auto after = reservations.upper_bound(address);
  if (after == reservations.begin()) return nullptr;
  Reservation& found = std::prev(after)->second;
  const uint64_t skipped = address - found.base;
  return skipped < found.size && size <= found.size - skipped ? &found : nullptr;
}

std::shared_ptr<Mapping> AddressSpace::mappingAt(uint64_t address) {
  Reservation* reservation = around(address, 1);
  if (reservation == nullptr) return nullptr;
  auto after = reservation->mappings.upper_bound(address);
  if (after == reservation->mappings.begin()) return nullptr;
  auto& found = std::prev(after)->second;
  return address - found->base < found->size && found->isUsable() ? found : nullptr;
}

std::vector<std::shared_ptr<Mapping>> AddressSpace::mappingsOf(uint64_t address, size_t size) {
  std::vector<std::shared_ptr<Mapping>> chosen;
  Reservation* reservation = size == 0 ? nullptr : around(address, size);
  if (reservation == nullptr) return chosen;
  uint64_t end = address;
  for (auto at = reservation->mappings.find(address);
       at != reservation->mappings.end() && at->first == end && end < address + size; ++at) {
    if (!at->second->isUsable()) break;
    chosen.push_back(at->second);
    end += at->second->size;
  }
  if (end != address + size) chosen.clear();
  return chosen;
}

bool AddressSpace::mappingsIn(uint64_t address, size_t size, std::vector<std::shared_ptr<Mapping>>& inside) {
  Reservation* reservation = size == 0 ? nullptr : around(address, 1);
  if (reservation == nullptr) return false;
  // As on hardware, only the start must be inside the reservation.
  const uint64_t end = address + std::min<uint64_t>(size, reservation->base + reservation->size - address);
  for (auto& [base, mapping] : reservation->mappings) {
    if (base >= end || base + mapping->size <= address) continue;
    if (base < address || base + mapping->size > end) return false;
    if (mapping->isUsable()) inside.push_back(mapping);
  }
  return true;
}

}  // namespace shoal

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  return initialised([&]() -> CUresult {
    if (ptr == nullptr || flags != 0 || size == 0 || !isGranular(size) || !isGranular(addr))
      return CUDA_ERROR_INVALID_VALUE;
    if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t base = reserveAddresses(size, alignment < kGranularity ? kGranularity : alignment, addr);
    if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    AddressSpace& space = addressSpace();
    std::lock_guard lock(space.mutex);
    space.reservations[base] = Reservation{base, size, {}};
    *ptr = base;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  return initialised([&]() -> CUresult {
    AddressSpace& space = addressSpace();
    std::lock_guard lock(space.mutex);
    auto found = space.reservations.find(ptr);
    if (found == space.reservations.end() || found->second.size != size) return CUDA_ERROR_INVALID_VALUE;
    if (!found->second.mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
    space.reservations.erase(found);
    releaseAddresses(ptr, size);
    return CUDA_SUCCESS;
  });
}
