#include "buffer.h"

#include "problem.h"

namespace shoal::nccl {

namespace {

// True for mapped memory of another device that this device has access to, such as a peer's window.
bool mayUse(int device, CUdeviceptr address) {
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  unsigned long long flags = 0;
  return cuMemGetAccess(&flags, &location, address) == CUDA_SUCCESS && flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

}  // namespace

bool isMapped(const void* address) {
  CUmemGenericAllocationHandle handle = 0;
  if (cuMemRetainAllocationHandle(&handle, const_cast<void*>(address)) != CUDA_SUCCESS) return false;
  cuMemRelease(handle);
  return true;
}

ncclResult_t checkBuffer(const Communicator& communicator, const char* function, const char* name, const void* buffer,
                         size_t bytes) {
  if (buffer == nullptr) return problem(ncclInvalidArgument, "%s: %s is NULL", function, name);
  const auto begin = reinterpret_cast<CUdeviceptr>(buffer);
  size_t checked = 0;
  // A buffer may cross several adjacent mappings.
  do {
    const CUdeviceptr address = begin + checked;
    CUdeviceptr start = 0;
    size_t size = 0;
    unsigned type = 0, isManaged = 0;
    int device = 0;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* answers[] = {&start, &size, &type, &isManaged, &device};
    CUresult status = cuPointerGetAttributes(5, wanted, answers, address);
    if (status != CUDA_SUCCESS) return cudaProblem(status, "cuPointerGetAttributes");
    // For mapped memory, the driver reports the reserved range, which may be partly unmapped.
    const bool hasMapping = isMapped(reinterpret_cast<void*>(address));
    if (hasMapping) {
      CUpointer_attribute mapping[] = {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
      status = cuPointerGetAttributes(2, mapping, answers, address);
      if (status != CUDA_SUCCESS) return cudaProblem(status, "cuPointerGetAttributes");
    }
    if (checked != 0 && type == 0) {
      return problem(ncclInvalidArgument, "%s: %s needs %zu bytes, its mappings end after %zu", function, name, bytes,
                     checked);
    }
    if (type == 0)
      return problem(ncclInvalidArgument, "%s: %s (%p) is not memory that CUDA knows", function, name, buffer);
    if (type == CU_MEMORYTYPE_DEVICE && isManaged == 0 && device != communicator.device &&
        !(hasMapping && device >= 0 && mayUse(communicator.device, address))) {
      return problem(ncclInvalidArgument, "%s: %s is memory of device %d, the communicator works on device %d",
                     function, name, device, communicator.device);
    }
    // Only mappings of cuMemMap can continue each other. Any other allocation must contain the whole buffer.
    if (checked + size - (address - start) < bytes && !hasMapping) {
      return problem(ncclInvalidArgument, "%s: %s needs %zu bytes, its allocation ends after %zu", function, name,
                     bytes, checked + static_cast<size_t>(size - (address - start)));
    }
    checked += size - (address - start);
  } while (checked < bytes);
  return ncclSuccess;
}

}  // namespace shoal::nccl
