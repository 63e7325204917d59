// Prints how a CUDA driver answers in the corners of its API, one `group.name = code` a line. Linked to a real libcuda it
// tells what hardware does; linked to the software device it must print the same (test/behaviour.test.ts).
// Each group runs in a process of its own, so that what crashes or poisons a driver ends with its group.
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "shoal/cuda.h"

namespace {

std::string group;

void say(const char* name, long long value) {
  printf("%s.%s = %lld\n", group.c_str(), name, value);
  fflush(stdout);
}

// For calls that may bring the process down: they are tried in a child, made before anything was initialised.
struct Group {
  const char* name;
  std::function<void()> body;
};

CUcontext primary(int device = 0) {
  CUcontext context = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
  return context;
}

template <class Handle>
Handle wild(uint64_t value) {
  return reinterpret_cast<Handle>(value);
}

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

void devices() {
  cuInit(0);
  int number = -7, count = 0;
  char text[64] = "unchanged";
  CUuuid uuid;
  unsigned mask = 0;
  size_t size = 0;
  cuDeviceGetCount(&count);
  say("cuDeviceGet(-1)", cuDeviceGet(&number, -1));
  say("cuDeviceGet(count)", cuDeviceGet(&number, count));
  say("cuDeviceGetName(4)", cuDeviceGetName(text, 4, 0));
  say("cuDeviceGetName(4) length", static_cast<long long>(strnlen(text, 64)));
  say("cuDeviceGetName(bad device)", cuDeviceGetName(text, 10, 99));
  say("cuDeviceGetUuid(bad device)", cuDeviceGetUuid_v2(&uuid, 99));
  say("cuDeviceGetLuid", cuDeviceGetLuid(text, &mask, 0));
  say("cuDeviceTotalMem(bad device)", cuDeviceTotalMem_v2(&size, 99));
  say("cuDeviceGetAttribute(0)", cuDeviceGetAttribute(&number, 0, 0));
  say("cuDeviceGetAttribute(148)", cuDeviceGetAttribute(&number, 148, 0));
  say("cuDeviceGetAttribute(100000)", cuDeviceGetAttribute(&number, 100000, 0));
  say("cuDeviceGetAttribute(bad device)", cuDeviceGetAttribute(&number, 1, 99));
  for (int attribute = 1; attribute <= 147; ++attribute) {
    number = -12345;
    const int status = cuDeviceGetAttribute(&number, attribute, 0);
    char name[32];
    snprintf(name, sizeof name, "attribute %d", attribute);
    say(name, status);
    fprintf(stderr, "attribute %d = %d\n", attribute, number);
  }
  say("cuDeviceGetPCIBusId(0)", cuDeviceGetPCIBusId(text, 0, 0));
  say("cuDeviceGetPCIBusId(5)", cuDeviceGetPCIBusId(text, 5, 0));
  say("cuDeviceGetPCIBusId(12)", cuDeviceGetPCIBusId(text, 12, 0));
  say("cuDeviceGetPCIBusId(13)", cuDeviceGetPCIBusId(text, 13, 0));
  say("cuDeviceGetPCIBusId length", static_cast<long long>(strnlen(text, 64)));
  say("cuDeviceGetByPCIBusId(own)", cuDeviceGetByPCIBusId(&number, text));
  say("cuDeviceGetByPCIBusId(garbage)", cuDeviceGetByPCIBusId(&number, "garbage"));
  say("cuDeviceGetByPCIBusId(absent)", cuDeviceGetByPCIBusId(&number, "0000:fe:1f.0"));
  say("cuDeviceGetExecAffinitySupport", cuDeviceGetExecAffinitySupport(&number, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
  say("cuDeviceGetExecAffinitySupport(7)", cuDeviceGetExecAffinitySupport(&number, static_cast<CUexecAffinityType>(7), 0));
  say("cuDeviceCanAccessPeer(self)", cuDeviceCanAccessPeer(&number, 0, 0));
  say("cuDeviceCanAccessPeer(self) value", number);
  say("cuDeviceCanAccessPeer(bad)", cuDeviceCanAccessPeer(&number, 0, 99));
  say("cuDeviceGetP2PAttribute(self)", cuDeviceGetP2PAttribute(&number, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
  say("cuDeviceGetP2PAttribute(bad device)", cuDeviceGetP2PAttribute(&number, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 99));
  if (count > 1) {
    say("cuDeviceCanAccessPeer", cuDeviceCanAccessPeer(&number, 0, 1));
    say("cuDeviceCanAccessPeer value", number);
    for (int attribute = 0; attribute <= 6; ++attribute) {
      number = -7;
      const int status = cuDeviceGetP2PAttribute(&number, static_cast<CUdevice_P2PAttribute>(attribute), 0, 1);
      char name[48];
      snprintf(name, sizeof name, "cuDeviceGetP2PAttribute(%d)", attribute);
      say(name, status);
      fprintf(stderr, "p2p %d = %d\n", attribute, number);
    }
  }
}

void contexts() {
  cuInit(0);
  unsigned flags = 0, version = 0;
  int active = -1, device = -1;
  CUcontext first = nullptr, second = nullptr, context = nullptr;
  unsigned long long id1 = 0, id2 = 0;
  CUdeviceptr pointer = 0;
  say("state before", cuDevicePrimaryCtxGetState(0, &flags, &active));
  say("state before active", active);
  say("release before retain", cuDevicePrimaryCtxRelease_v2(0));
  say("reset before retain", cuDevicePrimaryCtxReset_v2(0));
  say("retain(NULL)", cuDevicePrimaryCtxRetain(nullptr, 0));
  say("retain(bad device)", cuDevicePrimaryCtxRetain(&first, 99));
  say("setFlags(bad)", cuDevicePrimaryCtxSetFlags_v2(0, 3));
  say("setFlags(0x1000)", cuDevicePrimaryCtxSetFlags_v2(0, 0x1000));
  say("setFlags(blocking)", cuDevicePrimaryCtxSetFlags_v2(0, 4));
  cuDevicePrimaryCtxGetState(0, &flags, &active);
  say("state flags", flags);
  say("state active", active);
  say("retain", cuDevicePrimaryCtxRetain(&first, 0));
  cuDevicePrimaryCtxGetState(0, &flags, &active);
  say("state flags retained", flags);
  say("state active retained", active);
  say("setFlags(active)", cuDevicePrimaryCtxSetFlags_v2(0, 1));
  cuDevicePrimaryCtxGetState(0, &flags, &active);
  say("state flags changed", flags);
  say("cuCtxGetDevice without current", cuCtxGetDevice(&device));
  say("setCurrent", cuCtxSetCurrent(first));
  cuCtxGetFlags(&flags);
  say("cuCtxGetFlags", flags);
  say("cuCtxSetFlags(bad)", cuCtxSetFlags(3));
  say("cuCtxSetFlags(blocking)", cuCtxSetFlags(4));
  cuCtxGetFlags(&flags);
  say("cuCtxGetFlags changed", flags);
  say("cuCtxGetId", cuCtxGetId(first, &id1));
  say("cuCtxGetId(NULL)", cuCtxGetId(nullptr, &id2));
  say("cuCtxGetId same", id1 == id2);
  say("cuCtxGetId(out NULL)", cuCtxGetId(first, nullptr));
  say("cuCtxGetApiVersion", cuCtxGetApiVersion(first, &version));
  say("cuCtxGetApiVersion value", version);
  say("cuCtxGetApiVersion(NULL)", cuCtxGetApiVersion(nullptr, &version));
  say("cuCtxDestroy(primary)", cuCtxDestroy_v2(first));
  say("after destroy(primary) cuMemAlloc", cuMemAlloc_v2(&pointer, 16));
  say("cuCtxCreate_v2(bad flags)", cuCtxCreate_v2(&context, 3, 0));
  say("cuCtxCreate_v2(0x1000)", cuCtxCreate_v2(&context, 0x1000, 0));
  say("cuCtxCreate_v2(NULL)", cuCtxCreate_v2(nullptr, 0, 0));
  say("cuCtxCreate_v2(bad device)", cuCtxCreate_v2(&context, 0, 99));
  say("cuCtxCreate_v2", cuCtxCreate_v2(&context, 0, 0));
  cuCtxGetFlags(&flags);
  say("created cuCtxGetFlags", flags);
  say("created cuCtxGetApiVersion", cuCtxGetApiVersion(context, &version));
  say("created cuCtxGetApiVersion value", version);
  cuCtxGetCurrent(&second);
  say("created is current", second == context);
  say("cuCtxDestroy", cuCtxDestroy_v2(context));
  cuCtxGetCurrent(&second);
  say("destroyed pops", second == first);
  say("cuCtxCreate_v4(NULL params)", cuCtxCreate_v4(&context, nullptr, 0, 0));
  CUcontext created = context;
  cuCtxPopCurrent_v2(&context);
  say("pop gives created", context == created);
  say("destroy not current", cuCtxDestroy_v2(created));
  cuCtxGetCurrent(&second);
  say("current stays", second == first);
  for (int limit = 0; limit <= 10; ++limit) {
    size_t value = 0;
    char name[32];
    snprintf(name, sizeof name, "cuCtxGetLimit(%d)", limit);
    const int status = cuCtxGetLimit(&value, static_cast<CUlimit>(limit));
    say(name, status);
    fprintf(stderr, "limit %d = %zu\n", limit, value);
    snprintf(name, sizeof name, "cuCtxSetLimit(%d)", limit);
    say(name, cuCtxSetLimit(static_cast<CUlimit>(limit), value));
  }
  say("cuCtxSetLimit(5, 1000)", cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 1000));
  say("cuCtxGetLimit(NULL)", cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE));
  CUfunc_cache cache = -1;
  say("cuCtxGetCacheConfig", cuCtxGetCacheConfig(&cache));
  say("cuCtxSetCacheConfig(1)", cuCtxSetCacheConfig(1));
  cuCtxGetCacheConfig(&cache);
  fprintf(stderr, "cache config after set 1: %d\n", cache);
  say("cuCtxSetCacheConfig(9)", cuCtxSetCacheConfig(9));
  int least = 7, greatest = 7;
  say("priority range", cuCtxGetStreamPriorityRange(&least, &greatest));
  say("priority least", least);
  say("priority greatest", greatest);
  say("priority range(NULL)", cuCtxGetStreamPriorityRange(nullptr, nullptr));
  say("persisting L2", cuCtxResetPersistingL2Cache());
  say("peer access self", cuCtxEnablePeerAccess(first, 0));
  say("second retain", cuDevicePrimaryCtxRetain(&second, 0));
  say("second retain same", first == second);
  say("release 1", cuDevicePrimaryCtxRelease_v2(0));
  say("release 2", cuDevicePrimaryCtxRelease_v2(0));
  say("release 3", cuDevicePrimaryCtxRelease_v2(0));
  say("dead cuCtxGetDevice", cuCtxGetDevice(&device));
  say("dead cuMemAlloc", cuMemAlloc_v2(&pointer, 16));
  say("dead cuCtxSynchronize", cuCtxSynchronize());
  say("dead cuStreamSynchronize(0)", cuStreamSynchronize(nullptr));
  say("dead cuMemGetInfo", cuMemGetInfo_v2(reinterpret_cast<size_t*>(&id1), reinterpret_cast<size_t*>(&id2)));
  say("dead cuCtxGetCurrent", cuCtxGetCurrent(&context));
  say("dead cuCtxGetCurrent same", context == first);
  say("dead cuCtxGetFlags", cuCtxGetFlags(&flags));
  say("dead cuCtxGetId", cuCtxGetId(first, &id2));
  say("dead cuCtxSetCurrent", cuCtxSetCurrent(first));
  say("dead cuCtxPushCurrent", cuCtxPushCurrent_v2(first));
  say("retain again", cuDevicePrimaryCtxRetain(&second, 0));
  say("retain again same handle", first == second);
  say("alive again cuMemAlloc", cuMemAlloc_v2(&pointer, 16));
  cuCtxGetId(second, &id2);
  say("alive again same id", id1 == id2);
  cuDevicePrimaryCtxRetain(&second, 0);
  say("reset", cuDevicePrimaryCtxReset_v2(0));
  cuDevicePrimaryCtxGetState(0, &flags, &active);
  say("reset active", active);
  say("reset flags", flags);
  say("reset cuMemAlloc", cuMemAlloc_v2(&pointer, 16));
  say("reset cuMemFree", cuMemFree_v2(pointer));
  say("release after reset", cuDevicePrimaryCtxRelease_v2(0));
  say("release after reset 2", cuDevicePrimaryCtxRelease_v2(0));
  say("release after reset 3", cuDevicePrimaryCtxRelease_v2(0));
}

// Objects of a context that is gone; one call a process, each may crash a driver.
struct Dead {
  CUcontext context;
  CUstream stream;
  CUevent event;
  CUdeviceptr memory;
  void* host;
};

Dead makeDead(bool isPrimary, bool anotherCurrent) {
  Dead dead = {};
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

using DeadCall = CUresult (*)(Dead&);
struct NamedDeadCall {
  const char* name;
  DeadCall call;
};
const NamedDeadCall deadCalls[] = {
    {"cuStreamQuery", [](Dead& d) { return cuStreamQuery(d.stream); }},
    {"cuStreamSynchronize", [](Dead& d) { return cuStreamSynchronize(d.stream); }},
    {"cuStreamDestroy", [](Dead& d) { return cuStreamDestroy_v2(d.stream); }},
    {"cuEventQuery", [](Dead& d) { return cuEventQuery(d.event); }},
    {"cuEventSynchronize", [](Dead& d) { return cuEventSynchronize(d.event); }},
    {"cuEventRecord", [](Dead& d) { return cuEventRecord(d.event, nullptr); }},
    {"cuEventDestroy", [](Dead& d) { return cuEventDestroy_v2(d.event); }},
    {"cuMemFree", [](Dead& d) { return cuMemFree_v2(d.memory); }},
    {"cuMemFreeHost", [](Dead& d) { return cuMemFreeHost(d.host); }},
    {"cuMemcpyDtoH", [](Dead& d) { char out[16]; return cuMemcpyDtoH_v2(out, d.memory, 16); }},
    {"cuMemcpyDtoHAsync", [](Dead& d) { char out[16]; return cuMemcpyDtoHAsync_v2(out, d.memory, 16, d.stream); }},
    {"cuLaunchHostFunc", [](Dead& d) { return cuLaunchHostFunc(d.stream, [](void*) {}, nullptr); }},
    {"cuPointerGetAttribute", [](Dead& d) { unsigned t; return cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d.memory); }},
    {"cuCtxSetCurrent", [](Dead& d) { return cuCtxSetCurrent(d.context); }},
    {"cuCtxPushCurrent", [](Dead& d) { return cuCtxPushCurrent_v2(d.context); }},
    {"cuCtxGetApiVersion", [](Dead& d) { unsigned v; return cuCtxGetApiVersion(d.context, &v); }},
    {"cuCtxDestroy", [](Dead& d) { return cuCtxDestroy_v2(d.context); }},
    {"cuCtxGetCurrent", [](Dead&) { CUcontext c; return cuCtxGetCurrent(&c); }},
};

// Handles that were destroyed or never existed.
struct NamedStaleCall {
  const char* name;
  CUresult (*call)();
};
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
const NamedStaleCall staleCalls[] = {
    {"cuGetErrorName(NULL)", [] { return cuGetErrorName(CUDA_SUCCESS, nullptr); }},
    {"cuDriverGetVersion(NULL)", [] { return cuDriverGetVersion(nullptr); }},
    {"cuCtxGetCurrent(NULL)", [] { return cuCtxGetCurrent(nullptr); }},
    {"cuDeviceGetCount(NULL)", [] { return cuDeviceGetCount(nullptr); }},
    {"cuDeviceGet(NULL)", [] { return cuDeviceGet(nullptr, 0); }},
    {"cuDeviceGetName(NULL)", [] { return cuDeviceGetName(nullptr, 10, 0); }},
    {"cuDeviceGetName(0)", [] { char text[4]; return cuDeviceGetName(text, 0, 0); }},
    {"cuDeviceGetName(-1)", [] { char text[4]; return cuDeviceGetName(text, -1, 0); }},
    {"cuDeviceGetUuid(NULL)", [] { return cuDeviceGetUuid_v2(nullptr, 0); }},
    {"cuDeviceTotalMem(NULL)", [] { return cuDeviceTotalMem_v2(nullptr, 0); }},
    {"cuDeviceGetAttribute(NULL)", [] { return cuDeviceGetAttribute(nullptr, 1, 0); }},
    {"cuDeviceGetPCIBusId(NULL)", [] { return cuDeviceGetPCIBusId(nullptr, 13, 0); }},
    {"cuDeviceGetByPCIBusId(NULL)", [] { int d; return cuDeviceGetByPCIBusId(&d, nullptr); }},
    {"cuGetProcAddress(NULL symbol)", [] { void* p; return cuGetProcAddress_v2(nullptr, &p, 12000, 0, nullptr); }},
    {"cuGetProcAddress(NULL pfn)", [] { return cuGetProcAddress_v2("cuInit", nullptr, 12000, 0, nullptr); }},
    {"cuModuleGetLoadingMode(NULL)", [] { return cuModuleGetLoadingMode(nullptr); }},
    {"destroyed stream query", [] { return cuStreamQuery(destroyedStream()); }},
    {"destroyed stream destroy", [] { return cuStreamDestroy_v2(destroyedStream()); }},
    {"destroyed stream copy", [] { CUdeviceptr d; cuMemAlloc_v2(&d, 64); return cuMemsetD8Async(d, 0, 64, destroyedStream()); }},
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
    {"null function attribute", [] { int v; return cuFuncGetAttribute(&v, 0, nullptr); }},
    {"null module function", [] { CUfunction f; return cuModuleGetFunction(&f, nullptr, "x"); }},
    {"bad host HtoD", [] { CUdeviceptr d; cuMemAlloc_v2(&d, 64); return cuMemcpyHtoD_v2(d, nullptr, 64); }},
    {"bad host HtoDAsync", [] { CUdeviceptr d; cuMemAlloc_v2(&d, 64); return cuMemcpyHtoDAsync_v2(d, nullptr, 64, nullptr); }},
    {"free(malloc)", [] { return cuMemFree_v2(reinterpret_cast<CUdeviceptr>(malloc(64))); }},
};

void memory() {
  primary();
  CUdeviceptr d = 0, other = 0, base = 0;
  size_t size = 0, total = 0, pitch = 0;
  std::vector<char> h(4096);
  const auto hp = reinterpret_cast<CUdeviceptr>(h.data());
  void* pinned = nullptr;
  unsigned flags = 0;
  say("cuMemAlloc(0)", cuMemAlloc_v2(&d, 0));
  say("cuMemAlloc(NULL)", cuMemAlloc_v2(nullptr, 16));
  say("cuMemAlloc(2^50)", cuMemAlloc_v2(&d, size_t{1} << 50));
  say("cuMemAlloc(2^64-1)", cuMemAlloc_v2(&d, ~size_t{0}));
  cuMemAlloc_v2(&d, 1024);
  cuMemAlloc_v2(&other, 1024);
  say("alignment 256", static_cast<long long>(d % 256));
  say("range of interior", cuMemGetAddressRange_v2(&base, &size, d + 100));
  say("range base", base == d);
  say("range size", static_cast<long long>(size));
  say("range(NULL, NULL)", cuMemGetAddressRange_v2(nullptr, nullptr, d));
  say("range of host", cuMemGetAddressRange_v2(&base, &size, hp));
  say("range of 0", cuMemGetAddressRange_v2(&base, &size, 0));
  say("free interior", cuMemFree_v2(d + 256));
  say("HtoD", cuMemcpyHtoD_v2(d, h.data(), 1024));
  say("HtoD beyond", cuMemcpyHtoD_v2(d, h.data(), 4u << 20));
  say("HtoD 0 bytes", cuMemcpyHtoD_v2(d, h.data(), 0));
  say("HtoD 0 bytes bad pointer", cuMemcpyHtoD_v2(4096, h.data(), 0));
  say("HtoD to 0", cuMemcpyHtoD_v2(0, h.data(), 16));
  say("HtoD to bogus", cuMemcpyHtoD_v2(4096, h.data(), 16));
  say("HtoD to host", cuMemcpyHtoD_v2(hp, h.data(), 16));
  say("HtoD from device", cuMemcpyHtoD_v2(d, reinterpret_cast<void*>(other), 16));
  say("DtoH", cuMemcpyDtoH_v2(h.data(), d, 1024));
  say("DtoH beyond", cuMemcpyDtoH_v2(h.data(), d, 4u << 20 ));
  say("DtoH from host", cuMemcpyDtoH_v2(h.data(), hp, 16));
  say("DtoH to device", cuMemcpyDtoH_v2(reinterpret_cast<void*>(other), d, 16));
  say("DtoD", cuMemcpyDtoD_v2(other, d, 1024));
  say("DtoD overlapping", cuMemcpyDtoD_v2(d + 16, d, 512));
  say("DtoD host", cuMemcpyDtoD_v2(hp, d, 16));
  say("cuMemcpy HtoH", cuMemcpy(hp, hp + 1024, 512));
  say("cuMemcpy HtoD", cuMemcpy(d, hp, 512));
  say("cuMemcpy to 0", cuMemcpy(0, hp, 16));
  say("DtoHAsync", cuMemcpyDtoHAsync_v2(h.data(), d, 1024, nullptr));
  say("DtoHAsync bogus", cuMemcpyDtoHAsync_v2(h.data(), 4096, 16, nullptr));
  say("memset D8", cuMemsetD8_v2(d, 1, 1024));
  say("memset D8 0", cuMemsetD8_v2(d, 1, 0));
  say("memset D8 0 bogus", cuMemsetD8_v2(4096, 1, 0));
  say("memset D8 bogus", cuMemsetD8_v2(4096, 1, 16));
  say("memset D8 beyond", cuMemsetD8_v2(d, 1, 4u << 20));
  say("memset D16 odd", cuMemsetD16_v2(d + 1, 1, 4));
  say("memset D32 +2", cuMemsetD32_v2(d + 2, 1, 4));
  say("memset D8 host", cuMemsetD8_v2(hp, 1, 16));
  say("memset 2D", cuMemsetD2D8_v2(d, 32, 1, 16, 4));
  say("memset 2D pitch small", cuMemsetD2D8_v2(d, 8, 1, 16, 4));
  say("memset 2D pitch odd D32", cuMemsetD2D32_v2(d, 34, 1, 4, 4));
  say("memset 2D width 0", cuMemsetD2D8_v2(d, 32, 1, 0, 4));
  say("memset 2D height 1 pitch 0", cuMemsetD2D8_v2(d, 0, 1, 16, 1));
  say("alloc pitch element 3", cuMemAllocPitch_v2(&base, &pitch, 100, 10, 3));
  say("alloc pitch element 0", cuMemAllocPitch_v2(&base, &pitch, 100, 10, 0));
  say("alloc pitch element 1", cuMemAllocPitch_v2(&base, &pitch, 100, 10, 1));
  say("alloc pitch width 0", cuMemAllocPitch_v2(&base, &pitch, 0, 10, 4));
  say("alloc pitch height 0", cuMemAllocPitch_v2(&base, &pitch, 100, 0, 4));
  say("alloc pitch", cuMemAllocPitch_v2(&base, &pitch, 100, 10, 4));
  say("alloc pitch value", static_cast<long long>(pitch));
  say("alloc pitch 513", cuMemAllocPitch_v2(&base, &pitch, 513, 10, 4));
  say("alloc pitch 513 value", static_cast<long long>(pitch));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = h.data();
  copy.srcPitch = 64;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = d;
  copy.dstPitch = 64;
  copy.WidthInBytes = 32;
  copy.Height = 4;
  say("2D", cuMemcpy2D_v2(&copy));
  copy.dstPitch = 16;
  say("2D pitch small", cuMemcpy2D_v2(&copy));
  copy.dstPitch = 64;
  copy.dstXInBytes = 40;
  say("2D x beyond pitch", cuMemcpy2D_v2(&copy));
  copy.dstXInBytes = 0;
  copy.Height = 0;
  say("2D height 0", cuMemcpy2D_v2(&copy));
  copy.Height = 4;
  copy.WidthInBytes = 0;
  say("2D width 0", cuMemcpy2D_v2(&copy));
  copy.WidthInBytes = 32;
  copy.dstMemoryType = static_cast<CUmemorytype>(9);
  say("2D bad type", cuMemcpy2D_v2(&copy));
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = 0;
  say("2D null device", cuMemcpy2D_v2(&copy));
  copy.dstDevice = d;
  copy.srcPitch = copy.dstPitch = 0;
  for (size_t index = 0; index < 256; ++index) h[index] = static_cast<char>(index);
  cuMemsetD8_v2(d, 0x77, 1024);
  say("2D pitch 0", cuMemcpy2D_v2(&copy));
  std::vector<unsigned char> rows(128);
  cuMemcpyDtoH_v2(rows.data(), d, 128);
  say("2D pitch 0 byte 0", rows[0]);
  say("2D pitch 0 byte 31", rows[31]);
  say("2D pitch 0 byte 32", rows[32]);
  say("2D pitch 0 byte 96", rows[96]);
  copy.Height = 1;
  say("2D pitch 0 height 1", cuMemcpy2D_v2(&copy));
  copy.srcPitch = copy.dstPitch = 64;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  say("2D unified", cuMemcpy2D_v2(&copy));
  say("2D NULL", cuMemcpy2D_v2(nullptr));
  say("host alloc 0", cuMemHostAlloc(&pinned, 0, 0));
  say("host alloc flags 8", cuMemHostAlloc(&pinned, 16, 8));
  say("host alloc", cuMemHostAlloc(&pinned, 4096, 0));
  const auto pp = reinterpret_cast<CUdeviceptr>(pinned);
  say("host flags", cuMemHostGetFlags(&flags, pinned));
  say("host flags value", flags);
  say("host flags interior", cuMemHostGetFlags(&flags, static_cast<char*>(pinned) + 8));
  say("host flags pageable", cuMemHostGetFlags(&flags, h.data()));
  say("host device pointer", cuMemHostGetDevicePointer_v2(&base, pinned, 0));
  say("host device pointer same", base == pp);
  say("host device pointer interior", cuMemHostGetDevicePointer_v2(&base, static_cast<char*>(pinned) + 8, 0));
  say("host device pointer flags", cuMemHostGetDevicePointer_v2(&base, pinned, 1));
  say("host device pointer pageable", cuMemHostGetDevicePointer_v2(&base, h.data(), 0));
  say("host range", cuMemGetAddressRange_v2(&base, &size, pp));
  say("host memset", cuMemsetD8_v2(pp, 1, 16));
  say("host beyond HtoD", cuMemcpyHtoD_v2(d, static_cast<char*>(pinned) + 4000, 512));
  say("host free interior", cuMemFreeHost(static_cast<char*>(pinned) + 8));
  say("host free as device", cuMemFree_v2(pp));
  say("device free as host", cuMemFreeHost(reinterpret_cast<void*>(d)));
  say("host free pageable", cuMemFreeHost(h.data()));
  say("host free", cuMemFreeHost(pinned));
  say("host free twice", cuMemFreeHost(pinned));
  say("host free NULL", cuMemFreeHost(nullptr));
  void* page = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto rp = reinterpret_cast<CUdeviceptr>(page);
  say("register 0 bytes", cuMemHostRegister_v2(page, 0, 0));
  say("register NULL", cuMemHostRegister_v2(nullptr, 4096, 0));
  say("register flags 0x100", cuMemHostRegister_v2(page, 4096, 0x100));
  say("register", cuMemHostRegister_v2(static_cast<char*>(page) + 100, 5000, 0));
  say("register again", cuMemHostRegister_v2(static_cast<char*>(page) + 100, 5000, 0));
  say("register overlapping", cuMemHostRegister_v2(static_cast<char*>(page) + 4000, 5000, 0));
  say("register device", cuMemHostRegister_v2(reinterpret_cast<void*>(d), 16, 0));
  say("registered flags", cuMemHostGetFlags(&flags, static_cast<char*>(page) + 100));
  say("registered flags value", flags);
  say("registered device pointer", cuMemHostGetDevicePointer_v2(&base, static_cast<char*>(page) + 100, 0));
  say("registered memset", cuMemsetD8_v2(rp + 100, 1, 16));
  say("registered free", cuMemFreeHost(static_cast<char*>(page) + 100));
  say("unregister interior", cuMemHostUnregister(static_cast<char*>(page) + 108));
  say("unregister", cuMemHostUnregister(static_cast<char*>(page) + 100));
  say("unregister twice", cuMemHostUnregister(static_cast<char*>(page) + 100));
  say("unregister NULL", cuMemHostUnregister(nullptr));
  say("managed flags 0", cuMemAllocManaged(&base, 4096, 0));
  say("managed flags 3", cuMemAllocManaged(&base, 4096, 3));
  say("managed flags single", cuMemAllocManaged(&base, 4096, 4));
  say("managed 0 bytes", cuMemAllocManaged(&base, 0, 1));
  say("managed", cuMemAllocManaged(&base, 4096, 1));
  say("managed free", cuMemFree_v2(base));
  say("async 0", cuMemAllocAsync(&base, 0, nullptr));
  say("async NULL", cuMemAllocAsync(nullptr, 16, nullptr));
  say("async", cuMemAllocAsync(&base, 4096, nullptr));
  say("async HtoDAsync", cuMemcpyHtoDAsync_v2(base, h.data(), 4096, nullptr));
  say("async free", cuMemFreeAsync(base, nullptr));
  say("async free twice", cuMemFreeAsync(base, nullptr));
  say("async free 0", cuMemFreeAsync(0, nullptr));
  say("async free bogus", cuMemFreeAsync(4096, nullptr));
  say("async free of cuMemAlloc", cuMemFreeAsync(other, nullptr));
  say("cuMemFree after it", cuMemFree_v2(other));
  cuMemAllocAsync(&base, 4096, nullptr);
  say("cuMemFree of async", cuMemFree_v2(base));
  say("cuMemFreeAsync interior", cuMemFreeAsync(d + 256, nullptr));
  say("info NULL", cuMemGetInfo_v2(nullptr, &total));
  say("free", cuMemFree_v2(d));
  say("free twice", cuMemFree_v2(d));
  say("free 0", cuMemFree_v2(0));
  say("free bogus", cuMemFree_v2(4096));
}

void pointers() {
  primary();
  CUdeviceptr d = 0, m = 0;
  void* pinned = nullptr;
  static char plain[64];
  cuMemAlloc_v2(&d, 1024);
  cuMemAllocManaged(&m, 4096, 1);
  cuMemHostAlloc(&pinned, 4096, 0);
  void* page = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cuMemHostRegister_v2(page, 4096, 0);
  struct {
    const char* name;
    CUdeviceptr pointer;
  } kinds[] = {{"device", d}, {"interior", d + 64}, {"managed", m}, {"pinned", reinterpret_cast<CUdeviceptr>(pinned)},
               {"registered", reinterpret_cast<CUdeviceptr>(page)}, {"pageable", reinterpret_cast<CUdeviceptr>(plain)}, {"null", 0}, {"bogus", 4096}};
  for (auto& kind : kinds) {
    for (int attribute = 0; attribute <= 22; ++attribute) {
      unsigned char out[64] = {};
      char name[64];
      snprintf(name, sizeof name, "%s %d", kind.name, attribute);
      const int status = cuPointerGetAttribute(out, static_cast<CUpointer_attribute>(attribute), kind.pointer);
      say(name, status);
      // Values that are plain facts, no addresses.
      uint32_t word = 0;
      memcpy(&word, out, 4);
      const bool isPlain = attribute == 2 || attribute == 6 || attribute == 8 || attribute == 9 || attribute == 13 || attribute == 16;
      if (status == 0 && isPlain) say((std::string(name) + " value").c_str(), word);
      uint64_t wide = 0;
      memcpy(&wide, out, 8);
      if (status == 0) fprintf(stderr, "%s value %llx\n", name, static_cast<unsigned long long>(wide));
      if (status == 0 && attribute == 3) say((std::string(name) + " same").c_str(), wide == kind.pointer);
      if (status == 0 && attribute == 11) say((std::string(name) + " offset").c_str(), static_cast<long long>(kind.pointer - wide));
      if (status == 0 && attribute == 12) say((std::string(name) + " size").c_str(), static_cast<long long>(wide));
    }
    int type = -7, ordinal = -7;
    CUcontext context = wild<CUcontext>(77);
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
    void* out[] = {&type, &ordinal, &context};
    say((std::string(kind.name) + " several").c_str(), cuPointerGetAttributes(3, wanted, out, kind.pointer));
    say((std::string(kind.name) + " several type").c_str(), type);
    say((std::string(kind.name) + " several ordinal").c_str(), ordinal);
    say((std::string(kind.name) + " several has context").c_str(), context != nullptr);
  }
  unsigned one = 1;
  say("set sync", cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, d));
  say("set sync pinned", cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(pinned)));
  say("set type", cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
  say("set NULL", cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, d));
  say("get NULL", cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
  say("several 0", cuPointerGetAttributes(0, nullptr, nullptr, d));
}

void eventsAndStreams() {
  primary();
  CUevent a = nullptr, b = nullptr, quiet = nullptr;
  CUstream s = nullptr, t = nullptr;
  float ms = 0;
  unsigned flags = 9;
  int number = 9;
  unsigned long long id = 0;
  CUcontext context = nullptr;
  CUdeviceptr d = 0;
  void* pinned = nullptr;
  cuMemAlloc_v2(&d, 1024);
  cuMemsetD8_v2(d, 0, 1024);
  cuMemHostAlloc(&pinned, 64, 0);
  memset(pinned, 0, 64);
  say("event NULL", cuEventCreate(nullptr, 0));
  say("event flags 8", cuEventCreate(&a, 8));
  say("event interprocess with timing", cuEventCreate(&a, 4));
  say("event", cuEventCreate(&a, 0));
  cuEventCreate(&b, 0);
  cuEventCreate(&quiet, 2);
  say("query never recorded", cuEventQuery(a));
  say("sync never recorded", cuEventSynchronize(a));
  say("elapsed never recorded", cuEventElapsedTime(&ms, a, b));
  say("elapsed_v2 never recorded", cuEventElapsedTime_v2(&ms, a, b));
  say("wait never recorded", cuStreamWaitEvent(nullptr, a, 0));
  say("record", cuEventRecord(a, nullptr));
  say("elapsed half", cuEventElapsedTime(&ms, a, b));
  say("record quiet", cuEventRecord(quiet, nullptr));
  cuCtxSynchronize();
  say("elapsed quiet", cuEventElapsedTime(&ms, a, quiet));
  say("elapsed same", cuEventElapsedTime(&ms, a, a));
  say("elapsed NULL out", cuEventElapsedTime(nullptr, a, a));
  say("record flags 2", cuEventRecordWithFlags(a, nullptr, 2));
  say("record external", cuEventRecordWithFlags(a, nullptr, 1));
  say("wait flags 2", cuStreamWaitEvent(nullptr, a, 2));
  say("wait external", cuStreamWaitEvent(nullptr, a, 1));
  say("stream NULL", cuStreamCreate(nullptr, 0));
  say("stream flags 2", cuStreamCreate(&s, 2));
  say("stream", cuStreamCreate(&s, 0));
  say("stream priority 7", cuStreamCreateWithPriority(&t, 1, 7));
  cuStreamGetPriority(t, &number);
  say("stream priority 7 value", number);
  say("stream priority -99", cuStreamCreateWithPriority(&t, 1, -99));
  cuStreamGetPriority(t, &number);
  say("stream priority -99 value", number);
  cuStreamGetFlags(t, &flags);
  say("stream flags value", flags);
  say("stream 0 flags", cuStreamGetFlags(nullptr, &flags));
  say("stream 0 flags value", flags);
  say("stream 1 flags", cuStreamGetFlags(CU_STREAM_LEGACY, &flags));
  say("stream 2 flags", cuStreamGetFlags(CU_STREAM_PER_THREAD, &flags));
  say("stream 2 flags value", flags);
  say("stream 0 priority", cuStreamGetPriority(nullptr, &number));
  say("stream 0 id", cuStreamGetId(nullptr, &id));
  fprintf(stderr, "stream id 0: %llu\n", id);
  say("stream 2 id", cuStreamGetId(CU_STREAM_PER_THREAD, &id));
  fprintf(stderr, "stream id 2: %llu\n", id);
  say("stream 0 ctx", cuStreamGetCtx(nullptr, &context));
  say("stream get NULL", cuStreamGetFlags(s, nullptr));
  say("stream get ctx NULL", cuStreamGetCtx(s, nullptr));
  CUstreamCaptureStatus capture;
  say("stream capturing 0", cuStreamIsCapturing(nullptr, &capture));
  say("stream capturing NULL", cuStreamIsCapturing(s, nullptr));
  say("callback NULL", cuStreamAddCallback(s, nullptr, nullptr, 0));
  say("callback flags", cuStreamAddCallback(s, [](CUstream, CUresult, void*) {}, nullptr, 1));
  say("host function NULL", cuLaunchHostFunc(s, nullptr, nullptr));
  say("write value", cuStreamWriteValue32_v2(s, d, 1, 0));
  say("write value flags 4", cuStreamWriteValue32_v2(s, d, 1, 4));
  say("write value odd", cuStreamWriteValue32_v2(s, d + 2, 1, 0));
  say("write value 64 +4", cuStreamWriteValue64_v2(s, d + 4, 1, 0));
  say("write value bogus", cuStreamWriteValue32_v2(s, 4096, 1, 0));
  say("write value pinned", cuStreamWriteValue32_v2(s, reinterpret_cast<CUdeviceptr>(pinned), 5, 0));
  say("wait value", cuStreamWaitValue32_v2(s, d, 1, 0));
  say("wait value flags 8", cuStreamWaitValue32_v2(s, d, 1, 8));
  say("wait value flush", cuStreamWaitValue32_v2(s, d, 1, 1u << 30));
  say("wait value nor", cuStreamWaitValue32_v2(s, d, 0xf0, 3));
  say("wait value odd", cuStreamWaitValue32_v2(s, d + 2, 1, 0));
  say("sync", cuStreamSynchronize(s));
  say("pinned written", *static_cast<volatile unsigned*>(pinned));
  // A wait that is not satisfied keeps the stream busy until the host writes the word.
  auto* word = static_cast<volatile unsigned*>(pinned);
  *word = 0;
  say("busy wait", cuStreamWaitValue32_v2(s, reinterpret_cast<CUdeviceptr>(pinned), 1, 0));
  say("busy query", cuStreamQuery(s));
  say("busy query of stream 0", cuStreamQuery(nullptr));
  say("busy record", cuEventRecord(a, s));
  say("busy event query", cuEventQuery(a));
  say("busy record b", cuEventRecord(b, s));
  say("busy elapsed", cuEventElapsedTime(&ms, a, b));
  say("busy event destroy", cuEventDestroy_v2(b));
  say("busy nonblocking query", cuStreamQuery(t));
  say("busy wait in other", cuStreamWaitEvent(t, a, 0));
  say("busy other query", cuStreamQuery(t));
  *word = 1;
  say("released sync", cuStreamSynchronize(t));
  say("released query", cuStreamQuery(s));
  *word = 0;
  cuStreamWaitValue32_v2(s, reinterpret_cast<CUdeviceptr>(pinned), 1, 0);
  say("destroy busy stream", cuStreamDestroy_v2(s));
  *word = 1;
  say("context sync", cuCtxSynchronize());
  static int inside[9];
  static CUevent done;
  cuEventCreate(&done, 0);
  say("host function", cuLaunchHostFunc(t, [](void* from) {
    CUcontext current;
    CUdeviceptr p;
    inside[0] = cuCtxGetCurrent(&current);
    inside[1] = cuStreamQuery(static_cast<CUstream>(from));
    inside[2] = cuMemAlloc_v2(&p, 16);
    inside[3] = cuDeviceGetCount(&inside[5]);
    inside[4] = cuInit(0);
    inside[6] = cuEventQuery(done);
    inside[7] = cuEventRecord(done, static_cast<CUstream>(from));
    inside[8] = cuStreamQuery(nullptr);
  }, t));
  cuStreamSynchronize(t);
  say("inside host function cuCtxGetCurrent", inside[0]);
  say("inside host function cuStreamQuery", inside[1]);
  say("inside host function cuMemAlloc", inside[2]);
  say("inside host function cuDeviceGetCount", inside[3]);
  say("inside host function cuInit", inside[4]);
  say("inside host function cuEventQuery", inside[6]);
  say("inside host function cuEventRecord", inside[7]);
  say("inside host function cuStreamQuery(0)", inside[8]);
  CUcontext other = nullptr;
  cuCtxCreate_v2(&other, 0, 0);
  CUstream foreign = nullptr;
  cuStreamCreate(&foreign, 0);
  say("record on foreign stream", cuEventRecord(a, foreign));
  say("memset on stream of other context", cuMemsetD8Async(d, 0, 16, t));
  say("query stream of other context", cuStreamQuery(t));
  say("host function on stream of other context", cuLaunchHostFunc(t, [](void*) {}, nullptr));
  say("memset memory of other context", cuMemsetD8_v2(d, 0, 16));
  say("free memory of other context", cuMemFree_v2(d));
  say("wait event of other context", cuStreamWaitEvent(foreign, a, 0));
  CUevent here = nullptr;
  cuEventCreate(&here, 0);
  cuEventRecord(here, foreign);
  cuStreamSynchronize(foreign);
  say("elapsed across contexts", cuEventElapsedTime(&ms, a, here));
  say("destroy stream of other context", cuStreamDestroy_v2(t));
}

void procAddress() {
  void* p = nullptr;
  auto ask = [&](const char* title, const char* symbol, int version, cuuint64_t flags) {
    CUdriverProcAddressQueryResult found = static_cast<CUdriverProcAddressQueryResult>(-1);
    p = reinterpret_cast<void*>(0x77);
    const int status = cuGetProcAddress_v2(symbol, &p, version, flags, &found);
    say(title, status);
    say((std::string(title) + " status").c_str(), static_cast<int>(found));
    say((std::string(title) + " pointer").c_str(), p == nullptr ? 0 : p == reinterpret_cast<void*>(0x77) ? 77 : 1);
    return p;
  };
  ask("unknown", "cuNoSuchFunction", 12000, 0);
  ask("suffixed", "cuMemAlloc_v2", 12000, 0);
  ask("version 0", "cuMemAlloc", 0, 0);
  ask("version 1000", "cuMemAlloc", 1000, 0);
  ask("version 99999", "cuMemAlloc", 99999, 0);
  ask("too old", "cuMemAllocAsync", 11010, 0);
  ask("too old own", "cuMemcpyHtoDAsync", 6000, 2);
  ask("flags 3", "cuMemAlloc", 12000, 3);
  ask("flags 4", "cuMemAlloc", 12000, 4);
  ask("empty", "", 12000, 0);
  say("unknown without status", cuGetProcAddress_v2("cuNoSuchFunction", &p, 12000, 0, nullptr));
  say("unknown by the old function", cuGetProcAddress("cuNoSuchFunction", &p, 12000, 0));
  void* own = ask("own", "cuMemcpyHtoDAsync", 12000, 2);
  void* legacy = ask("legacy", "cuMemcpyHtoDAsync", 12000, 1);
  say("own differs", own != legacy);
  void* create20 = ask("cuCtxCreate 3020", "cuCtxCreate", 3020, 0);
  void* create114 = ask("cuCtxCreate 11040", "cuCtxCreate", 11040, 0);
  void* create125 = ask("cuCtxCreate 12050", "cuCtxCreate", 12050, 0);
  say("cuCtxCreate differ", create20 != create114 && create114 != create125);
  void* v1 = ask("cuGetProcAddress 11030", "cuGetProcAddress", 11030, 0);
  void* v2 = ask("cuGetProcAddress 12000", "cuGetProcAddress", 12000, 0);
  say("cuGetProcAddress differ", v1 != v2);
}

void modules() {
  primary();
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUmoduleLoadingMode mode = 0;
  const char elf[64] = "\177ELF";
  const char badPtx[] = ".version 7.0\n.target sm_50\n.address_size 64\nthis is no ptx\n";
  say("garbage", cuModuleLoadData(&module, "garbage garbage garbage garbage garbage garbage garbage garbage"));
  say("empty", cuModuleLoadData(&module, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
  say("bad ptx", cuModuleLoadData(&module, badPtx));
  say("newer ptx", cuModuleLoadData(&module, ".version 99.0\n.target sm_90\n.address_size 64\n"));
  say("bad elf", cuModuleLoadData(&module, elf));
  say("NULL", cuModuleLoadData(&module, nullptr));
  say("NULL out", cuModuleLoadData(nullptr, badPtx));
  say("missing file", cuModuleLoad(&module, "/nonexistent/file.cubin"));
  say("NULL file", cuModuleLoad(&module, nullptr));
  say("folder", cuModuleLoad(&module, "/tmp"));
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  say("bad ptx with log", cuModuleLoadDataEx(&module, badPtx, 2, options, values));
  say("log is written", log[0] != '\0');
  fprintf(stderr, "log (%zu): %s\n", reinterpret_cast<size_t>(values[1]), log);
  say("library garbage", cuLibraryLoadData(&library, "garbage garbage garbage garbage garbage garbage", nullptr, nullptr, 0, nullptr, nullptr, 0));
  say("library bad ptx", cuLibraryLoadData(&library, badPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  say("library missing file", cuLibraryLoadFromFile(&library, "/nonexistent/x", nullptr, nullptr, 0, nullptr, nullptr, 0));
  say("loading mode", cuModuleGetLoadingMode(&mode));
  say("loading mode value", mode);
}

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

void peers() {
  cuInit(0);
  int count = 0;
  cuDeviceGetCount(&count);
  if (count < 2) return;
  CUcontext one = nullptr, two = nullptr;
  cuDevicePrimaryCtxRetain(&one, 0);
  cuDevicePrimaryCtxRetain(&two, 1);
  CUdeviceptr a = 0, b = 0;
  CUstream s1 = nullptr, s2 = nullptr;
  CUevent e1 = nullptr, e2 = nullptr;
  int number = 0;
  float ms = 0;
  std::vector<char> h(1024);
  cuCtxSetCurrent(two);
  cuMemAlloc_v2(&b, 1024);
  cuStreamCreate(&s2, 0);
  cuEventCreate(&e2, 0);
  cuCtxSetCurrent(one);
  cuMemAlloc_v2(&a, 1024);
  cuStreamCreate(&s1, 0);
  cuEventCreate(&e1, 0);
  say("HtoD to other device", cuMemcpyHtoD_v2(b, h.data(), 16));
  say("DtoH from other device", cuMemcpyDtoH_v2(h.data(), b, 16));
  say("DtoD across", cuMemcpyDtoD_v2(b, a, 16));
  say("DtoDAsync across", cuMemcpyDtoDAsync_v2(b, a, 16, s1));
  say("DtoDAsync across on the other's stream", cuMemcpyDtoDAsync_v2(b, a, 16, s2));
  say("memset of other device", cuMemsetD8_v2(b, 0, 16));
  say("memset own on the other's stream", cuMemsetD8Async(a, 0, 16, s2));
  say("memset other on the other's stream", cuMemsetD8Async(b, 0, 16, s2));
  say("peer copy", cuMemcpyPeer(b, two, a, one, 16));
  say("peer copy wrong contexts", cuMemcpyPeer(b, one, a, two, 16));
  say("peer copy NULL context", cuMemcpyPeer(b, nullptr, a, one, 16));
  say("peer copy async", cuMemcpyPeerAsync(b, two, a, one, 16, s1));
  say("free of other device", cuMemFree_v2(b));
  cuCtxSetCurrent(two);
  cuMemAlloc_v2(&b, 1024);
  cuCtxSetCurrent(one);
  say("query other's stream", cuStreamQuery(s2));
  say("record own event on other's stream", cuEventRecord(e1, s2));
  say("record other's event on other's stream", cuEventRecord(e2, s2));
  say("record on own", cuEventRecord(e1, s1));
  say("wait for other's event", cuStreamWaitEvent(s1, e2, 0));
  cuCtxSynchronize();
  say("elapsed across devices", cuEventElapsedTime(&ms, e1, e2));
  say("write value to other device", cuStreamWriteValue32_v2(s1, b, 1, 0));
  say("enable flags 1", cuCtxEnablePeerAccess(two, 1));
  say("enable NULL", cuCtxEnablePeerAccess(nullptr, 0));
  say("disable before enable", cuCtxDisablePeerAccess(two));
  say("enable", cuCtxEnablePeerAccess(two, 0));
  say("enable twice", cuCtxEnablePeerAccess(two, 0));
  say("memset of peer", cuMemsetD8_v2(b, 0, 16));
  say("disable", cuCtxDisablePeerAccess(two));
  say("disable twice", cuCtxDisablePeerAccess(two));
  say("ordinal of other's memory", cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b));
  say("ordinal of other's memory value", number);
}

void threads() {
  CUcontext context = primary();
  CUcontext seen = nullptr;
  std::thread([&] {
    int device = -1;
    say("thread cuCtxGetCurrent", cuCtxGetCurrent(&seen));
    say("thread current is NULL", seen == nullptr);
    say("thread cuCtxGetDevice", cuCtxGetDevice(&device));
    say("thread cuCtxPushCurrent", cuCtxPushCurrent_v2(context));
    say("thread cuCtxPushCurrent twice", cuCtxPushCurrent_v2(context));
    say("thread cuCtxSetCurrent(NULL)", cuCtxSetCurrent(nullptr));
    cuCtxGetCurrent(&seen);
    say("thread after set NULL", seen == nullptr ? 0 : seen == context ? 1 : 2);
    say("thread pop", cuCtxPopCurrent_v2(&seen));
    say("thread pop again", cuCtxPopCurrent_v2(&seen));
  }).join();
  int pipes[2];
  if (pipe(pipes) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    int answers[3] = {cuInit(0), cuDeviceGetCount(&pipes[0]), cuCtxGetCurrent(&seen)};
    _exit(write(pipes[1], answers, sizeof answers) == sizeof answers ? 0 : 1);
  }
  int answers[3] = {-1, -1, -1};
  if (read(pipes[0], answers, sizeof answers) < 0) perror("read");
  waitpid(child, nullptr, 0);
  say("forked cuInit", answers[0]);
  say("forked cuDeviceGetCount", answers[1]);
  say("forked cuCtxGetCurrent", answers[2]);
}

void runGroup(const std::string& name, const std::function<void()>& body) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    group = name;
    alarm(60);
    body();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    printf("%s ends by signal = %d\n", name.c_str(), WTERMSIG(status));
    fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string only = count > 1 ? arguments[1] : "";
  const Group groups[] = {
      {"before init", beforeInit}, {"without context", withoutContext}, {"devices", devices}, {"contexts", contexts}, {"memory", memory},
      {"pointers", pointers}, {"events and streams", eventsAndStreams}, {"proc address", procAddress}, {"modules", modules},
      {"poisoned", poisoned}, {"peers", peers}, {"threads", threads},
  };
  for (auto& each : groups) {
    if (only.empty() || only == each.name) runGroup(each.name, each.body);
  }
  if (!only.empty() && only != "one call") return 0;
  for (auto& each : deadCalls) {
    for (const bool isPrimary : {true, false}) {
      for (const bool anotherCurrent : {false, true}) {
        const std::string name = std::string(isPrimary ? "dead primary" : "dead created") + (anotherCurrent ? " with another" : "");
        runGroup(name + "." + each.name, [&] {
          Dead dead = makeDead(isPrimary, anotherCurrent);
          say("result", each.call(dead));
        });
      }
    }
  }
  for (auto& each : staleCalls) {
    runGroup(std::string("stale.") + each.name, [&] {
      primary();
      say("result", each.call());
    });
  }
  return 0;
}
