// Managed memory. The software device has it in one place only, so advice and prefetches are checked, kept and answered.
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "entry.h"

using namespace shoal::cudart;

namespace {

struct Advice {
  bool isReadMostly = false;
  cudaMemLocation preferred = {};
  cudaMemLocation prefetched = {};
  std::set<int> accessedBy;
};

std::mutex mutex;

// By the first address of the allocation; the id tells a later allocation at the same place apart.
std::map<CUdeviceptr, std::pair<unsigned long long, Advice>>& advices() {
  static auto* all = new std::map<CUdeviceptr, std::pair<unsigned long long, Advice>>();
  return *all;
}

struct Block {
  CUdeviceptr base;
  unsigned long long id;
};

// The managed allocation that holds all of a range.
CUresult findManaged(const void* pointer, size_t count, Block& block) {
  unsigned isManaged = 0;
  unsigned long long id = 0;
  void* base = nullptr;
  size_t size = 0;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                  CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* data[] = {&isManaged, &id, &base, &size};
  if (const CUresult status = cuPointerGetAttributes(4, wanted, data, address(pointer))) return status;
  if (isManaged == 0 || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t offset = address(pointer) - address(base);
  if (count > size - offset) return CUDA_ERROR_INVALID_VALUE;
  block = {address(base), id};
  return CUDA_SUCCESS;
}

Advice& adviceFor(const Block& block) {
  auto& [id, advice] = advices()[block.base];
  if (id != block.id) {
    id = block.id;
    advice = Advice();
  }
  return advice;
}

CUresult checkLocation(const cudaMemLocation& location) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return location.type >= CU_MEM_LOCATION_TYPE_HOST && location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  CUdevice device = 0;
  return cuDeviceGet(&device, location.id);
}

int ordinalOf(const cudaMemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_NONE ? cudaInvalidDeviceId : cudaCpuDeviceId;
}

CUresult prefetch(const void* devPtr, size_t count, const cudaMemLocation& location, unsigned flags) {
  Block block;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = findManaged(devPtr, count, block)) return status;
  if (const CUresult status = checkLocation(location)) return status;
  std::lock_guard lock(mutex);
  adviceFor(block).prefetched = location;
  return CUDA_SUCCESS;
}

CUresult attach(void* devPtr, size_t length, unsigned flags) {
  Block block;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE) return CUDA_ERROR_INVALID_VALUE;
  return findManaged(devPtr, length == 0 ? 1 : length, block);
}

}  // namespace

cudaError_t cudaMallocManaged(void** devPtr, size_t size, unsigned int flags) {
  return onDevice([&] { return cuMemAllocManaged(addressOut(devPtr), size, flags); });
}

SHOAL_RT_TWIN(cudaStreamAttachMemAsync, _ptsz, (cudaStream_t stream, void* devPtr, size_t length, unsigned int flags),
              (static_cast<void>(stream), attach(devPtr, length, flags)), (static_cast<void>(stream), attach(devPtr, length, flags)))
SHOAL_RT_TWIN(cudaMemPrefetchAsync, _ptsz,
              (const void* devPtr, size_t count, cudaMemLocation location, unsigned int flags, cudaStream_t stream),
              (static_cast<void>(stream), prefetch(devPtr, count, location, flags)),
              (static_cast<void>(stream), prefetch(devPtr, count, location, flags)))

cudaError_t cudaMemAdvise(const void* devPtr, size_t count, int advice, cudaMemLocation location) {
  return onDevice([&]() -> CUresult {
    Block block;
    if (const CUresult status = findManaged(devPtr, count, block)) return status;
    if (advice < 1 || advice > 6) return CUDA_ERROR_INVALID_VALUE;
    if (advice >= 3 && advice != 4) {
      if (const CUresult status = checkLocation(location)) return status;
    }
    std::lock_guard lock(mutex);
    Advice& kept = adviceFor(block);
    switch (advice) {
      case 1: kept.isReadMostly = true; break;
      case 2: kept.isReadMostly = false; break;
      case 3: kept.preferred = location; break;
      case 4: kept.preferred = {}; break;
      case 5: kept.accessedBy.insert(ordinalOf(location)); break;
      default: kept.accessedBy.erase(ordinalOf(location));
    }
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t dataSize, int attribute, const void* devPtr, size_t count) {
  return onDevice([&]() -> CUresult {
    Block block;
    if (const CUresult status = findManaged(devPtr, count, block)) return status;
    if (data == nullptr || dataSize == 0 || dataSize % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto* values = static_cast<int*>(data);
    std::lock_guard lock(mutex);
    const Advice& kept = adviceFor(block);
    if (attribute == 3) {
      auto next = kept.accessedBy.begin();
      for (size_t index = 0; index < dataSize / sizeof(int); ++index) {
        values[index] = next == kept.accessedBy.end() ? cudaInvalidDeviceId : *next++;
      }
      return CUDA_SUCCESS;
    }
    if (dataSize != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
      case 1: *values = kept.isReadMostly ? 1 : 0; break;
      case 2: *values = ordinalOf(kept.preferred); break;
      case 4: *values = ordinalOf(kept.prefetched); break;
      case 5: *values = kept.preferred.type; break;
      case 6: *values = kept.preferred.id; break;
      case 7: *values = kept.prefetched.type; break;
      case 8: *values = kept.prefetched.id; break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}
