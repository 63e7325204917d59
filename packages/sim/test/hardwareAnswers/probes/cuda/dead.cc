// Objects whose context is gone, and handles that were destroyed or never existed.
#include "ask.h"

namespace ask {

Destroyed makeDestroyed(bool isPrimary, bool anotherCurrent) {
  Destroyed dead = {};
  cuInit(0);
  if (isPrimary) {
    cuDevicePrimaryCtxRetain(&dead.context, 0);
    cuCtxSetCurrent(dead.context);
  } else {
    cuCtxCreate_v2(&dead.context, 0, 0);
  }
  cuStreamCreate(&dead.stream, 0);
  cuEventCreate(&dead.event, 0);
  cuEventRecord(dead.event, dead.stream);
  cuMemAlloc_v2(&dead.memory, 1024);
  cuMemHostAlloc(&dead.host, 1024, 0);
  if (isPrimary) cuDevicePrimaryCtxRelease_v2(0);
  else cuCtxDestroy_v2(dead.context);
  if (anotherCurrent) {
    CUcontext other = nullptr;
    if (isPrimary) cuCtxCreate_v2(&other, 0, 0);
    else primary();
  }
  return dead;
}

const std::vector<DestroyedCall>& destroyedCalls() {
  static const std::vector<DestroyedCall> calls = {
      {"cuStreamQuery", [](Destroyed& d) { return cuStreamQuery(d.stream); }},
      {"cuStreamSynchronize", [](Destroyed& d) { return cuStreamSynchronize(d.stream); }},
      {"cuStreamDestroy", [](Destroyed& d) { return cuStreamDestroy_v2(d.stream); }},
      {"cuEventQuery", [](Destroyed& d) { return cuEventQuery(d.event); }},
      {"cuEventSynchronize", [](Destroyed& d) { return cuEventSynchronize(d.event); }},
      {"cuEventRecord", [](Destroyed& d) { return cuEventRecord(d.event, nullptr); }},
      {"cuEventDestroy", [](Destroyed& d) { return cuEventDestroy_v2(d.event); }},
      {"cuMemFree", [](Destroyed& d) { return cuMemFree_v2(d.memory); }},
      {"cuMemFreeHost", [](Destroyed& d) { return cuMemFreeHost(d.host); }},
      {"cuMemcpyDtoH",
       [](Destroyed& d) {
         char out[16];
         return cuMemcpyDtoH_v2(out, d.memory, 16);
       }},
      {"cuMemcpyDtoHAsync",
       [](Destroyed& d) {
         char out[16];
         return cuMemcpyDtoHAsync_v2(out, d.memory, 16, d.stream);
       }},
      {"cuLaunchHostFunc", [](Destroyed& d) { return cuLaunchHostFunc(d.stream, [](void*) {}, nullptr); }},
      {"cuPointerGetAttribute",
       [](Destroyed& d) {
         unsigned t;
         return cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d.memory);
       }},
      {"cuCtxSetCurrent", [](Destroyed& d) { return cuCtxSetCurrent(d.context); }},
      {"cuCtxPushCurrent", [](Destroyed& d) { return cuCtxPushCurrent_v2(d.context); }},
      {"cuCtxGetApiVersion",
       [](Destroyed& d) {
         unsigned v;
         return cuCtxGetApiVersion(d.context, &v);
       }},
      {"cuCtxDestroy", [](Destroyed& d) { return cuCtxDestroy_v2(d.context); }},
      {"cuCtxGetCurrent",
       [](Destroyed&) {
         CUcontext c;
         return cuCtxGetCurrent(&c);
       }},
  };
  return calls;
}

namespace {

CUstream destroyedStream() {
  CUstream stream = nullptr;
  cuStreamCreate(&stream, 0);
  cuStreamDestroy_v2(stream);
  return stream;
}
CUevent destroyedEvent() {
  CUevent event = nullptr;
  cuEventCreate(&event, 0);
  cuEventDestroy_v2(event);
  return event;
}

}  // namespace

