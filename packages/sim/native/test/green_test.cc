// Green contexts, events of contexts, stream attributes, external memory and semaphores.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "check.h"

using check::Primary;

namespace {

CUdevResource all() {
  CUdevResource resource{};
  OK(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  return resource;
}

CUgreenCtx greenOf(CUdevResource part) {
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  OK(cuDevResourceGenerateDesc(&description, &part, 1));
  OK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

}  // namespace

TEST(multiprocessors_are_split_and_none_is_lost) {
  Primary primary;
  const CUdevResource whole = all();
  EQUAL(whole.sm.smCount, 4);
  CUdevResource parts[4], rest;
  unsigned count = 1;
  OK(cuDevSmResourceSplitByCount(parts, &count, &whole, &rest, 0, 1));
  EQUAL(count, 1);
  EQUAL(parts[0].sm.smCount, 2);
  EQUAL(rest.sm.smCount, 2);
  OK(cuDevSmResourceSplitByCount(nullptr, &count, &whole, nullptr, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 1));
  EQUAL(count, 2);
  count = 9;
  OK(cuDevSmResourceSplitByCount(parts, &count, &whole, &rest, 0, 2));
  EQUAL(count, 2);
  EQUAL(rest.type, CU_DEV_RESOURCE_TYPE_INVALID);
  EQUAL(cuDevSmResourceSplitByCount(parts, &count, &whole, &rest, 0, 5), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  EQUAL(cuDevSmResourceSplitByCount(parts, &count, &rest, nullptr, 0, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
  EQUAL(cuDevSmResourceSplitByCount(parts, nullptr, &whole, nullptr, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuDevSmResourceSplitByCount(parts, &count, &whole, nullptr, 8, 1), CUDA_ERROR_INVALID_VALUE);
  CUdevResource forged = whole;
  forged.sm.smCount = 3;
  CUdevResourceDesc description = nullptr;
  EQUAL(cuDevResourceGenerateDesc(&description, &forged, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
}

TEST(a_green_context_is_a_part_of_the_primary_context) {
  Primary primary;
  CUdevResource whole = all(), parts[2];
  unsigned count = 2;
  OK(cuDevSmResourceSplitByCount(parts, &count, &whole, nullptr, 0, 2));
  CUgreenCtx green = greenOf(parts[0]);
  CUcontext context = nullptr, current = nullptr, before = nullptr;
  OK(cuCtxGetCurrent(&before));
  OK(cuCtxFromGreenCtx(&context, green));
  CHECK(context != before);
  OK(cuCtxPushCurrent_v2(context));
  OK(cuCtxGetCurrent(&current));
  CHECK(current == context);
  CUdevResource own;
  OK(cuCtxGetDevResource(nullptr, &own, CU_DEV_RESOURCE_TYPE_SM));
  EQUAL(own.sm.smCount, 2);
  // Memory allocated with a green context current belongs to the primary context.
  CUdeviceptr memory = check::memory(4);
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuCtxPopCurrent_v2(&current));
  CHECK(current == context);
  CUgreenCtx of = nullptr;
  OK(cuStreamGetGreenCtx(stream, &of));
  CHECK(of == green);
  OK(cuMemsetD32Async(memory, 7, 1, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGreenCtxDestroy(green));
  EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EQUAL(cuCtxPushCurrent_v2(context), CUDA_ERROR_INVALID_CONTEXT);
  EQUAL(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuStreamDestroy_v2(stream));
  unsigned value = 0;
  OK(cuMemcpyDtoH_v2(&value, memory, 4));
  EQUAL(value, 7);
  OK(cuMemFree_v2(memory));
}

TEST(an_event_of_a_context_waits_for_all_its_streams) {
  Primary primary;
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  CUstream slow = check::stream();
  CUevent event = nullptr;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  OK(shoalSimStreamDelay(slow, 50000000));
  OK(cuCtxRecordEvent(context, event));
  EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  OK(cuCtxWaitEvent(context, event));
  CUstream later = check::stream();
  EQUAL(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
  OK(cuEventSynchronize(event));
  OK(cuStreamSynchronize(later));
  EQUAL(cuCtxRecordEvent(reinterpret_cast<CUcontext>(12), event), CUDA_ERROR_INVALID_CONTEXT);
  EQUAL(cuCtxRecordEvent(context, nullptr), CUDA_ERROR_INVALID_HANDLE);
  OK(cuStreamDestroy_v2(slow));
  OK(cuStreamDestroy_v2(later));
  OK(cuEventDestroy_v2(event));
}

TEST(attributes_of_streams_are_kept) {
  Primary primary;
  CUstream one = check::stream(), other = check::stream();
  CUlaunchAttributeValue value{};
  OK(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EQUAL(static_cast<int>(value.syncPolicy), -1);
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  OK(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  OK(cuStreamCopyAttributes(other, one));
  memset(&value, 0, sizeof value);
  OK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EQUAL(value.syncPolicy, CU_SYNC_POLICY_YIELD);
  EQUAL(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy_v2(one));
  OK(cuStreamDestroy_v2(other));
}

TEST(external_memory_stays_while_it_is_mapped) {
  Primary primary;
  const int file = memfd_create("external", 0);
  CHECK(ftruncate(file, 8192) == 0);
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC wanted{};
  wanted.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  wanted.handle.fd = dup(file);
  wanted.size = 8192;
  CUexternalMemory memory = nullptr;
  OK(cuImportExternalMemory(&memory, &wanted));
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
  part.offset = 5000;
  part.size = 100;
  CUdeviceptr buffer = 0;
  OK(cuExternalMemoryGetMappedBuffer(&buffer, memory, &part));
  part.size = 8000;
  CUdeviceptr beyond = 0;
  EQUAL(cuExternalMemoryGetMappedBuffer(&beyond, memory, &part), CUDA_ERROR_INVALID_VALUE);
  OK(cuDestroyExternalMemory(memory));
  EQUAL(cuDestroyExternalMemory(memory), CUDA_ERROR_INVALID_HANDLE);
  OK(cuMemsetD8_v2(buffer, 9, 100));
  OK(cuCtxSynchronize());
  EQUAL(cuMemsetD8_v2(buffer, 9, 101), CUDA_ERROR_INVALID_VALUE);
  unsigned char byte = 0;
  CHECK(pread(file, &byte, 1, 5099) == 1);
  EQUAL(byte, 9);
  OK(cuMemFree_v2(buffer));
  EQUAL(cuMemsetD8_v2(buffer, 9, 1), CUDA_ERROR_INVALID_VALUE);
  close(file);
}

TEST(semaphores_order_streams) {
  Primary primary;
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC wanted{};
  wanted.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
  wanted.handle.fd = eventfd(0, 0);
  CUexternalSemaphore semaphore = nullptr;
  OK(cuImportExternalSemaphore(&semaphore, &wanted));
  CUstream waiting = check::stream(), other = check::stream();
  CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait{};
  CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal{};
  OK(cuWaitExternalSemaphoresAsync(&semaphore, &wait, 1, waiting));
  EQUAL(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  OK(cuSignalExternalSemaphoresAsync(&semaphore, &signal, 1, other));
  OK(cuStreamSynchronize(waiting));
  EQUAL(cuWaitExternalSemaphoresAsync(&semaphore, &wait, 0, waiting), CUDA_ERROR_INVALID_VALUE);
  OK(cuDestroyExternalSemaphore(semaphore));
  EQUAL(cuSignalExternalSemaphoresAsync(&semaphore, &signal, 1, other), CUDA_ERROR_INVALID_HANDLE);
  OK(cuStreamDestroy_v2(waiting));
  OK(cuStreamDestroy_v2(other));
}

TEST(managed_memory_is_prefetched_in_batches) {
  Primary primary;
  CUdeviceptr memory[2] = {0, 0};
  for (auto& each : memory) OK(cuMemAllocManaged(&each, 4096, CU_MEM_ATTACH_GLOBAL));
  size_t sizes[2] = {4096, 4096}, firsts[2] = {0, 1};
  CUmemLocation locations[2] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, {CU_MEM_LOCATION_TYPE_HOST, 0}};
  CUstream stream = check::stream();
  OK(cuMemPrefetchBatchAsync(memory, sizes, 2, locations, firsts, 2, 0, stream));
  int seen[2] = {7, 7};
  for (int index = 0; index < 2; ++index) {
    OK(cuMemRangeGetAttribute(&seen[index], sizeof(int), CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory[index],
                              4096));
  }
  EQUAL(seen[0], 0);
  EQUAL(seen[1], -1);
  OK(cuMemDiscardBatchAsync(memory, sizes, 2, 0, stream));
  EQUAL(cuMemPrefetchBatchAsync(memory, sizes, 2, locations, firsts, 2, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  firsts[0] = 1;
  EQUAL(cuMemPrefetchBatchAsync(memory, sizes, 2, locations, firsts, 2, 0, stream), CUDA_ERROR_INVALID_VALUE);
  for (auto each : memory) OK(cuMemFree_v2(each));
  OK(cuStreamDestroy_v2(stream));
}
