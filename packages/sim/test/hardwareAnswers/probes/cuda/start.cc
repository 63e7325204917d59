// Before cuInit, and without a context.
#include "ask.h"

namespace ask {

void beforeInit() {
  int number = 0;
  size_t size = 0;
  CUdeviceptr pointer = 0;
  CUcontext context = nullptr;
  void* address = nullptr;
  const char* text = nullptr;
  say("cuDriverGetVersion", cuDriverGetVersion(&number));
  say("cuGetErrorName", cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  say("cuGetErrorName(unknown)", cuGetErrorName(static_cast<CUresult>(12345), &text));
  say("cuGetErrorName(unknown) is NULL", text == nullptr);
  say("cuGetProcAddress_v2", cuGetProcAddress_v2("cuInit", &address, 12000, 0, nullptr));
  say("cuDeviceGetCount", cuDeviceGetCount(&number));
  say("cuDeviceGet", cuDeviceGet(&number, 0));
  say("cuCtxGetCurrent", cuCtxGetCurrent(&context));
  say("cuMemAlloc", cuMemAlloc_v2(&pointer, 16));
  say("cuMemGetInfo", cuMemGetInfo_v2(&size, &size));
  say("cuMemFree(0)", cuMemFree_v2(0));
  say("cuStreamSynchronize(0)", cuStreamSynchronize(nullptr));
  say("cuPointerGetAttribute", cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096));
  say("cuModuleGetLoadingMode", cuModuleGetLoadingMode(&number));
  say("cuCtxPopCurrent", cuCtxPopCurrent_v2(&context));
  say("cuInit(1)", cuInit(1));
  say("cuInit(0)", cuInit(0));
}

void withoutContext() {
  cuInit(0);
  int number = 0;
  size_t size = 0;
  unsigned flags = 0;
  unsigned long long id = 0;
  CUdeviceptr pointer = 0;
  CUcontext context = wild<CUcontext>(1);
  CUstream stream = nullptr;
  CUevent event = nullptr;
  void* host = nullptr;
  say("cuCtxGetCurrent", cuCtxGetCurrent(&context));
  say("cuCtxGetCurrent is NULL", context == nullptr);
  say("cuCtxPopCurrent", cuCtxPopCurrent_v2(&context));
  say("cuCtxPushCurrent(NULL)", cuCtxPushCurrent_v2(nullptr));
  say("cuCtxSetCurrent(NULL)", cuCtxSetCurrent(nullptr));
  say("cuCtxSynchronize", cuCtxSynchronize());
  say("cuCtxGetDevice", cuCtxGetDevice(&number));
  say("cuCtxGetDevice(NULL)", cuCtxGetDevice(nullptr));
  say("cuCtxGetFlags", cuCtxGetFlags(&flags));
  say("cuCtxGetId(NULL)", cuCtxGetId(nullptr, &id));
  say("cuCtxGetApiVersion(NULL)", cuCtxGetApiVersion(nullptr, &flags));
  say("cuCtxDestroy(NULL)", cuCtxDestroy_v2(nullptr));
  say("cuCtxGetStreamPriorityRange", cuCtxGetStreamPriorityRange(&number, &number));
  say("cuMemAlloc", cuMemAlloc_v2(&pointer, 16));
  say("cuMemAlloc(NULL)", cuMemAlloc_v2(nullptr, 16));
  say("cuMemAlloc(0 bytes)", cuMemAlloc_v2(&pointer, 0));
  say("cuMemFree(0)", cuMemFree_v2(0));
  say("cuMemFree(bogus)", cuMemFree_v2(4096));
  say("cuMemGetInfo", cuMemGetInfo_v2(&size, &size));
  say("cuMemHostAlloc", cuMemHostAlloc(&host, 16, 0));
  say("cuMemFreeHost(NULL)", cuMemFreeHost(nullptr));
  say("cuMemcpyHtoD", cuMemcpyHtoD_v2(4096, &number, 4));
  say("cuMemcpyHtoD(0 bytes)", cuMemcpyHtoD_v2(4096, &number, 0));
  say("cuMemsetD8", cuMemsetD8_v2(4096, 0, 4));
  say("cuStreamCreate", cuStreamCreate(&stream, 0));
  say("cuStreamSynchronize(0)", cuStreamSynchronize(nullptr));
  say("cuStreamQuery(0)", cuStreamQuery(nullptr));
  say("cuEventCreate", cuEventCreate(&event, 0));
  say("cuPointerGetAttribute(bogus)", cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096));
  say("cuMemGetAddressRange(bogus)", cuMemGetAddressRange_v2(&pointer, &size, 4096));
  say("cuModuleLoadData(NULL)", cuModuleLoadData(wild<CUmodule*>(0), nullptr));

