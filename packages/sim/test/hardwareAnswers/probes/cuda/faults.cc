// What a context answers after a fault.
#include "ask.h"

namespace ask {

// A kernel that writes to address 0 poisons a real context; the software device is told to fail.
void poisoned() {
  CUcontext context = primary();
  CUstream s = nullptr, other = nullptr;
  CUevent e = nullptr, recorded = nullptr;
  CUdeviceptr d = 0, p = 0;
  void* pinned = nullptr;
  int number = 0;
  unsigned flags = 0;
  size_t size = 0;
  static volatile int called = 0;
  cuStreamCreate(&s, 1);
  cuStreamCreate(&other, 1);
  cuEventCreate(&e, 0);
  cuEventCreate(&recorded, 0);
  cuEventRecord(recorded, other);
  cuMemAlloc_v2(&d, 1024);
  cuMemHostAlloc(&pinned, 64, 0);
  cuCtxSynchronize();
#ifdef SHOAL_HARDWARE
  const char ptx[] =
      ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry bad() {\n.reg .b64 %r<2>;\n.reg .b32 %s<2>;\n"
      "mov.u64 %r1, 0;\nmov.u32 %s1, 1;\nst.global.u32 [%r1], %s1;\nret;\n}\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  fprintf(stderr, "load %d\n", cuModuleLoadData(&module, ptx));
  cuModuleGetFunction(&function, module, "bad");
  fprintf(stderr, "launch %d\n", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
  cuLaunchHostFunc(s, [](void*) { called = called + 1; }, nullptr);
  cuEventRecord(e, s);
#else
  cuStreamWaitValue32_v2(s, reinterpret_cast<CUdeviceptr>(pinned), 1, 0);
  cuLaunchHostFunc(s, [](void*) { called = called + 1; }, nullptr);
  cuEventRecord(e, s);
  shoalSimInjectError(0, CUDA_ERROR_ILLEGAL_ADDRESS);
#endif
  say("cuStreamSynchronize", cuStreamSynchronize(s));
  say("cuStreamSynchronize again", cuStreamSynchronize(s));
  say("other cuStreamSynchronize", cuStreamSynchronize(other));
  say("cuStreamQuery", cuStreamQuery(s));
  say("cuEventQuery", cuEventQuery(e));
  say("cuEventSynchronize", cuEventSynchronize(e));
  say("recorded before cuEventQuery", cuEventQuery(recorded));
  say("cuCtxSynchronize", cuCtxSynchronize());
  say("cuMemAlloc", cuMemAlloc_v2(&p, 16));
  say("cuMemAlloc NULL", cuMemAlloc_v2(nullptr, 16));
  say("cuMemcpyDtoH", cuMemcpyDtoH_v2(&number, d, 4));
  say("cuMemcpyDtoH bogus", cuMemcpyDtoH_v2(&number, 4096, 4));
  say("cuMemsetD8Async", cuMemsetD8Async(d, 0, 4, other));
  say("cuStreamCreate", cuStreamCreate(&s, 0));
  say("cuEventCreate", cuEventCreate(&e, 0));
  say("cuEventRecord", cuEventRecord(recorded, other));
  say("cuLaunchHostFunc", cuLaunchHostFunc(other, [](void*) { called = called + 1; }, nullptr));
  say("cuStreamWaitEvent", cuStreamWaitEvent(other, recorded, 0));
  say("cuCtxGetDevice", cuCtxGetDevice(&number));
  say("cuCtxGetFlags", cuCtxGetFlags(&flags));
  say("cuCtxGetCurrent", cuCtxGetCurrent(&context));
  say("cuCtxSetCurrent", cuCtxSetCurrent(context));
  say("cuCtxPushCurrent", cuCtxPushCurrent_v2(context));
  say("cuCtxPopCurrent", cuCtxPopCurrent_v2(nullptr));
  say("cuCtxGetApiVersion", cuCtxGetApiVersion(context, &flags));
  say("cuCtxGetStreamPriorityRange", cuCtxGetStreamPriorityRange(&number, &number));
  say("cuMemGetInfo", cuMemGetInfo_v2(&size, &size));
  say("cuDeviceGetAttribute", cuDeviceGetAttribute(&number, 1, 0));
  say("cuDeviceGetCount", cuDeviceGetCount(&number));
  say("cuPointerGetAttribute", cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
  say("cuMemGetAddressRange", cuMemGetAddressRange_v2(&p, &size, d));
  say("cuStreamGetFlags", cuStreamGetFlags(other, &flags));
  say("cuMemHostAlloc", cuMemHostAlloc(&pinned, 64, 0));
  say("cuMemFreeHost", cuMemFreeHost(pinned));
  say("cuMemFree", cuMemFree_v2(d));
  say("cuEventDestroy", cuEventDestroy_v2(recorded));
  say("cuStreamDestroy", cuStreamDestroy_v2(other));
  say("host functions called", called);
  say("primary retain", cuDevicePrimaryCtxRetain(&context, 0));
  say("cuCtxCreate", cuCtxCreate_v2(&context, 0, 0));
  say("primary release", cuDevicePrimaryCtxRelease_v2(0));
  say("primary reset", cuDevicePrimaryCtxReset_v2(0));
  say("retain after reset", cuDevicePrimaryCtxRetain(&context, 0));
  say("set current after reset", cuCtxSetCurrent(context));
  say("cuMemAlloc after reset", cuMemAlloc_v2(&p, 16));
}

}  // namespace ask
