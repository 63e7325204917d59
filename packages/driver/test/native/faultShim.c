// Wraps functions of the software device, counts their calls and makes chosen calls fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t (*Call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

// Every function here takes integers and pointers only, so one wrapper fits them all.
// clang-format off
#define FUNCTIONS(F) F(cuEventCreate) F(cuEventRecord) F(cuEventDestroy) F(cuStreamDestroy) F(cuMemFree) \
  F(cuMemHostAlloc) \
  F(cuMemFreeHost) F(cuMemcpyHtoDAsync) F(cuMemcpyDtoHAsync) F(cuMemCreate) F(cuMemRelease) F(cuMemMap) F(cuMemUnmap) \
  F(cuMemSetAccess) F(cuMemAddressReserve) F(cuMemAddressFree) F(cuMemExportToShareableHandle) \
  F(cuMemImportFromShareableHandle) F(cuMemRetainAllocationHandle) F(cuMemGetAllocationPropertiesFromHandle) \
  F(cuMulticastCreate) F(cuMulticastAddDevice) F(cuMulticastBindMem) F(cuMulticastUnbind) F(cuMemPoolCreate) \
  F(cuMemPoolDestroy) F(cuMemAllocFromPoolAsync) F(cuCtxSynchronize) F(cuStreamQuery)
// clang-format on

#define INDEX(name) index_##name,
enum { FUNCTIONS(INDEX) count };

static struct {
  Call real;
  uint64_t calls;
  uint64_t failures;
  uint64_t status;
} states[count];

static uint64_t pass(int index, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
  states[index].calls += 1;
  if (states[index].failures == 0) return states[index].real(a, b, c, d, e, f);
  states[index].failures -= 1;
  // Reports success but returns a null result, which an allocation must never do.
  if (states[index].status == 0) *(uint64_t*)(uintptr_t)a = 0;
  return states[index].status;
}

#define WRAPPER(name)                                                                                   \
  static uint64_t wrap_##name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) { \
    return pass(index_##name, a, b, c, d, e, f);                                                        \
  }
FUNCTIONS(WRAPPER)

#define ENTRY(name) {#name, wrap_##name},
static const struct {
  const char* name;
  Call wrapper;
} wrapped[] = {FUNCTIONS(ENTRY)};

static void* sim(void) {
  static void* library;
  if (library == NULL) library = dlopen(getenv("SHIM_SIM"), RTLD_NOW | RTLD_LOCAL);
  return library;
}

static int find(const char* name) {
  int index;
  for (index = 0; index < count; ++index) {
    if (strcmp(name, wrapped[index].name) == 0) return index;
  }
  return -1;
}

EXPORT int shimFail(const char* name, uint64_t times, uint64_t status) {
  const int index = find(name);
  if (index < 0) return 1;
  states[index].failures = times;
  states[index].status = status;
  return 0;
}

EXPORT int shimCalls(const char* name) {
  const int index = find(name);
  return index < 0 ? -1 : (int)states[index].calls;
}

EXPORT int cuDriverGetVersion(int* version) {
  int (*real)(int*) = (int (*)(int*))dlsym(sim(), "cuDriverGetVersion");
  return real(version);
}

EXPORT int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
  int (*real)(const char*, void**, int, uint64_t, int*) =
      (int (*)(const char*, void**, int, uint64_t, int*))dlsym(sim(), "cuGetProcAddress_v2");
  const int result = real(symbol, function, version, flags, status);
  const int index = find(symbol);
  if (result == 0 && index >= 0 && *function != NULL) {
    states[index].real = (Call)*function;
    *function = (void*)wrapped[index].wrapper;
  }
  return result;
}
