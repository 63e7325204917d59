// The API of pools: creating, attributes, trimming, access rights.
#include <algorithm>
#include <iterator>

#include "core/entry.h"
#include "pool.h"
#include "vmm/physical.h"

using namespace shoal;

namespace {

template <class Body>
CUresult onPool(CUmemoryPool handle, Body&& body) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Pool> pool;
    if (const CUresult status = findPool(handle, pool)) return status;
    return body(pool);
  });
}

CUresult checkProperties(const CUmemPoolProps& properties, Device*& device) {
  const auto types = static_cast<unsigned>(properties.handleTypes);
  if (properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED) {
    // The location of a managed pool is only a preference.
    if (types != 0) return CUDA_ERROR_INVALID_VALUE;
    if (properties.location.type == CU_MEM_LOCATION_TYPE_NONE) return CUDA_SUCCESS;
  } else if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (Location::resolve(properties.location, device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  // Without a fabric, a pool may be created with fabric handles, but it cannot be exported.
  if ((types & ~(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties.location.type == CU_MEM_LOCATION_TYPE_HOST && types != 0) return CUDA_ERROR_INVALID_VALUE;
  if (properties.win32SecurityAttributes != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool isClear =
      std::all_of(std::begin(properties.reserved), std::end(properties.reserved), [](auto byte) { return byte == 0; });
  return isClear ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  return initialised([&]() -> CUresult {
    if (pool == nullptr || poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult status = checkProperties(*poolProps, device)) return status;
    CUmemPoolProps properties = *poolProps;
    if (properties.maxSize > SIZE_MAX - kGranularity) properties.maxSize = 0;
    properties.maxSize = (properties.maxSize + kGranularity - 1) / kGranularity * kGranularity;
    *pool = Pool::create(properties, device, false)->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return onPool(handle, [&](auto& pool) -> CUresult {
    if (pool->isDefault || !state().pools.take(reinterpret_cast<uint64_t>(handle))) return CUDA_ERROR_INVALID_VALUE;
    // Memory in use keeps its parts of the pool alive.
    forgetPool(pool);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t minBytesToKeep) {
  return onPool(handle, [&](auto& pool) -> CUresult {
    if (pool->isImported) return CUDA_ERROR_INVALID_VALUE;
    pool->trimTo(minBytesToKeep);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  return onPool(handle, [&](auto& pool) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool->getAttribute(attr, value);
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  return onPool(handle, [&](auto& pool) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool->setAttribute(attr, value);
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  return onPool(handle, [&](auto& pool) -> CUresult {
    if (map == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; index < count; ++index) {
      const CUmemAccessDesc& each = map[index];
      const bool isKnown = each.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || each.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                           each.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      if (!isKnown) return CUDA_ERROR_INVALID_VALUE;
      // Only devices can get access: read-write access, or none.
      if (each.location.type != CU_MEM_LOCATION_TYPE_DEVICE || each.flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
        return CUDA_ERROR_NOT_SUPPORTED;
      Device* device = nullptr;
      if (const CUresult status = Location::resolve(each.location, device)) return status;
      // The pool's own device always has access.
      if (device == pool->device && each.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_DEVICE;
    }
    if (pool->isManaged()) return CUDA_SUCCESS;
    for (size_t index = 0; index < count; ++index)
      pool->setRights(map[index].location.id, static_cast<unsigned>(map[index].flags));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return onPool(handle, [&](auto& pool) -> CUresult {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (Location::resolve(*location, device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    *flags = static_cast<CUmemAccess_flags>(device != nullptr ? pool->rightsOf(device->ordinal) : pool->hostRights());
    return CUDA_SUCCESS;
  });
}
