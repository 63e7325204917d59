// Replaces module and kernel functions of the software device, so that tests see what the driver package passes to
// them. A kernel's name lists the sizes of its parameters: "args_4_8" has one of 4 bytes and one of 8 bytes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_PTX = 218, NOT_FOUND = 500, MAX_PARAMETERS = 32, MAX_KERNELS = 1024 };

typedef struct {
  char name[64];
  int count;
  size_t sizes[MAX_PARAMETERS];
  int dynamicSharedLimit;
} Kernel;

typedef struct {
  uint32_t sizes[7];  // grid, block, shared memory
  uint64_t stream;
  uint64_t launches;
  uint32_t argumentBytes;
  uint8_t arguments[512];
} Launch;

// The arguments of the last occupancy function.
typedef struct {
  uint64_t kernel;
  uint64_t sharedMemory;
  uint32_t blockCount;
  uint32_t blockSize;
  uint32_t flags;
  uint32_t calls;
} Occupancy;

static Occupancy lastOccupancy;
static Kernel kernels[MAX_KERNELS];
static int kernelCount;
static Launch lastLaunch;
static atomic_int moduleCount;
static uint32_t variable[4] = {1, 2, 3, 4};

static void* sim(void) {
  static void* library;
  if (library == NULL) library = dlopen(getenv("SHIM_SIM"), RTLD_NOW | RTLD_LOCAL);
  return library;
}

EXPORT const Launch* shimLastLaunch(void) { return &lastLaunch; }
EXPORT const Occupancy* shimLastOccupancy(void) { return &lastOccupancy; }
EXPORT int shimModules(void) { return moduleCount; }

static int moduleLoad(void** module, const char* image, unsigned count, const int* options, void** values) {
  unsigned index;
  if (strcmp(image, "slow") == 0) usleep(100000);
  if (strstr(image, "wrong") != NULL) {
    for (index = 0; index < count; ++index) {
      if (options[index] == 5) snprintf(values[index], 64, "ptxas: line 1: this is wrong");
    }
    return INVALID_PTX;
  }
  for (index = 0; index < count; ++index) {
    if (options[index] == 3) snprintf(values[index], 64, "compiled with %u options", count);
  }
  moduleCount += 1;
  *module = (void*)&moduleCount;
  return SUCCESS;
}

static int moduleUnload(void* module) {
  (void)module;
  moduleCount -= 1;
  return SUCCESS;
}

static int getFunction(Kernel** function, void* module, const char* name) {
  Kernel* kernel = &kernels[kernelCount];
  const char* at = strchr(name, '_');
  (void)module;
  if (strcmp(name, "axpy") == 0) at = "_4_8_8_4";
  if (at == NULL || kernelCount == MAX_KERNELS) return NOT_FOUND;
  memset(kernel, 0, sizeof *kernel);
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  kernel->dynamicSharedLimit = 48 * 1024;
  while (at != NULL && *at == '_' && kernel->count < MAX_PARAMETERS) {
    char* end;
    const long size = strtol(at + 1, &end, 10);
    if (size > 0) kernel->sizes[kernel->count++] = (size_t)size;
    at = end;
  }
  kernelCount += 1;
  *function = kernel;
  return SUCCESS;
}

static int getGlobal(uint64_t* address, size_t* bytes, void* module, const char* name) {
  (void)module;
  if (strcmp(name, "variable") != 0 && strcmp(name, "odd") != 0) return NOT_FOUND;
  *address = (uint64_t)(uintptr_t)variable;
  *bytes = strcmp(name, "odd") == 0 ? 6 : sizeof variable;
  return SUCCESS;
}

static int getAttribute(int* value, int attribute, const Kernel* kernel) {
  switch (attribute) {
    case 0: *value = 512; return SUCCESS;
    case 1: *value = 256; return SUCCESS;
    case 8: *value = kernel->dynamicSharedLimit; return SUCCESS;
    default: *value = 0; return SUCCESS;
  }
}

static int setAttribute(Kernel* kernel, int attribute, int value) {
  if (attribute != 8) return INVALID_VALUE;
  kernel->dynamicSharedLimit = value;
  return SUCCESS;
}

static int getParameter(const Kernel* kernel, size_t index, size_t* offset, size_t* size) {
  if (index >= (size_t)kernel->count) return INVALID_VALUE;
  *offset = index * 16;
  *size = kernel->sizes[index];
  return SUCCESS;
}

typedef struct {
  float a;
  const float* x;
  float* y;
  int length;
} Axpy;

static void runAxpy(void* data) {
  Axpy* axpy = data;
  int index;
  for (index = 0; index < axpy->length; ++index) axpy->y[index] += axpy->a * axpy->x[index];
  free(axpy);
}

