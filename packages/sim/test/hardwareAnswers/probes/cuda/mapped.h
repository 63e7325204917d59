// What the questions about mapped memory have in common.
#pragma once

#include "ask.h"

namespace ask {

constexpr size_t kPiece = size_t{2} << 20;

inline CUmemAllocationProp on(int device, unsigned handleTypes = 0) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handleTypes);
  return properties;
}

inline CUmemGenericAllocationHandle make(size_t size, unsigned handleTypes = 0) {
  CUmemGenericAllocationHandle handle = 0;
  const auto properties = on(0, handleTypes);
  cuMemCreate(&handle, size, &properties, 0);
  return handle;
}

inline CUdeviceptr reserve(size_t size) {
  CUdeviceptr at = 0;
  cuMemAddressReserve(&at, size, 0, 0, 0);
  return at;
}

inline CUresult allow(CUdeviceptr at, size_t size, int device = 0,
                      CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
  return cuMemSetAccess(at, size, &access, 1);
}

// One piece of device 0, mapped; without rights unless they are given.
inline CUdeviceptr mapped(size_t size = kPiece) {
  const CUdeviceptr at = reserve(size);
  cuMemMap(at, size, 0, make(size), 0);
  return at;
}

inline void* asPointer(int descriptor) { return reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)); }

}  // namespace ask
