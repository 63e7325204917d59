// Pools as they are called: creation, attributes, trimming, rights.
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
  if (properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = Location::resolve(properties.location, device)) return status;
  const auto types = static_cast<unsigned>(properties.handleTypes);
  if (properties.location.type == CU_MEM_LOCATION_TYPE_HOST && types != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = checkHandleTypes(types)) return status;
  if (properties.win32SecurityAttributes != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (std::any_of(std::begin(properties.reserved), std::end(properties.reserved), [](auto byte) { return byte != 0; })) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((properties.usage & ~CU_MEM_CREATE_USAGE_HW_DECOMPRESS) != 0) return CUDA_ERROR_INVALID_VALUE;
  return properties.usage != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
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
    // Memory that is still in use keeps the pool's parts alive.
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
  return onPool(handle, [&](auto& pool) { return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool->getAttribute(attr, value); });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  return onPool(handle, [&](auto& pool) { return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool->setAttribute(attr, value); });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  return onPool(handle, [&](auto& pool) -> CUresult {
    if (map == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t index = 0; index < count; ++index) {
      const CUmemAccessDesc& each = map[index];
      const bool isKnown = each.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || each.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                           each.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      if (!isKnown || each.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
      Device* device = nullptr;
      if (const CUresult status = Location::resolve(each.location, device)) return status;
      // Its own device always has it.
      if (device == pool->device && each.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t index = 0; index < count; ++index) pool->setRights(map[index].location.id, static_cast<unsigned>(map[index].flags));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return onPool(handle, [&](auto& pool) -> CUresult {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult status = Location::resolve(*location, device)) return status;
    *flags = static_cast<CUmemAccess_flags>(device != nullptr ? pool->rightsOf(device->ordinal) : pool->hostRights());
    return CUDA_SUCCESS;
  });
}
