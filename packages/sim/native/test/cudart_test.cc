// The CUDA runtime of the software device: the current device, the last error, and that its objects are the driver's.
#include <shoal/cudart.h>

#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

TEST(the_current_device_is_the_threads) {
  int device = -1, count = 0;
  EQUAL(cudaGetDeviceCount(&count), 0);
  CHECK(count >= 2);
  EQUAL(cudaGetDevice(&device), 0);
  EQUAL(device, 0);
  EQUAL(cudaSetDevice(count), 101);
  EQUAL(cudaPeekAtLastError(), 101);
  EQUAL(cudaGetLastError(), 101);
  EQUAL(cudaGetLastError(), 0);
  EQUAL(cudaSetDevice(1), 0);
  CUdevice ofContext = -1;
  EQUAL(cuCtxGetDevice(&ofContext), CUDA_SUCCESS);
  EQUAL(ofContext, 1);
  std::thread([] {
    int other = -1;
    EQUAL(cudaGetDevice(&other), 0);
    EQUAL(other, 0);
  }).join();
  EQUAL(cudaSetDevice(0), 0);
}

TEST(memory_copies_and_directions) {
  void* memory = nullptr;
  EQUAL(cudaMalloc(&memory, 0), 0);
  CHECK(memory == nullptr);
  EQUAL(cudaMalloc(&memory, 1024), 0);
  std::vector<char> out(1024, 1), back(1024, 0);
  EQUAL(cudaMemcpy(memory, out.data(), 1024, cudaMemcpyHostToDevice), 0);
  EQUAL(cudaMemcpy(back.data(), memory, 1024, cudaMemcpyDefault), 0);
  CHECK(memcmp(out.data(), back.data(), 1024) == 0);
  EQUAL(cudaMemcpy(memory, out.data(), 1024, static_cast<cudaMemcpyKind>(9)), 21);
  EQUAL(cudaMemcpy(memory, out.data(), 1025, cudaMemcpyHostToDevice), 1);
  cudaPointerAttributes attributes;
  EQUAL(cudaPointerGetAttributes(&attributes, memory), 0);
  EQUAL(attributes.type, 2);
  EQUAL(attributes.device, 0);
  EQUAL(cudaPointerGetAttributes(&attributes, out.data()), 0);
  EQUAL(attributes.type, 0);
  EQUAL(cudaMemset(memory, 7, 1024), 0);
  EQUAL(cudaDeviceSynchronize(), 0);
  EQUAL(cudaMemcpy(back.data(), memory, 1024, cudaMemcpyDeviceToHost), 0);
  EQUAL(back[1023], 7);
  EQUAL(cudaFree(memory), 0);
  EQUAL(cudaFree(memory), 1);
  EQUAL(cudaGetLastError(), 1);
}

TEST(streams_and_events_are_the_drivers) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  EQUAL(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING), 0);
  EQUAL(cudaEventCreateWithFlags(&event, CU_EVENT_DISABLE_TIMING), 0);
  EQUAL(shoalSimStreamDelay(stream, 20000000), CUDA_SUCCESS);
  EQUAL(cuEventRecord(event, stream), CUDA_SUCCESS);
  EQUAL(cudaStreamQuery(stream), 600);
  EQUAL(cudaGetLastError(), 600);
  EQUAL(cudaEventSynchronize(event), 0);
  EQUAL(cudaEventDestroy(event), 0);
  EQUAL(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST(advice_on_managed_memory_is_kept) {
  void* memory = nullptr;
  EQUAL(cudaMallocManaged(&memory, 4096, CU_MEM_ATTACH_GLOBAL), 0);
  cudaMemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
  EQUAL(cudaMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here), 0);
  EQUAL(cudaMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere), 101);
  EQUAL(cudaMemAdvise(memory, 4097, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here), 1);
  int preferred = -5;
  EQUAL(cudaMemRangeGetAttribute(&preferred, sizeof preferred, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, 4096), 0);
  EQUAL(preferred, 0);
  EQUAL(cudaMemPrefetchAsync(memory, 4096, here, 0, nullptr), 0);
  EQUAL(cudaMemRangeGetAttribute(&preferred, sizeof preferred, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, 4096), 0);
  EQUAL(preferred, 0);
  // It is the driver's: what was said through one is heard through the other.
  OK(cuMemAdvise(reinterpret_cast<CUdeviceptr>(memory), 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
  int isReadMostly = -5;
  void* answers[] = {&isReadMostly, &preferred};
  size_t sizes[] = {sizeof isReadMostly, sizeof preferred};
  cudaMemRangeAttribute wanted[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE};
  EQUAL(cudaMemRangeGetAttributes(answers, sizes, wanted, 2, memory, 4096), 0);
  EQUAL(isReadMostly, 1);
  EQUAL(preferred, CU_MEM_LOCATION_TYPE_DEVICE);
  EQUAL(cudaStreamAttachMemAsync(nullptr, memory, 0, CU_MEM_ATTACH_GLOBAL), 0);
  EQUAL(cudaStreamAttachMemAsync(nullptr, memory, 0, CU_MEM_ATTACH_SINGLE), 1);
  EQUAL(cudaStreamAttachMemAsync_ptsz(nullptr, memory, 16, CU_MEM_ATTACH_GLOBAL), 1);
  EQUAL(cudaFree(memory), 0);
}

TEST(properties_are_the_attributes) {
  cudaDeviceProp properties;
  EQUAL(cudaGetDeviceProperties(&properties, 1), 0);
  int sms = 0, pitch = 0;
  EQUAL(cuDeviceGetAttribute(&sms, 16, 1), CUDA_SUCCESS);
  EQUAL(cuDeviceGetAttribute(&pitch, 51, 1), CUDA_SUCCESS);
  EQUAL(properties.multiProcessorCount, sms);
  EQUAL(properties.texturePitchAlignment, static_cast<size_t>(pitch));
  EQUAL(cudaGetDeviceProperties(&properties, 99), 101);
}

TEST(a_reset_device_starts_anew) {
  void* memory = nullptr;
  EQUAL(cudaMalloc(&memory, 16), 0);
  EQUAL(cudaDeviceReset(), 0);
  EQUAL(cudaFree(memory), 1);
  EQUAL(cudaMalloc(&memory, 16), 0);
  EQUAL(cudaFree(memory), 0);
}

TEST(errors_have_names) {
  CHECK(strcmp(cudaGetErrorName(2), "cudaErrorMemoryAllocation") == 0);
  CHECK(strcmp(cudaGetErrorString(2), "out of memory") == 0);
  CHECK(strcmp(cudaGetErrorName(12345), "unrecognized error code") == 0);
  int version = 0;
  EQUAL(cudaRuntimeGetVersion(&version), 0);
  EQUAL(version, 13000);
}