  // Objects exist, but no context is current.
  CUcontext own = primary();
  CUdeviceptr memory = 0;
  std::vector<char> bytes(1024);
  cuMemAlloc_v2(&memory, 1024);
  cuStreamCreate(&stream, 0);
  cuEventCreate(&event, 0);
  cuMemHostAlloc(&host, 1024, 0);
  cuCtxSetCurrent(nullptr);
  say("objects.cuStreamQuery", cuStreamQuery(stream));
  say("objects.cuStreamSynchronize", cuStreamSynchronize(stream));
  say("objects.cuStreamGetFlags", cuStreamGetFlags(stream, &flags));
  say("objects.cuStreamGetPriority", cuStreamGetPriority(stream, &number));
  say("objects.cuStreamGetId", cuStreamGetId(stream, &id));
  say("objects.cuStreamGetCtx", cuStreamGetCtx(stream, &context));
  say("objects.cuStreamGetDevice", cuStreamGetDevice(stream, &number));
  say("objects.cuEventRecord", cuEventRecord(event, stream));
  say("objects.cuEventQuery", cuEventQuery(event));
  say("objects.cuEventSynchronize", cuEventSynchronize(event));
  say("objects.cuStreamWaitEvent", cuStreamWaitEvent(stream, event, 0));
  say("objects.cuLaunchHostFunc", cuLaunchHostFunc(stream, [](void*) {}, nullptr));
  say("objects.cuMemcpyHtoD", cuMemcpyHtoD_v2(memory, bytes.data(), 1024));
  say("objects.cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2(memory, bytes.data(), 1024, stream));
  say("objects.cuMemcpyDtoHAsync", cuMemcpyDtoHAsync_v2(bytes.data(), memory, 1024, stream));
  say("objects.cuMemcpyAsync", cuMemcpyAsync(memory, reinterpret_cast<CUdeviceptr>(bytes.data()), 1024, stream));
  say("objects.cuMemsetD8Async", cuMemsetD8Async(memory, 0, 16, stream));
  say("objects.cuStreamWriteValue32", cuStreamWriteValue32_v2(stream, memory, 1, 0));
  say("objects.cuMemAllocAsync", cuMemAllocAsync(&pointer, 16, stream));
  say("objects.cuMemFreeAsync", cuMemFreeAsync(pointer, stream));
  say("objects.cuPointerGetAttribute", cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  say("objects.cuMemGetAddressRange", cuMemGetAddressRange_v2(&pointer, &size, memory));
  say("objects.cuMemHostGetDevicePointer", cuMemHostGetDevicePointer_v2(&pointer, host, 0));
  say("objects.cuMemHostGetFlags", cuMemHostGetFlags(&flags, host));
  say("objects.cuCtxGetId(ctx)", cuCtxGetId(own, &id));
  say("objects.cuCtxGetApiVersion(ctx)", cuCtxGetApiVersion(own, &flags));
  say("objects.cuMemFreeHost", cuMemFreeHost(host));
  say("objects.cuMemFree", cuMemFree_v2(memory));
  say("objects.cuEventDestroy", cuEventDestroy_v2(event));
  say("objects.cuStreamDestroy", cuStreamDestroy_v2(stream));
}

}  // namespace ask
