// Legacy IPC of memory and events between two processes, also if one of them dies.
#include <fcntl.h>

#include <chrono>
#include <iterator>

#include "mapped.h"
#include "process.h"

using check::Primary;
using namespace mapped;

namespace {

CUipcMemHandle handleOf(CUdeviceptr memory) {
  CUipcMemHandle handle;
  OK(cuIpcGetMemHandle(&handle, memory));
  return handle;
}

CUresult open(CUdeviceptr* memory, const CUipcMemHandle& handle) {
  return cuIpcOpenMemHandle_v2(memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

CUevent sharedEvent() { return check::event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING); }

// Exports memory to the parent, then waits for a message or for its death.
void exportMemory(process::Peer& parent) {
  Primary primary;
  check::memory(700);  // so that the next allocation is not page-aligned
  const CUdeviceptr memory = check::memory(10000);
  fill(memory, 21, 10000);
  parent.send(handleOf(memory));
  parent.send(handleOf(memory + 5000));
  parent.receive<int>();
  EQUAL(byteAt(memory + 9999), 22);
  fill(memory, 23, 1);
  parent.send(1);
  parent.receive<int>();
  // A freed allocation cannot be opened any more.
  OK(cuMemFree_v2(memory));
  parent.send(1);
  parent.receive<int>();
}

// Records an event after work that takes a moment, twice.
void recordEvent(process::Peer& parent) {
  Primary primary;
  CUstream stream = check::stream();
  CUevent event = sharedEvent();
  CUipcEventHandle handle;
  OK(cuIpcGetEventHandle(&handle, event));
  const CUdeviceptr memory = check::memory(64);
  parent.send(handle);
  parent.send(handleOf(memory));
  for (unsigned char round = 1; round <= 2; ++round) {
    parent.receive<int>();
    OK(shoalSimStreamDelay(stream, 30000000));
    OK(cuMemsetD8Async(memory, round, 64, stream));
    OK(cuEventRecord(event, stream));
    parent.send(1);
  }
  parent.receive<int>();
  // Now the parent records and this process waits.
  OK(cuStreamWaitEvent(stream, event, 0));
  OK(cuStreamSynchronize(stream));
  EQUAL(byteAt(memory), 9);
  parent.send(1);
  parent.receive<int>();
  // For the test in which this process is killed.
  OK(shoalSimStreamDelay(stream, 60000000000));
  OK(cuEventRecord(event, stream));
  parent.send(1);
  parent.receive<int>();
}

}  // namespace

ROLES({"export memory", exportMemory}, {"record event", recordEvent});

TEST(memory_of_another_process_is_opened) {
  process::Child child("export memory");
  Primary primary;
  const size_t before = freeBytes();
  const auto handle = child.receive<CUipcMemHandle>(), interior = child.receive<CUipcMemHandle>();
  CUdeviceptr memory = 0, again = 0;
  OK(open(&memory, handle));
  EQUAL(byteAt(memory + 9999), 21);
  EQUAL(cuMemcpyHtoD_v2(memory, &before, 10001), CUDA_ERROR_INVALID_VALUE);
  EQUAL(freeBytes(), before);
  int ordinal = -1;
  OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
  EQUAL(ordinal, 0);
  size_t size = 0;
  OK(cuMemGetAddressRange_v2(nullptr, &size, memory));
  EQUAL(size, 10000);
  // A handle names the whole allocation, even if it was taken from its middle. Each open needs its own close.
  OK(open(&again, interior));
  CHECK(again == memory);
  OK(cuIpcCloseMemHandle(memory));
  fill(memory, 22, 10000);
  child.send(1);
  child.receive<int>();
  EQUAL(byteAt(memory), 23);
  EQUAL(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFreeAsync(memory, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUipcMemHandle own;
  EQUAL(cuIpcGetMemHandle(&own, memory), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuIpcCloseMemHandle(memory + 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuIpcCloseMemHandle(memory));
  EQUAL(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemsetD8_v2(memory, 1, 1), CUDA_ERROR_INVALID_VALUE);
  // It can be opened any number of times until it is freed.
  OK(open(&memory, handle));
  OK(cuIpcCloseMemHandle(memory));
  child.send(1);
  child.receive<int>();
  EQUAL(open(&memory, handle), CUDA_ERROR_INVALID_VALUE);
  child.send(1);
  EQUAL(child.wait(), 0);
}

TEST(memory_outlives_the_process_that_made_it) {
  Primary primary;
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  {
    process::Child child("export memory");
    handle = child.receive<CUipcMemHandle>();
    OK(open(&memory, handle));
    child.kill();
  }
  EQUAL(byteAt(memory + 9999), 21);
  fill(memory, 5, 10000);
  EQUAL(byteAt(memory + 9999), 5);
  OK(cuIpcCloseMemHandle(memory));
  EQUAL(open(&memory, handle), CUDA_ERROR_INVALID_HANDLE);
}

TEST(imported_memory_goes_with_its_context) {
  process::Child child("export memory");
  const int descriptors = openDescriptors();
  Primary keep;
  CUdeviceptr memory = 0;
  const auto handle = child.receive<CUipcMemHandle>();
  CUcontext context = nullptr;
  OK(cuCtxCreate_v2(&context, 0, 0));
  OK(open(&memory, handle));
  OK(cuCtxDestroy_v2(context));
  unsigned type = 0;
  EQUAL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory), CUDA_ERROR_INVALID_VALUE);
  OK(open(&memory, handle));
  EQUAL(byteAt(memory), 21);
  OK(cuIpcCloseMemHandle(memory));
  CHECK(openDescriptors() <= descriptors + 4);  // the device's own, and the socket that serves other processes
}

TEST(wrong_memory_handles_are_refused) {
  Primary primary;
  CUipcMemHandle handle = {};
  CUdeviceptr memory = check::memory(64), opened = 0;
  EQUAL(open(&opened, handle), CUDA_ERROR_INVALID_VALUE);
  handle = handleOf(memory);
  // A process cannot open its own memory.
  EQUAL(open(&opened, handle), CUDA_ERROR_INVALID_CONTEXT);
  EQUAL(cuIpcOpenMemHandle_v2(&opened, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(open(nullptr, handle), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuIpcGetMemHandle(nullptr, memory), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuIpcGetMemHandle(&handle, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuIpcGetMemHandle(&handle, 4096), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr pooled = 0;
  OK(cuMemAllocAsync(&pooled, 64, nullptr));
  EQUAL(cuIpcGetMemHandle(&handle, pooled), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(pooled, nullptr));
  void* pinned = nullptr;
  OK(cuMemHostAlloc(&pinned, 64, 0));
  EQUAL(cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(pinned)), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeHost(pinned));
  EQUAL(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuIpcCloseMemHandle(0), CUDA_ERROR_INVALID_VALUE);
  int isCapable = 0;
  OK(cuPointerGetAttribute(&isCapable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory));
  EQUAL(isCapable, 1);
  OK(cuMemFree_v2(memory));
}

TEST(events_order_work_of_two_processes) {
  process::Child child("record event");
  Primary primary;
  CUstream stream = check::stream();
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  OK(cuIpcOpenEventHandle(&event, child.receive<CUipcEventHandle>()));
  OK(open(&memory, child.receive<CUipcMemHandle>()));
  OK(cuEventQuery(event));
  float ms = 0;
  EQUAL(cuEventElapsedTime(&ms, event, event), CUDA_ERROR_INVALID_HANDLE);
  child.send(1);
  child.receive<int>();
  EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  OK(cuEventSynchronize(event));
  OK(cuEventQuery(event));
  EQUAL(byteAt(memory), 1);
  child.send(1);
  child.receive<int>();
  OK(cuStreamWaitEvent(stream, event, 0));
  unsigned char byte = 0;
  void* pinned = nullptr;
  OK(cuMemHostAlloc(&pinned, 64, 0));
  OK(cuMemcpyDtoHAsync_v2(pinned, memory, 64, stream));
  OK(cuStreamSynchronize(stream));
  memcpy(&byte, pinned, 1);
  EQUAL(byte, 2);
  // Now in the other direction.
  OK(shoalSimStreamDelay(stream, 30000000));
  OK(cuMemsetD8Async(memory, 9, 64, stream));
  OK(cuEventRecord(event, stream));
  child.send(1);
  child.receive<int>();
  // The process is killed before its work completes. The wait must still end.
  child.send(1);
  child.receive<int>();
  EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  child.kill();
  OK(cuEventSynchronize(event));
  OK(cuEventQuery(event));
  OK(cuEventDestroy_v2(event));
  OK(cuIpcCloseMemHandle(memory));
  OK(cuMemFreeHost(pinned));
}

TEST(wrong_event_handles_are_refused) {
  Primary primary;
  CUipcEventHandle handle = {};
  CUevent event = nullptr, plain = check::event(CU_EVENT_DISABLE_TIMING), shared = sharedEvent();
  EQUAL(cuIpcGetEventHandle(&handle, plain), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuIpcGetEventHandle(&handle, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuIpcGetEventHandle(nullptr, shared), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_MAP_FAILED);
  OK(cuIpcGetEventHandle(&handle, shared));
  EQUAL(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuEventRecord(shared, nullptr));
  OK(cuEventSynchronize(shared));
  OK(cuEventQuery(shared));
  OK(cuEventDestroy_v2(shared));
  OK(cuEventDestroy_v2(plain));
}
