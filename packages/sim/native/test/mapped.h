// Shared code of the tests of mapped memory.
#pragma once

#include <fcntl.h>

#include "check.h"

namespace mapped {

constexpr size_t kPiece = size_t{2} << 20;

inline CUmemAllocationProp onDevice(int device, unsigned handleTypes = 0) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handleTypes);
  return properties;
}

inline void allow(CUdeviceptr at, size_t size, int device,
                  CUmemAccess_flags rights = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, rights};
  OK(cuMemSetAccess(at, size, &access, 1));
}

// Maps new device memory at this address, with access. Unmapping frees it.
inline void grow(CUdeviceptr at, size_t size, int device) {
  CUmemGenericAllocationHandle handle = 0;
  const auto properties = onDevice(device);
  OK(cuMemCreate(&handle, size, &properties, 0));
  OK(cuMemMap(at, size, 0, handle, 0));
  OK(cuMemRelease(handle));
  allow(at, size, device);
}

// Reads the range from the current device.
inline CUresult use(CUdeviceptr at, size_t size) {
  std::vector<char> bytes(size);
  return cuMemcpyDtoH_v2(bytes.data(), at, size);
}

inline CUmemGenericAllocationHandle create(size_t size, const CUmemAllocationProp& properties) {
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemCreate(&handle, size, &properties, 0));
  return handle;
}

inline size_t freeBytes() {
  size_t free = 0, total = 0;
  OK(cuMemGetInfo_v2(&free, &total));
  return free;
}

inline int openDescriptors() {
  int count = 0;
  for (int number = 0; number < 1024; ++number) count += fcntl(number, F_GETFD) != -1;
  return count;
}

inline void fill(CUdeviceptr at, unsigned char value, size_t size) { OK(cuMemsetD8_v2(at, value, size)); }

inline unsigned char byteAt(CUdeviceptr at) {
  unsigned char byte = 0;
  OK(cuMemcpyDtoH_v2(&byte, at, 1));
  return byte;
}

}  // namespace mapped
