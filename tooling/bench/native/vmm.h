/* What the programs about mapped memory have in common. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(CUresult status, const char* call) {
  if (status == CUDA_SUCCESS) return;
  const char* name = NULL;
  cuGetErrorName(status, &name);
  fprintf(stderr, "%s: %s (%d)\n", call, name ? name : "?", status);
  exit(1);
}
#define CHECK(call) check(call, #call)

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline CUdevice start(void) {
  CHECK(cuInit(0));
  CUdevice device;
  CHECK(cuDeviceGet(&device, 0));
  CUcontext context;
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  return device;
}

static inline CUmemAllocationProp properties(CUdevice device, CUmemAllocationHandleType handle_types) {
  CUmemAllocationProp properties = {0};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = handle_types;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

static inline void map(CUdeviceptr address, size_t size, CUmemGenericAllocationHandle memory, CUdevice device) {
  CHECK(cuMemMap(address, size, 0, memory, 0));
  CUmemAccessDesc access = {0};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(cuMemSetAccess(address, size, &access, 1));
}
