/*
 * A driver that does nothing. The remaining time of a call is the package's own, between the method and the function.
 * It has one device, one context, handles, and memory that nothing reads. The loops make the same calls from C.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define API __attribute__((noinline, visibility("default")))
typedef uint64_t u64;

static volatile u64 sink;
static __thread void* current;
static char handles[64];

API int cuInit(unsigned flags) { return sink = flags, 0; }
API int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
API int cuGetErrorName(int status, const char** text) { return *text = status ? "CUDA_ERROR" : "CUDA_SUCCESS", 0; }
API int cuGetErrorString(int status, const char** text) { return *text = status ? "an error" : "no error", 0; }
API int cuDeviceGetCount(int* count) { return *count = 1, 0; }
API int cuDeviceTotalMem_v2(size_t* bytes, int device) { return (void)device, *bytes = (size_t)1 << 37, 0; }
API int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
API int cuDeviceGetName(char* name, int length, int device) {
  return snprintf(name, length, "no device %d", device), 0;
}
API int cuDeviceGetAttribute(int* value, int attribute, int device) { return *value = 1, sink = attribute + device, 0; }
API int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = handles + 1, sink = device, 0; }
API int cuDevicePrimaryCtxRelease_v2(int device) { return sink = device, 0; }
API int cuCtxGetCurrent(void** context) { return *context = current, 0; }
API int cuCtxSetCurrent(void* context) { return current = context, 0; }
API int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return *stream = handles + 16, sink = flags + priority, 0;
}
API int cuStreamDestroy_v2(void* stream) { return sink = (u64)stream, 0; }
API int cuStreamGetId(void* stream, u64* id) { return *id = (u64)stream, 0; }
API int cuEventCreate(void** event, unsigned flags) { return *event = handles + 32, sink = flags, 0; }
API int cuEventDestroy_v2(void* event) { return sink = (u64)event, 0; }
API int cuMemAlloc_v2(u64* address, size_t bytes) { return *address = 0x7f0000000000, sink = bytes, 0; }
API int cuMemFree_v2(u64 address) { return sink = address, 0; }
API int cuMemAllocHost_v2(void** address, size_t bytes) { return *address = handles, sink = bytes, 0; }
API int cuModuleLoadDataEx(void** module, const void* image, unsigned count, void* options, void** values) {
  return *module = handles + 40, sink = (u64)image + count + (u64)options + (u64)values, 0;
}
API int cuModuleUnload(void* module) { return sink = (u64)module, 0; }
API int cuModuleGetFunction(void** function, void* module, const char* name) {
  const int place = strcmp(name, "empty0") == 0 ? 56 : strcmp(name, "empty64") == 0 ? 60 : 48;
  return *function = handles + place, sink = (u64)module + (u64)name, 0;
}
/* Four parameters: f32, two addresses, i32. Exceptions: empty0 has none, and empty64 has one of 64 bytes. */
API int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* size) {
  static const size_t offsets[] = {0, 8, 16, 24}, sizes[] = {4, 8, 8, 4};
  if (function == handles + 60) return *offset = 0, *size = 64, index > 0;
  if (index >= 4 || function == handles + 56) return 1;
  return *offset = offsets[index], *size = sizes[index], sink = (u64)function, 0;
}
API int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return *value = 1024, sink = attribute + (u64)function, 0;
}
API int cuCtxSynchronize(void) { return 0; }
API int cuStreamSynchronize(void* stream) { return sink = (u64)stream, 0; }

/* The measured functions. */
API int cuStreamQuery(void* stream) { return sink = (u64)stream, 0; }
API int cuEventQuery(void* event) { return sink = (u64)event, 0; }
API int cuEventRecord(void* event, void* stream) { return sink = (u64)event + (u64)stream, 0; }
API int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return sink = (u64)stream + (u64)event + flags, 0;
}
API int cuMemsetD8Async(u64 to, unsigned char value, size_t count, void* stream) {
  return sink = to + value + count + (u64)stream, 0;
}
API int cuMemsetD16Async(u64 to, unsigned short value, size_t count, void* stream) {
  return sink = to + value + count + (u64)stream, 0;
}
API int cuMemsetD32Async(u64 to, unsigned value, size_t count, void* stream) {
  return sink = to + value + count + (u64)stream, 0;
}
API int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, void* stream) {
  return sink = to + from + bytes + (u64)stream, 0;
}
API int cuMemcpyHtoD_v2(u64 to, const void* from, size_t bytes) { return sink = to + (u64)from + bytes, 0; }
API int cuMemcpyDtoH_v2(void* to, u64 from, size_t bytes) { return sink = (u64)to + from + bytes, 0; }
API int cuMemcpyHtoDAsync_v2(u64 to, const void* from, size_t bytes, void* stream) {
  return sink = to + (u64)from + bytes + (u64)stream, 0;
}
API int cuMemcpyDtoHAsync_v2(void* to, u64 from, size_t bytes, void* stream) {
  return sink = (u64)to + from + bytes + (u64)stream, 0;
}
API int cuMemAllocAsync(u64* address, size_t bytes, void* stream) {
  return *address = 0x7f0000001000, sink = bytes + (u64)stream, 0;
}
API int cuMemFreeAsync(u64 address, void* stream) { return sink = address + (u64)stream, 0; }
API int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void* stream, void** parameters, void** extra) {
  sink = (u64)f + gx + gy + gz + bx + by + bz + shared + (u64)stream + (u64)parameters + (u64)extra;
  return 0;
}
typedef struct {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, shared;
  void *stream, *attributes;
  unsigned count;
} Config;
API int cuLaunchKernelEx(const Config* config, void* f, void** parameters, void** extra) {
  return sink = config->gridX + config->count + (u64)config->attributes + (u64)f + (u64)parameters + (u64)extra, 0;
}
API int cuGraphCreate(void** graph, unsigned flags) { return *graph = handles + 8, sink = flags, 0; }
API int cuGraphDestroy(void* graph) { return sink = (u64)graph, 0; }
API int cuGraphAddNode(void** node, void* graph, void** behind, const void* edges, size_t count,
                       const int* parameters) {
  static u64 made;
  return *node = (void*)(0x7f0000000000 + 64 * (++made % 4096)),
         sink = (u64)graph + (count ? (u64)behind[0] : 0) + (u64)edges + *parameters, 0;
}
API int cuGraphInstantiateWithParams(void** exec, void* graph, void* parameters) {
  return *exec = handles + 24, sink = (u64)graph + (u64)parameters, 0;
}
API int cuGraphExecDestroy(void* exec) { return sink = (u64)exec, 0; }
API int cuGraphLaunch(void* exec, void* stream) { return sink = (u64)exec + (u64)stream, 0; }

