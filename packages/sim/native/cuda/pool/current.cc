// Which pool a place has: the default one, and the current one that cuMemAllocAsync takes memory from.
#include <map>

#include "core/entry.h"
#include "pool.h"
#include "vmm/physical.h"

using namespace shoal;

namespace {

struct PlacePools {
  std::shared_ptr<Pool> byDefault;
  std::shared_ptr<Pool> current;
};

// By kind of place and ordinal or node; made when they are first asked for.
struct Places {
  std::mutex mutex;
  std::map<std::pair<int, int>, PlacePools> pools;
};

Places& places() {
  static Places* all = new Places;
  return *all;
}

// The caller holds the mutex.
PlacePools& poolsOf(const CUmemLocation& location, Device* device) {
  const int id = location.type == CU_MEM_LOCATION_TYPE_HOST ? 0 : location.id;
  PlacePools& found = places().pools[{location.type, id}];
  if (!found.byDefault) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {location.type, id};
    found.byDefault = Pool::create(properties, device, true);
    found.current = found.byDefault;
  }
  return found;
}

CUmemLocation onDevice(CUdevice ordinal) { return {CU_MEM_LOCATION_TYPE_DEVICE, ordinal}; }

// `use` gets the pools of the place.
template <class Body>
CUresult atPlace(const CUmemLocation* location, CUmemAllocationType type, Body&& use) {
  return initialised([&]() -> CUresult {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
    if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult status = Location::resolve(*location, device)) return status;
    std::lock_guard lock(places().mutex);
    return use(poolsOf(*location, device));
  });
}

CUresult give(CUmemoryPool* out, const std::shared_ptr<Pool>& pool) {
  *out = pool->handle();
  return CUDA_SUCCESS;
}

CUresult getDefault(CUmemoryPool* out, const CUmemLocation* location, CUmemAllocationType type) {
  return atPlace(location, type, [&](PlacePools& pools) { return out == nullptr ? CUDA_ERROR_INVALID_VALUE : give(out, pools.byDefault); });
}

CUresult getCurrent(CUmemoryPool* out, const CUmemLocation* location, CUmemAllocationType type) {
  return atPlace(location, type, [&](PlacePools& pools) { return out == nullptr ? CUDA_ERROR_INVALID_VALUE : give(out, pools.current); });
}

CUresult setCurrent(const CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  return atPlace(location, type, [&](PlacePools& pools) -> CUresult {
    std::shared_ptr<Pool> pool;
    if (const CUresult status = findPool(handle, pool)) return status;
    const CUmemLocation& own = pool->properties.location;
    const bool isHere = own.type == location->type && (own.type == CU_MEM_LOCATION_TYPE_HOST || own.id == location->id);
    if (pool->isImported || !isHere) return CUDA_ERROR_INVALID_VALUE;
    pools.current = std::move(pool);
    return CUDA_SUCCESS;
  });
}

}  // namespace

std::shared_ptr<Pool> shoal::currentPool(Device& device) {
  std::lock_guard lock(places().mutex);
  return poolsOf(onDevice(device.ordinal), &device).current;
}

void shoal::forgetPool(const std::shared_ptr<Pool>& pool) {
  std::lock_guard lock(places().mutex);
  for (auto& [place, pools] : places().pools) {
    if (pools.current == pool) pools.current = pools.byDefault;
  }
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
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

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) { return getCurrent(pool, location, type); }

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) { return setCurrent(location, type, pool); }
