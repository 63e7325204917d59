// Memory and events for other processes: shareable handles, legacy handles.
#include <fcntl.h>

#include "mapped.h"

namespace ask {

void shareableHandles() {
  primary();
  const auto handle = make(kPiece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), own = make(kPiece);
  int descriptor = -1;
  CUmemGenericAllocationHandle imported = 0;
  constexpr auto posix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  say("export", cuMemExportToShareableHandle(&descriptor, handle, posix, 0));
  say("export closes on exec", (fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  int other = -1;
  say("export flags 1", cuMemExportToShareableHandle(&other, handle, posix, 1));
  say("export NULL", cuMemExportToShareableHandle(nullptr, handle, posix, 0));
  say("export type 0", cuMemExportToShareableHandle(&other, handle, CU_MEM_HANDLE_TYPE_NONE, 0));
  say("export win32", cuMemExportToShareableHandle(&other, handle, CU_MEM_HANDLE_TYPE_WIN32, 0));
  say("export two types", cuMemExportToShareableHandle(&other, handle, static_cast<CUmemAllocationHandleType>(9), 0));
  CUmemFabricHandle fabric;
  say("export fabric", cuMemExportToShareableHandle(&fabric, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  say("export of what is not shareable", cuMemExportToShareableHandle(&other, own, posix, 0));
  say("import", cuMemImportFromShareableHandle(&imported, asPointer(descriptor), posix));
  say("import is another handle", imported != handle);
  CUmemAllocationProp read = {};
  say("import properties", cuMemGetAllocationPropertiesFromHandle(&read, imported));
  say("import properties types", read.requestedHandleTypes);
  const CUdeviceptr range = reserve(2 * kPiece);
  cuMemMap(range, kPiece, 0, handle, 0);
  say("import map", cuMemMap(range + kPiece, kPiece, 0, imported, 0));
  allow(range, kPiece);
  allow(range + kPiece, kPiece);
  cuMemsetD8_v2(range, 42, kPiece);
  unsigned char byte = 0;
  cuMemcpyDtoH_v2(&byte, range + kPiece + 77, 1);
  say("import is the same memory", byte);
  say("import exported again", cuMemExportToShareableHandle(&other, imported, posix, 0));
  for (auto& [name, at] : {std::pair<const char*, CUdeviceptr>{"own", range}, {"import", range + kPiece}}) {
    unsigned long long types = 77;
    cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at);
    say(std::string(name) + " handle types", static_cast<long long>(types));
  }
  say("import again", cuMemImportFromShareableHandle(&imported, asPointer(descriptor), posix));
  say("import NULL", cuMemImportFromShareableHandle(nullptr, asPointer(descriptor), posix));
  say("import type 0", cuMemImportFromShareableHandle(&imported, asPointer(descriptor), CU_MEM_HANDLE_TYPE_NONE));
  say("import as win32", cuMemImportFromShareableHandle(&imported, asPointer(descriptor), CU_MEM_HANDLE_TYPE_WIN32));
  close(descriptor);
  say("import closed", cuMemImportFromShareableHandle(&imported, asPointer(descriptor), posix));
  say("import -1", cuMemImportFromShareableHandle(&imported, asPointer(-1), posix));
  const int plain = open("/proc/self/exe", O_RDONLY);
  say("import plain file", cuMemImportFromShareableHandle(&imported, asPointer(plain), posix));
  int ends[2];
  if (pipe(ends) == 0) say("import pipe", cuMemImportFromShareableHandle(&imported, asPointer(ends[0]), posix));
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = posix;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr, importedPool = nullptr;
  cuMemPoolCreate(&pool, &properties);
  say("pool export", cuMemPoolExportToShareableHandle(&descriptor, pool, posix, 0));
  say("pool as memory", cuMemImportFromShareableHandle(&imported, asPointer(descriptor), posix));
  say("pool import in its process", cuMemPoolImportFromShareableHandle(&importedPool, asPointer(descriptor), posix, 0));
  say("plain file as pool", cuMemPoolImportFromShareableHandle(&importedPool, asPointer(plain), posix, 0));
  int memoryDescriptor = -1;
  cuMemExportToShareableHandle(&memoryDescriptor, handle, posix, 0);
  say("memory as pool", cuMemPoolImportFromShareableHandle(&importedPool, asPointer(memoryDescriptor), posix, 0));
  CUdeviceptr memory = 0;
  cuMemAllocFromPoolAsync(&memory, 4096, pool, nullptr);
  CUmemPoolPtrExportData data;
  say("pointer export", cuMemPoolExportPointer(&data, memory));
  say("pointer export interior", cuMemPoolExportPointer(&data, memory + 512));
  say("pointer export NULL", cuMemPoolExportPointer(nullptr, memory));
  CUdeviceptr plainMemory = 0;
  cuMemAlloc_v2(&plainMemory, 64);
  say("pointer export of cuMemAlloc", cuMemPoolExportPointer(&data, plainMemory));
}

void legacyIpc() {
  // The other process is made before this one initialises.
  int out[2], back[2];
  if (pipe(out) != 0 || pipe(back) != 0) return;
  struct Sent {
    CUipcMemHandle memory, interior, freed;
    CUipcEventHandle event, destroyed;
  } sent;
  const pid_t child = fork();
  if (child == 0) {
    close(back[1]);  // so that the parent's end is seen
    primary();
    CUdeviceptr memory = 0;
    CUevent event = nullptr;
    cuMemAlloc_v2(&memory, 10000);
    cuMemsetD8_v2(memory, 42, 10000);
    cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    cuEventRecord(event, nullptr);
    cuCtxSynchronize();
    Sent mine;
    cuIpcGetMemHandle(&mine.memory, memory);
    cuIpcGetMemHandle(&mine.interior, memory + 5000);
    cuIpcGetEventHandle(&mine.event, event);
    CUdeviceptr freed = 0;
    CUevent destroyed = nullptr;
    cuMemAlloc_v2(&freed, 8 << 20);
    cuIpcGetMemHandle(&mine.freed, freed);
    cuMemFree_v2(freed);
    cuEventCreate(&destroyed, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    cuIpcGetEventHandle(&mine.destroyed, destroyed);
    cuEventDestroy_v2(destroyed);
    char byte;
    _exit(write(out[1], &mine, sizeof mine) == sizeof mine && read(back[0], &byte, 1) >= 0 ? 0 : 1);
  }
  if (read(out[0], &sent, sizeof sent) != sizeof sent) return;
  primary();
  CUdeviceptr memory = 0, again = 0, own = 0, base = 0;
  size_t size = 0;
  say("open flags 0", cuIpcOpenMemHandle_v2(&memory, sent.memory, 0));
  say("open NULL", cuIpcOpenMemHandle_v2(nullptr, sent.memory, 1));
  say("open", cuIpcOpenMemHandle_v2(&memory, sent.memory, 1));
  say("open again", cuIpcOpenMemHandle_v2(&again, sent.memory, 1));
  say("open again same", again == memory);
  say("open interior", cuIpcOpenMemHandle_v2(&again, sent.interior, 1));
  say("open interior same", again == memory);
  unsigned char byte = 0;
  cuMemcpyDtoH_v2(&byte, memory + 9999, 1);
  say("open value", byte);
  say("open range", cuMemGetAddressRange_v2(&base, &size, memory));
  say("open range size", static_cast<long long>(size));
  say("open cuMemFree", cuMemFree_v2(memory));
  CUipcMemHandle handle;
  say("get of opened", cuIpcGetMemHandle(&handle, memory));
  say("close interior", cuIpcCloseMemHandle(memory + 256));
  say("close", cuIpcCloseMemHandle(memory));
  say("close 2", cuIpcCloseMemHandle(memory));
  say("close 3", cuIpcCloseMemHandle(memory));
  say("close 4", cuIpcCloseMemHandle(memory));
  CUevent event = nullptr, mine = nullptr, plain = nullptr;
  CUipcEventHandle eventHandle;
  float ms = 0;
  say("event open", cuIpcOpenEventHandle(&event, sent.event));
  say("event query", cuEventQuery(event));
  say("event wait", cuStreamWaitEvent(nullptr, event, 0));
  say("event record", cuEventRecord(event, nullptr));
  say("event sync", cuEventSynchronize(event));
  say("event elapsed", cuEventElapsedTime(&ms, event, event));
  say("event get of opened", cuIpcGetEventHandle(&eventHandle, event));
  say("event open NULL", cuIpcOpenEventHandle(nullptr, sent.event));
  say("event destroy", cuEventDestroy_v2(event));
  say("open freed", cuIpcOpenMemHandle_v2(&memory, sent.freed, 1));
  say("event open destroyed", cuIpcOpenEventHandle(&event, sent.destroyed));
  cuMemAlloc_v2(&own, 1000);
  cuEventCreate(&mine, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
  cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING);
  say("get", cuIpcGetMemHandle(&handle, own));
  say("open own", cuIpcOpenMemHandle_v2(&memory, handle, 1));
  say("get interior", cuIpcGetMemHandle(&handle, own + 256));
  say("get NULL", cuIpcGetMemHandle(nullptr, own));
  say("get 0", cuIpcGetMemHandle(&handle, 0));
  say("get bogus", cuIpcGetMemHandle(&handle, 4096));
  const CUdeviceptr mappedMemory = mapped();
  allow(mappedMemory, kPiece);
  say("get of mapped", cuIpcGetMemHandle(&handle, mappedMemory));
  CUdeviceptr pooled = 0, managed = 0;
  cuMemAllocAsync(&pooled, 64, nullptr);
  cuMemAllocManaged(&managed, 64, 1);
  void* pinned = nullptr;
  cuMemHostAlloc(&pinned, 64, 0);
  say("get of pooled", cuIpcGetMemHandle(&handle, pooled));
  say("get of managed", cuIpcGetMemHandle(&handle, managed));
  say("get of pinned", cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(pinned)));
  for (auto& [name, pointer] : {std::pair<const char*, CUdeviceptr>{"device", own},
                                {"mapped", mappedMemory},
                                {"pooled", pooled},
                                {"managed", managed}}) {
    int isCapable = -7;
    cuPointerGetAttribute(&isCapable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pointer);
    say(std::string("capable ") + name, isCapable);
  }
  say("close own", cuIpcCloseMemHandle(own));
  say("close 0", cuIpcCloseMemHandle(0));
  say("event get", cuIpcGetEventHandle(&eventHandle, mine));
  say("event open own", cuIpcOpenEventHandle(&event, eventHandle));
  say("event get of plain", cuIpcGetEventHandle(&eventHandle, plain));
  say("event get NULL", cuIpcGetEventHandle(nullptr, mine));
  // The other process ends, orderly.
  close(back[1]);
  waitpid(child, nullptr, 0);
  say("open of ended process", cuIpcOpenMemHandle_v2(&memory, sent.memory, 1));
  say("event open of ended process", cuIpcOpenEventHandle(&event, sent.event));
  say("event query of ended process", cuEventQuery(event));
}

}  // namespace ask
