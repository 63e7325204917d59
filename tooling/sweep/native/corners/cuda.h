// The driver, and helpers that the questions about mapped memory share.
#pragma once

#include "corners.h"
#include "shoal/cuda.h"

namespace corners {

inline int run(int count, char** arguments, const std::vector<Group>& groups) {
  return runGroups(count, arguments, groups, 60);
}

// Makes the primary context of a device current.
inline CUcontext primary(int device = 0) {
  CUcontext context = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
  return context;
}

constexpr size_t kPiece = size_t{2} << 20;

inline CUmemGenericAllocationHandle make(size_t size, unsigned handleTypes = 0) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handleTypes);
  cuMemCreate(&handle, size, &properties, 0);
  return handle;
}

inline CUdeviceptr reserve(size_t size) {
  CUdeviceptr at = 0;
  cuMemAddressReserve(&at, size, 0, 0, 0);
  return at;
}

inline CUresult allow(CUdeviceptr at, size_t size, int device = 0, int flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, static_cast<CUmemAccess_flags>(flags)};
  return cuMemSetAccess(at, size, &access, 1);
}

// Maps one piece of device 0, without access rights.
inline CUdeviceptr mapped(size_t size = kPiece) {
  const CUdeviceptr at = reserve(size);
  cuMemMap(at, size, 0, make(size), 0);
  return at;
}

// Maps one piece of device 0 with these access rights.
inline CUdeviceptr allowed(int flags) {
  const CUdeviceptr at = mapped();
  allow(at, kPiece, 0, flags);
  return at;
}

inline uint64_t ofPool(CUmemoryPool pool, CUmemPool_attribute attribute) {
  uint64_t value = 0;
  cuMemPoolGetAttribute(pool, attribute, &value);
  return value;
}

// Functions for streams that do nothing.
inline void nothing(void*) {}
inline void callback(CUstream, CUresult, void*) {}

}  // namespace corners
