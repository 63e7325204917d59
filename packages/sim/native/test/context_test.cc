// Initialisation, devices and contexts.
#include <sys/wait.h>

#include <thread>

#include "check.h"

using check::Primary;

// The first test of the file, so that nothing is initialised yet.
TEST(nothing_works_before_init) {
  int number = 0;
  CUdeviceptr pointer = 0;
  CUcontext context = nullptr;
  EQUAL(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
  EQUAL(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_NOT_INITIALIZED);
  EQUAL(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
  OK(cuDriverGetVersion(&number));
  EQUAL(number, 13000);
  EQUAL(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_client_can_tell_that_it_is_the_software_device) {
  OK(cuInit(0));
  char name[64];
  OK(cuDeviceGetName(name, sizeof name, 0));
  CHECK(strcmp(name, "Shoal Software Device") == 0);
  CHECK(strstr(shoalSimDescribe(), "software") != nullptr);
  int count = 0;
  OK(cuDeviceGetCount(&count));
  EQUAL(count, 2);
  OK(cuDeviceGetName(name, 6, 0));
  CHECK(strcmp(name, "Shoal") == 0);
}

TEST(devices_identify_themselves) {
  CUuuid first, second;
  OK(cuDeviceGetUuid_v2(&first, 0));
  OK(cuDeviceGetUuid_v2(&second, 1));
  CHECK(memcmp(&first, &second, sizeof first) != 0);
  char bus[32];
  CUdevice device = -1;
  for (int ordinal = 0; ordinal < 2; ++ordinal) {
    OK(cuDeviceGetPCIBusId(bus, sizeof bus, ordinal));
    OK(cuDeviceGetByPCIBusId(&device, bus));
    EQUAL(device, ordinal);
  }
  EQUAL(cuDeviceGetByPCIBusId(&device, "nonsense"), CUDA_ERROR_INVALID_VALUE);
  size_t bytes = 0;
  OK(cuDeviceTotalMem_v2(&bytes, 0));
  EQUAL(bytes, size_t{1} << 30);
  int value = 0;
  for (int attribute = 1; attribute <= 147; ++attribute) OK(cuDeviceGetAttribute(&value, attribute, 0));
  EQUAL(cuDeviceGetAttribute(&value, 148, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuDeviceGetAttribute(&value, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuDeviceGetAttribute(&value, 1, 2), CUDA_ERROR_INVALID_DEVICE);
}

TEST(calls_need_a_current_context) {
  CUdeviceptr pointer = 0;
  CUstream stream = nullptr;
  EQUAL(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_INVALID_CONTEXT);
  EQUAL(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  EQUAL(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(the_primary_context_is_counted) {
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 0;
  int active = 1;
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EQUAL(active, 0);
  EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuDevicePrimaryCtxRetain(&first, 0));
  OK(cuDevicePrimaryCtxRetain(&second, 0));
  CHECK(first == second);
  OK(cuCtxSetCurrent(first));
  OK(cuDevicePrimaryCtxRelease_v2(0));
  OK(cuCtxSynchronize());
  CUdeviceptr memory = check::memory(1024);
  OK(cuDevicePrimaryCtxRelease_v2(0));
  EQUAL(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuDevicePrimaryCtxRetain(&second, 0));
  CHECK(first == second);
  OK(cuCtxSynchronize());
  EQUAL(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  OK(cuDevicePrimaryCtxRelease_v2(0));
  OK(cuCtxSetCurrent(nullptr));
}

TEST(each_thread_has_a_stack_of_contexts) {
  Primary primary;
  CUcontext made = nullptr, now = nullptr;
  OK(cuCtxCreate_v2(&made, 0, 1));
  OK(cuCtxGetCurrent(&now));
  CHECK(now == made);
  int device = -1;
  OK(cuCtxGetDevice(&device));
  EQUAL(device, 1);
  std::thread([&] {
    CUcontext here = made;
    OK(cuCtxGetCurrent(&here));
    CHECK(here == nullptr);
    OK(cuCtxPushCurrent_v2(made));
    OK(cuCtxPushCurrent_v2(primary.context));
    OK(cuCtxPopCurrent_v2(&here));
    CHECK(here == primary.context);
    OK(cuCtxGetDevice(&device));
    EQUAL(device, 1);
  }).join();
  OK(cuCtxPopCurrent_v2(&now));
  CHECK(now == made);
  OK(cuCtxGetCurrent(&now));
  CHECK(now == primary.context);
  OK(cuCtxDestroy_v2(made));
  // The handle can still be made current, but no work is possible.
  OK(cuCtxPushCurrent_v2(made));
  EQUAL(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuCtxPopCurrent_v2(nullptr));
  EQUAL(cuCtxDestroy_v2(made), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EQUAL(cuCtxPushCurrent_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(objects_of_a_destroyed_context_are_refused) {
  Primary primary;
  CUcontext made = nullptr;
  OK(cuCtxCreate_v2(&made, 0, 0));
  CUstream stream = check::stream();
  CUevent event = check::event();
  OK(cuEventRecord(event, stream));
  CUdeviceptr memory = check::memory(64);
  OK(cuCtxDestroy_v2(made));
  EQUAL(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EQUAL(cuEventQuery(event), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EQUAL(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemsetD8Async(memory, 0, 64, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(destroying_a_context_ends_waits_that_nobody_satisfies) {
  CUcontext made = nullptr;
  OK(cuInit(0));
  OK(cuCtxCreate_v2(&made, 0, 0));
  CUdeviceptr word = check::memory(4);
  OK(cuMemsetD32_v2(word, 0, 1));
  CUstream stream = check::stream();
  OK(cuStreamWaitValue32_v2(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  OK(cuCtxDestroy_v2(made));
}

TEST(a_forked_child_has_no_device) {
  Primary primary;
  const pid_t child = fork();
  if (child == 0)
    _exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EQUAL(status, 0);
}

TEST(limits_and_settings_are_kept) {
  Primary primary;
  size_t value = 0;
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EQUAL(value, 4096);
  unsigned long long id = 0, same = 0;
  OK(cuCtxGetId(primary.context, &id));
  OK(cuCtxGetId(nullptr, &same));
  EQUAL(id, same);
  int least = 1, greatest = 1;
  OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  EQUAL(least, 0);
  EQUAL(greatest, -5);
}

TEST(peer_access_is_switched_on_and_off) {
  Primary primary;
  Primary second(1);
  OK(cuCtxEnablePeerAccess(primary.context, 0));
  EQUAL(cuCtxEnablePeerAccess(primary.context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  OK(cuCtxDisablePeerAccess(primary.context));
  EQUAL(cuCtxDisablePeerAccess(primary.context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

TEST(modules_go_with_their_context) {
  const char* ptx =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .global .align 4 .b8 table[33554432];\n.visible .entry nothing() { ret; }\n";
  OK(cuInit(0));
  CUcontext context = nullptr;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxPushCurrent_v2(context));
  size_t before = 0, after = 0, total = 0;
  OK(cuMemGetInfo_v2(&before, &total));
  for (int round = 0; round < 100; ++round) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, "nothing"));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    OK(cuDevicePrimaryCtxReset_v2(0));
    // The context still exists, but not the modules that were loaded into it.
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    EQUAL(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
    EQUAL(cuModuleGetFunction(&function, module, "nothing"), CUDA_ERROR_INVALID_HANDLE);
    EQUAL(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  }
  OK(cuMemGetInfo_v2(&after, &total));
  EQUAL(after, before);
}
