// Attributes of pointers.
#include <cstring>

#include "core/allocation.h"
#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"

using namespace shoal;

namespace {

template <class Value>
CUresult put(void* data, Value value) {
  memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

// For host memory: the device of the context that allocated it, 0 if it is mapped, and -2 if there is no device.
int ordinalOf(const Allocation& allocation) {
  if (allocation.device != nullptr) return allocation.device->ordinal;
  if (allocation.kind == MemoryKind::mapped && allocation.isHost()) return 0;
  return allocation.context != nullptr ? allocation.context->device.ordinal : -2;
}

// The access rights of the current context's device. Without a context, the rights of the memory's device.
unsigned rightsOf(const Allocation& allocation) {
  auto& stack = contextStack();
  const int device = stack.empty() ? ordinalOf(allocation) : stack.back()->device.ordinal;
  const auto rights = allocation.backing != nullptr ? allocation.backing->rightsOf(device) : std::nullopt;
  return rights.value_or(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

CUresult describe(void* data, CUpointer_attribute attribute, CUdeviceptr pointer, const Allocation& allocation) {
  const Backing* backing = allocation.backing.get();
  const bool isManaged = allocation.kind == MemoryKind::managed || (backing != nullptr && backing->isManaged());
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      // Pool memory belongs to its pool, not to a context.
      const bool hasContext = allocation.context != nullptr && allocation.kind != MemoryKind::pooled;
      return put(data, hasContext ? allocation.context->handle() : nullptr);
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(data, allocation.isHost() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (backing != nullptr && !backing->isReachable()) return CUDA_ERROR_INVALID_VALUE;
      return put<CUdeviceptr>(data, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!allocation.isHost() && !isManaged) return CUDA_ERROR_INVALID_VALUE;
      return put<void*>(data, reinterpret_cast<void*>(pointer));
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      if (allocation.isHost()) return CUDA_ERROR_INVALID_VALUE;
      memset(data, 0, 16);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put<int>(data, allocation.syncMemoryOperations ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put<unsigned long long>(data, allocation.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put<unsigned>(data, isManaged ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put<int>(data, ordinalOf(allocation));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<int>(data, backing != nullptr && backing->isLegacyIpcCapable());
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(data, backing != nullptr && backing->rangeSize() != 0 ? backing->rangeBase() : allocation.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<size_t>(data,
                         backing != nullptr && backing->rangeSize() != 0 ? backing->rangeSize() : allocation.size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put<int>(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned long long>(data, backing != nullptr ? backing->handleTypes() : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<int>(data, backing != nullptr && backing->isRdmaCapable());
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put<unsigned long long>(data, rightsOf(allocation));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put(data, backing != nullptr ? backing->pool() : nullptr);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<size_t>(data,
                         backing != nullptr && backing->mappingSize() != 0 ? backing->mappingSize() : allocation.size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put(data, backing != nullptr && backing->mappingSize() != 0 ? backing->mappingBase() : allocation.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return put<unsigned long long>(data, allocation.id);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return put<int>(data, 0);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

size_t sizeOf(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return 4;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return 16;
    default: return 8;
  }
}

bool isKnown(CUpointer_attribute attribute) {
  return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT && attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return initialised([&]() -> CUresult {
    if (data == nullptr || !isKnown(attribute)) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = state().allocations.covering(ptr);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    return describe(data, attribute, ptr, *allocation);
  });
}

// Unlike in cuPointerGetAttribute, an attribute that does not apply is zero and not an error.
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
  return initialised([&]() -> CUresult {
    if (numAttributes == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned index = 0; index < numAttributes; ++index) {
      if (data[index] == nullptr || !isKnown(attributes[index])) return CUDA_ERROR_INVALID_VALUE;
    }
    auto allocation = state().allocations.covering(ptr);
    for (unsigned index = 0; index < numAttributes; ++index) {
      if (allocation && describe(data[index], attributes[index], ptr, *allocation) == CUDA_SUCCESS) continue;
      memset(data[index], 0, sizeOf(attributes[index]));
      if (attributes[index] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) put<int>(data[index], -2);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return initialised([&]() -> CUresult {
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = state().allocations.covering(ptr);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    unsigned wanted = 0;
    memcpy(&wanted, value, sizeof wanted);
    if (wanted > 1) return CUDA_ERROR_INVALID_VALUE;
    allocation->syncMemoryOperations = wanted == 1;
    return CUDA_SUCCESS;
  });
}