/* Later versions of a function have the suffix _v2, which callers do not pass. */
API int cuGetProcAddress_v2(const char* symbol, void** address, int version, u64 flags, int* status) {
  static void* self;
  char later[128];
  Dl_info here;
  if (self == NULL && dladdr((void*)cuInit, &here)) self = dlopen(here.dli_fname, RTLD_NOW);
  snprintf(later, sizeof later, "%s_v2", symbol);
  *address = dlsym(self, later);
  if (*address == NULL) *address = dlsym(self, symbol);
  sink = version + flags;
  *status = *address == NULL;
  return *address == NULL ? 500 : 0;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Each loop writes the nanoseconds that n iterations take. The compiler cannot see through the pointers. */
#define LOOP2(name, first, second, calls)              \
  API int loop_##name(size_t n, double* nanoseconds) { \
    static __typeof__(&first) volatile f = first;      \
    static __typeof__(&second) volatile g = second;    \
    (void)f, (void)g;                                  \
    const double start = now();                        \
    for (size_t i = 0; i < n; ++i) {                   \
      calls;                                           \
    }                                                  \
    *nanoseconds = now() - start;                      \
    return 0;                                          \
  }
#define LOOP(name, function, call) LOOP2(name, function, cuInit, call)
#define MEMORY 0x7f0000000000
static void *stream = handles + 16, *event = handles + 32;
static u64 address;
LOOP(query, cuStreamQuery, f(stream))
LOOP(record, cuEventRecord, f(event, stream))
LOOP(wait, cuStreamWaitEvent, f(stream, event, 0))
LOOP(fill, cuMemsetD32Async, f(MEMORY, 0, 256, stream))
LOOP(copy, cuMemcpyDtoDAsync_v2, f(MEMORY, MEMORY, 1024, stream))
LOOP(launch, cuLaunchKernel, f(event, 1, 1, 1, 32, 1, 1, 0, stream, (void**)handles, NULL))
LOOP(fill4, cuMemsetD32Async, f(MEMORY, 0x3fc00000, 256, stream))
LOOP(fill2, cuMemsetD16Async, f(MEMORY, 0x3e00, 256, stream))
LOOP(launch0, cuLaunchKernel, f(handles + 56, 1, 1, 1, 32, 1, 1, 0, stream, (void**)handles, NULL))
LOOP(graph, cuGraphLaunch, f(handles + 24, stream))

static Config config = {8, 1, 1, 32, 1, 1, 0, handles + 16, handles, 1};
LOOP(cluster, cuLaunchKernelEx, f(&config, event, (void**)handles, NULL))

/* Adds `nodes` nodes in a chain. Each call gets its parameters anew. */
static void build(__typeof__(&cuGraphAddNode) add, size_t nodes) {
  void *graph, *last = NULL;
  cuGraphCreate(&graph, 0);
  for (size_t i = 0; i < nodes; ++i) {
    struct {
      int type, reserved[3];
      void* f;
      unsigned grid[3], block[3], shared, rest[51];
    } wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.f = event;
    for (int axis = 0; axis < 3; ++axis) wanted.grid[axis] = wanted.block[axis] = 1;
    void* node;
    add(&node, graph, &last, NULL, last != NULL, &wanted.type);
    last = node;
  }
  cuGraphDestroy(graph);
}
LOOP(build, cuGraphAddNode, build(f, 1000))
LOOP2(pool, cuMemAllocAsync, cuMemFreeAsync, f(&address, 4096, stream); g(address, stream))
LOOP2(up, cuMemcpyHtoDAsync_v2, cuStreamSynchronize, f(MEMORY, handles, 1024, stream); g(stream))
LOOP2(down, cuMemcpyDtoHAsync_v2, cuStreamSynchronize, f(handles, MEMORY, 1024, stream); g(stream))