// Handles that were destroyed or never existed.
const std::vector<Call>& staleCalls() {
  static const std::vector<Call> calls = {
      {"cuGetErrorName(NULL)", [] { return cuGetErrorName(CUDA_SUCCESS, nullptr); }},
      {"cuDriverGetVersion(NULL)", [] { return cuDriverGetVersion(nullptr); }},
      {"cuCtxGetCurrent(NULL)", [] { return cuCtxGetCurrent(nullptr); }},
      {"cuDeviceGetCount(NULL)", [] { return cuDeviceGetCount(nullptr); }},
      {"cuDeviceGet(NULL)", [] { return cuDeviceGet(nullptr, 0); }},
      {"cuDeviceGetName(NULL)", [] { return cuDeviceGetName(nullptr, 10, 0); }},
      {"cuDeviceGetName(0)",
       [] {
         char text[4];
         return cuDeviceGetName(text, 0, 0);
       }},
      {"cuDeviceGetName(-1)",
       [] {
         char text[4];
         return cuDeviceGetName(text, -1, 0);
       }},
      {"cuDeviceGetUuid(NULL)", [] { return cuDeviceGetUuid_v2(nullptr, 0); }},
      {"cuDeviceTotalMem(NULL)", [] { return cuDeviceTotalMem_v2(nullptr, 0); }},
      {"cuDeviceGetAttribute(NULL)", [] { return cuDeviceGetAttribute(nullptr, 1, 0); }},
      {"cuDeviceGetPCIBusId(NULL)", [] { return cuDeviceGetPCIBusId(nullptr, 13, 0); }},
      {"cuDeviceGetByPCIBusId(NULL)",
       [] {
         int d;
         return cuDeviceGetByPCIBusId(&d, nullptr);
       }},
      {"cuGetProcAddress(NULL symbol)",
       [] {
         void* p;
         return cuGetProcAddress_v2(nullptr, &p, 12000, 0, nullptr);
       }},
      {"cuGetProcAddress(NULL pfn)", [] { return cuGetProcAddress_v2("cuInit", nullptr, 12000, 0, nullptr); }},
      {"cuModuleGetLoadingMode(NULL)", [] { return cuModuleGetLoadingMode(nullptr); }},
      {"destroyed stream query", [] { return cuStreamQuery(destroyedStream()); }},
      {"destroyed stream destroy", [] { return cuStreamDestroy_v2(destroyedStream()); }},
      {"destroyed stream copy",
       [] {
         CUdeviceptr d;
         cuMemAlloc_v2(&d, 64);
         return cuMemsetD8Async(d, 0, 64, destroyedStream());
       }},
      {"destroyed event query", [] { return cuEventQuery(destroyedEvent()); }},
      {"destroyed event record", [] { return cuEventRecord(destroyedEvent(), nullptr); }},
      {"destroyed event destroy", [] { return cuEventDestroy_v2(destroyedEvent()); }},
      {"wild stream query", [] { return cuStreamQuery(wild<CUstream>(0x1234567890)); }},
      {"small stream query", [] { return cuStreamQuery(wild<CUstream>(0x40)); }},
      {"wild stream destroy", [] { return cuStreamDestroy_v2(wild<CUstream>(0x1234567890)); }},
      {"wild event query", [] { return cuEventQuery(wild<CUevent>(0x1234567890)); }},
      {"null event query", [] { return cuEventQuery(nullptr); }},
      {"null event record", [] { return cuEventRecord(nullptr, nullptr); }},
      {"null event destroy", [] { return cuEventDestroy_v2(nullptr); }},
      {"null event wait", [] { return cuStreamWaitEvent(nullptr, nullptr, 0); }},
      {"wild context set", [] { return cuCtxSetCurrent(wild<CUcontext>(0x1234567890)); }},
      {"wild context destroy", [] { return cuCtxDestroy_v2(wild<CUcontext>(0x1234567890)); }},
      {"stream 0 destroy", [] { return cuStreamDestroy_v2(nullptr); }},
      {"stream 1 destroy", [] { return cuStreamDestroy_v2(CU_STREAM_LEGACY); }},
      {"stream 2 destroy", [] { return cuStreamDestroy_v2(CU_STREAM_PER_THREAD); }},
      {"null module unload", [] { return cuModuleUnload(nullptr); }},
      {"null function launch", [] { return cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); }},
      {"null library unload", [] { return cuLibraryUnload(nullptr); }},
      {"null function attribute",
       [] {
         int v;
         return cuFuncGetAttribute(&v, 0, nullptr);
       }},
      {"null module function",
       [] {
         CUfunction f;
         return cuModuleGetFunction(&f, nullptr, "x");
       }},
      {"bad host HtoD",
       [] {
         CUdeviceptr d;
         cuMemAlloc_v2(&d, 64);
         return cuMemcpyHtoD_v2(d, nullptr, 64);
       }},
      {"bad host HtoDAsync",
       [] {
         CUdeviceptr d;
         cuMemAlloc_v2(&d, 64);
         return cuMemcpyHtoDAsync_v2(d, nullptr, 64, nullptr);
       }},
      {"free(malloc)", [] { return cuMemFree_v2(reinterpret_cast<CUdeviceptr>(malloc(64))); }},
  };
  return calls;
}

}  // namespace ask
