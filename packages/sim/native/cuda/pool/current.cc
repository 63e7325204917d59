// The pools of a location: the default pool, and the current pool that cuMemAllocAsync uses.
#include <map>
#include <tuple>

#include "core/entry.h"
#include "pool.h"
#include "vmm/physical.h"

using namespace shoal;

namespace {

struct PlacePools {
  std::shared_ptr<Pool> byDefault;
  std::shared_ptr<Pool> current;
};

// Keyed by memory type, location type, and ordinal or node. Pools are created on first use.
struct Places {
  std::mutex mutex;
  std::map<std::tuple<int, int, int>, PlacePools> pools;
};

Places& places() {
  static Places* all = new Places;
  return *all;
}

// The caller holds the mutex.
PlacePools& poolsOf(const CUmemLocation& location, CUmemAllocationType type, Device* device) {
  const bool isNumbered =
      location.type == CU_MEM_LOCATION_TYPE_DEVICE || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  const int id = isNumbered ? location.id : 0;
  PlacePools& found = places().pools[{type, location.type, id}];
  if (!found.byDefault) {
    CUmemPoolProps properties = {};
    properties.allocType = type;
    properties.location = {location.type, id};
    found.byDefault = Pool::create(properties, device, true);
    found.current = found.byDefault;
  }
  return found;
}

CUmemLocation onDevice(CUdevice ordinal) { return {CU_MEM_LOCATION_TYPE_DEVICE, ordinal}; }

// Calls `use` with the pools of the location.
template <class Body>
CUresult atPlace(const CUmemLocation* location, CUmemAllocationType type, Body&& use) {
  return initialised([&]() -> CUresult {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool isManaged = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if (type != CU_MEM_ALLOCATION_TYPE_PINNED && !isManaged) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    const bool isNowhere = isManaged && location->type == CU_MEM_LOCATION_TYPE_NONE;
    if (!isNowhere && Location::resolve(*location, device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(places().mutex);
    return use(poolsOf(*location, type, device));
  });
}

CUresult give(CUmemoryPool* out, const std::shared_ptr<Pool>& pool) {
  *out = pool->handle();
  return CUDA_SUCCESS;
}

CUresult getDefault(CUmemoryPool* out, const CUmemLocation* location, CUmemAllocationType type) {
  return atPlace(location, type, [&](PlacePools& pools) {
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : give(out, pools.byDefault);
  });
}

CUresult getCurrent(CUmemoryPool* out, const CUmemLocation* location, CUmemAllocationType type) {
  return atPlace(location, type, [&](PlacePools& pools) {
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : give(out, pools.current);
  });
}

CUresult setCurrent(const CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  return atPlace(location, type, [&](PlacePools& pools) -> CUresult {
    std::shared_ptr<Pool> pool;
    if (const CUresult status = findPool(handle, pool)) return status;
    const CUmemLocation& own = pool->properties.location;
    const bool isNumbered = own.type == CU_MEM_LOCATION_TYPE_DEVICE || own.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    const bool isHere = own.type == location->type && (!isNumbered || own.id == location->id);
    if (pool->isImported || pool->properties.allocType != type || !isHere) return CUDA_ERROR_INVALID_VALUE;
    pools.current = std::move(pool);
    return CUDA_SUCCESS;
  });
}

}  // namespace

std::shared_ptr<Pool> shoal::currentPool(Device& device) {
  std::lock_guard lock(places().mutex);
  return poolsOf(onDevice(device.ordinal), CU_MEM_ALLOCATION_TYPE_PINNED, &device).current;
}

void shoal::forgetPool(const std::shared_ptr<Pool>& pool) {
  std::lock_guard lock(places().mutex);
  for (auto& [place, pools] : places().pools) {
    if (pools.current == pool) pools.current = pools.byDefault;
  }
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  // Unlike the other functions, this one returns a special code for an invalid device.
  Device* device = nullptr;
  if (pool_out != nullptr && state().initialised && findDevice(dev, device) != CUDA_SUCCESS)
    return CUDA_ERROR_INVALID_DEVICE;
  const CUmemLocation location = onDevice(dev);
  return getDefault(pool_out, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  const CUmemLocation location = onDevice(dev);
  return getCurrent(pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  const CUmemLocation location = onDevice(dev);
  return setCurrent(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location, CUmemAllocationType type) {
  return getDefault(pool_out, location, type);
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return getCurrent(pool, location, type);
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return setCurrent(location, type, pool);
}