static int launch(const Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, void* stream, void** parameters, void** extra) {
  int index;
  uint32_t bytes = 0;
  if (extra != NULL || shared > (unsigned)kernel->dynamicSharedLimit) return INVALID_VALUE;
  lastLaunch.launches += 1;
  if (strncmp(kernel->name, "noop", 4) == 0) return SUCCESS;
  lastLaunch.sizes[0] = gx, lastLaunch.sizes[1] = gy, lastLaunch.sizes[2] = gz;
  lastLaunch.sizes[3] = bx, lastLaunch.sizes[4] = by, lastLaunch.sizes[5] = bz, lastLaunch.sizes[6] = shared;
  lastLaunch.stream = (uint64_t)(uintptr_t)stream;
  for (index = 0; index < kernel->count; ++index) {
    memcpy(lastLaunch.arguments + bytes, parameters[index], kernel->sizes[index]);
    bytes += (uint32_t)kernel->sizes[index];
  }
  lastLaunch.argumentBytes = bytes;
  if (strcmp(kernel->name, "axpy") == 0) {
    int (*hostFunction)(void*, void (*)(void*), void*) =
        (int (*)(void*, void (*)(void*), void*))dlsym(sim(), "cuLaunchHostFunc");
    Axpy* axpy = malloc(sizeof *axpy);
    memcpy(&axpy->a, parameters[0], 4);
    memcpy(&axpy->x, parameters[1], 8);
    memcpy(&axpy->y, parameters[2], 8);
    memcpy(&axpy->length, parameters[3], 4);
    return hostFunction(stream, runAxpy, axpy);
  }
  return SUCCESS;
}

// A multiprocessor with 2048 threads, 228 KiB of shared memory and at most 16 blocks. Each block takes 1 KiB of shared
// memory in addition to its own.
static int maxActiveBlocks(int* blocks, const void* kernel, int blockSize, size_t sharedMemory, unsigned flags) {
  const int byThreads = blockSize < 1 ? 0 : 2048 / ((blockSize + 31) / 32 * 32);
  const int byMemory = sharedMemory > 228 * 1024 ? 0 : (int)(228 * 1024 / (sharedMemory + 1024));
  lastOccupancy =
      (Occupancy){(uint64_t)(uintptr_t)kernel, sharedMemory, 0, (uint32_t)blockSize, flags, lastOccupancy.calls + 1};
  if (kernel == NULL || blockSize < 1) return INVALID_VALUE;
  *blocks = byThreads < byMemory ? byThreads : byMemory;
  if (*blocks > 16) *blocks = 16;
  return SUCCESS;
}

static int availableSharedMemory(size_t* bytes, const void* kernel, int blockCount, int blockSize) {
  lastOccupancy = (Occupancy){(uint64_t)(uintptr_t)kernel, 0, (uint32_t)blockCount,
                              (uint32_t)blockSize,         0, lastOccupancy.calls + 1};
  if (kernel == NULL || blockCount > 16) return INVALID_VALUE;
  *bytes = 228 * 1024 / (size_t)blockCount - 1024;
  return SUCCESS;
}

static const struct {
  const char* name;
  void* function;
} replaced[] = {
    {"cuModuleLoadDataEx", (void*)moduleLoad},
    {"cuModuleUnload", (void*)moduleUnload},
    {"cuModuleGetFunction", (void*)getFunction},
    {"cuModuleGetGlobal", (void*)getGlobal},
    {"cuFuncGetAttribute", (void*)getAttribute},
    {"cuFuncSetAttribute", (void*)setAttribute},
    {"cuFuncGetParamInfo", (void*)getParameter},
    {"cuLaunchKernel", (void*)launch},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", (void*)maxActiveBlocks},
    {"cuOccupancyAvailableDynamicSMemPerBlock", (void*)availableSharedMemory},
};

EXPORT int cuDriverGetVersion(int* version) {
  int (*real)(int*) = (int (*)(int*))dlsym(sim(), "cuDriverGetVersion");
  return real(version);
}

EXPORT int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
  int (*real)(const char*, void**, int, uint64_t, int*) =
      (int (*)(const char*, void**, int, uint64_t, int*))dlsym(sim(), "cuGetProcAddress_v2");
  size_t index;
  for (index = 0; index < sizeof replaced / sizeof replaced[0]; ++index) {
    if (strcmp(symbol, replaced[index].name) != 0) continue;
    *function = replaced[index].function;
    if (status != NULL) *status = 0;
    return SUCCESS;
  }
  return real(symbol, function, version, flags, status);
}
