// The CUDA runtime of the software device: the current device, the last error, and that its objects are the driver's.
#include <shoal/cudart.h>

#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

static void currentDevice() {
  int device = -1, count = 0;
  CHECK_EQ(cudaGetDeviceCount(&count), 0);
  CHECK(count >= 2);
  CHECK_EQ(cudaGetDevice(&device), 0);
  CHECK_EQ(device, 0);
  CHECK_EQ(cudaSetDevice(count), 101);
  CHECK_EQ(cudaPeekAtLastError(), 101);
  CHECK_EQ(cudaGetLastError(), 101);
  CHECK_EQ(cudaGetLastError(), 0);
  CHECK_EQ(cudaSetDevice(1), 0);
  CUdevice ofContext = -1;
  CHECK_EQ(cuCtxGetDevice(&ofContext), CUDA_SUCCESS);
  CHECK_EQ(ofContext, 1);
  std::thread([] {
    int other = -1;
    CHECK_EQ(cudaGetDevice(&other), 0);
    CHECK_EQ(other, 0);
  }).join();
  CHECK_EQ(cudaSetDevice(0), 0);
}

static void memoryAndCopies() {
  void* memory = nullptr;
  CHECK_EQ(cudaMalloc(&memory, 0), 0);
  CHECK(memory == nullptr);
  CHECK_EQ(cudaMalloc(&memory, 1024), 0);
  std::vector<char> out(1024, 1), back(1024, 0);
  CHECK_EQ(cudaMemcpy(memory, out.data(), 1024, cudaMemcpyHostToDevice), 0);
  CHECK_EQ(cudaMemcpy(back.data(), memory, 1024, cudaMemcpyDefault), 0);
  CHECK(memcmp(out.data(), back.data(), 1024) == 0);
  CHECK_EQ(cudaMemcpy(memory, out.data(), 1024, static_cast<cudaMemcpyKind>(9)), 21);
  CHECK_EQ(cudaMemcpy(memory, out.data(), 1025, cudaMemcpyHostToDevice), 1);
  cudaPointerAttributes attributes;
  CHECK_EQ(cudaPointerGetAttributes(&attributes, memory), 0);
  CHECK_EQ(attributes.type, 2);
  CHECK_EQ(attributes.device, 0);
  CHECK_EQ(cudaPointerGetAttributes(&attributes, out.data()), 0);
  CHECK_EQ(attributes.type, 0);
  CHECK_EQ(cudaMemset(memory, 7, 1024), 0);
  CHECK_EQ(cudaDeviceSynchronize(), 0);
  CHECK_EQ(cudaMemcpy(back.data(), memory, 1024, cudaMemcpyDeviceToHost), 0);
  CHECK_EQ(back[1023], 7);
  CHECK_EQ(cudaFree(memory), 0);
  CHECK_EQ(cudaFree(memory), 1);
  CHECK_EQ(cudaGetLastError(), 1);
}

static void streamsAreTheDrivers() {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  CHECK_EQ(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING), 0);
  CHECK_EQ(cudaEventCreateWithFlags(&event, CU_EVENT_DISABLE_TIMING), 0);
  CHECK_EQ(shoalSimStreamDelay(stream, 20000000), CUDA_SUCCESS);
  CHECK_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  CHECK_EQ(cudaStreamQuery(stream), 600);
  CHECK_EQ(cudaGetLastError(), 600);
  CHECK_EQ(cudaEventSynchronize(event), 0);
  CHECK_EQ(cudaEventDestroy(event), 0);
  CHECK_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

static void managedMemory() {
  void* memory = nullptr;
  CHECK_EQ(cudaMallocManaged(&memory, 4096, CU_MEM_ATTACH_GLOBAL), 0);
  cudaMemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
  CHECK_EQ(cudaMemAdvise(memory, 4096, 3, here), 0);
  CHECK_EQ(cudaMemAdvise(memory, 4096, 3, nowhere), 101);
  CHECK_EQ(cudaMemAdvise(memory, 4097, 3, here), 1);
  int preferred = -5;
  CHECK_EQ(cudaMemRangeGetAttribute(&preferred, sizeof preferred, 2, memory, 4096), 0);
  CHECK_EQ(preferred, 0);
  CHECK_EQ(cudaMemPrefetchAsync(memory, 4096, here, 0, nullptr), 0);
  CHECK_EQ(cudaMemRangeGetAttribute(&preferred, sizeof preferred, 4, memory, 4096), 0);
  CHECK_EQ(preferred, 0);
  CHECK_EQ(cudaFree(memory), 0);
}

static void properties() {
  cudaDeviceProp properties;
  CHECK_EQ(cudaGetDeviceProperties(&properties, 1), 0);
  int sms = 0, pitch = 0;
  CHECK_EQ(cuDeviceGetAttribute(&sms, 16, 1), CUDA_SUCCESS);
  CHECK_EQ(cuDeviceGetAttribute(&pitch, 51, 1), CUDA_SUCCESS);
  CHECK_EQ(properties.multiProcessorCount, sms);
  CHECK_EQ(properties.texturePitchAlignment, static_cast<size_t>(pitch));
  CHECK_EQ(cudaGetDeviceProperties(&properties, 99), 101);
}

static void reset() {
  void* memory = nullptr;
  CHECK_EQ(cudaMalloc(&memory, 16), 0);
  CHECK_EQ(cudaDeviceReset(), 0);
  CHECK_EQ(cudaFree(memory), 1);
  CHECK_EQ(cudaMalloc(&memory, 16), 0);
  CHECK_EQ(cudaFree(memory), 0);
}

static void words() {
  CHECK(strcmp(cudaGetErrorName(2), "cudaErrorMemoryAllocation") == 0);
  CHECK(strcmp(cudaGetErrorString(2), "out of memory") == 0);
  CHECK(strcmp(cudaGetErrorName(12345), "unrecognized error code") == 0);
  int version = 0;
  CHECK_EQ(cudaRuntimeGetVersion(&version), 0);
  CHECK_EQ(version, 13000);
}

int main() {
  setenv("SHOAL_SIM_DEVICES", "2", 0);
  words();
  currentDevice();
  memoryAndCopies();
  streamsAreTheDrivers();
  managedMemory();
  properties();
  reset();
  return 0;
}
