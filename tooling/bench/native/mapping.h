/* Shared by the programs for mapped memory. They use device 0. */
#include "common.h"

static inline CUmemAllocationProp properties(CUmemAllocationHandleType handle_types) {
  CUmemAllocationProp properties = {0};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = handle_types;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return properties;
}

static inline void map(CUdeviceptr address, size_t size, CUmemGenericAllocationHandle memory) {
  CUDA(cuMemMap(address, size, 0, memory, 0));
  CUmemAccessDesc access = {0};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUDA(cuMemSetAccess(address, size, &access, 1));
}
