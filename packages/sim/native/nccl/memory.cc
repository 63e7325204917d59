// Memory of ncclMemAlloc: mapped memory that can be shared with other processes and bound to multicast objects. All
// devices that can reach it have access.
#include <mutex>
#include <unordered_map>

#include "communicator.h"
#include "guard.h"
#include "problem.h"

using namespace shoal::nccl;

namespace {

struct Made {
  std::mutex mutex;
  std::unordered_map<CUdeviceptr, size_t> sizes;
};

Made& made() {
  static Made* all = new Made;
  return *all;
}

CUresult allocate(CUdevice device, size_t size, CUdeviceptr& address, size_t& mapped, const char*& call) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  size_t granularity = 0;
  call = "cuMemGetAllocationGranularity";
  if (const CUresult status =
          cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
    return status;
  mapped = (size + granularity - 1) / granularity * granularity;
  CUmemGenericAllocationHandle memory = 0;
  call = "cuMemCreate";
  if (mapped < size) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = cuMemCreate(&memory, mapped, &properties, 0)) return status;
  call = "cuMemAddressReserve";
  CUresult status = cuMemAddressReserve(&address, mapped, granularity, 0, 0);
  if (status != CUDA_SUCCESS) {
    cuMemRelease(memory);
    return status;
  }
  call = "cuMemMap";
  status = cuMemMap(address, mapped, 0, memory, 0);
  cuMemRelease(memory);  // the mapping keeps the memory
  int devices = 0;
  cuDeviceGetCount(&devices);
  for (int each = 0; each < devices && status == CUDA_SUCCESS; ++each) {
    int reaches = each == device;
    if (each != device) cuDeviceCanAccessPeer(&reaches, each, device);
    if (reaches == 0) continue;
    CUmemAccessDesc access = {};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {each}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    call = "cuMemSetAccess";
    status = cuMemSetAccess(address, mapped, &access, 1);
  }
  if (status != CUDA_SUCCESS) {
    cuMemUnmap(address, mapped);
    cuMemAddressFree(address, mapped);
  }
  return status;
}

}  // namespace

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  return guarded([&]() -> ncclResult_t {
    if (ptr == nullptr || size == 0) return problem(ncclInvalidArgument, "ncclMemAlloc: ptr is NULL or size is 0");
    CUdevice device = 0;
    CUresult status = cuCtxGetDevice(&device);
    if (status != CUDA_SUCCESS) return cudaProblem(status, "cuCtxGetDevice");
    CUdeviceptr address = 0;
    size_t mapped = 0;
    const char* call = "";
    status = allocate(device, size, address, mapped, call);
    if (status != CUDA_SUCCESS) return cudaProblem(status, call);
    std::lock_guard lock(made().mutex);
    made().sizes[address] = mapped;
    *ptr = reinterpret_cast<void*>(address);
    return ncclSuccess;
  });
}

ncclResult_t ncclMemFree(void* ptr) {
  return guarded([&]() -> ncclResult_t {
    if (ptr == nullptr) return ncclSuccess;
    const auto address = reinterpret_cast<CUdeviceptr>(ptr);
    size_t mapped = 0;
    {
      std::lock_guard lock(made().mutex);
      auto found = made().sizes.find(address);
      if (found != made().sizes.end()) {
        mapped = found->second;
        made().sizes.erase(found);
      }
    }
    if (mapped == 0) {
      // ncclMemFree also frees memory of cuMemAlloc.
      const CUresult status = cuMemFree_v2(address);
      return status == CUDA_SUCCESS ? ncclSuccess : cudaProblem(status, "cuMemFree");
    }
    CUresult status = cuMemUnmap(address, mapped);
    if (status == CUDA_SUCCESS) status = cuMemAddressFree(address, mapped);
    return status == CUDA_SUCCESS ? ncclSuccess : cudaProblem(status, "unmapping the memory");
  });
}
