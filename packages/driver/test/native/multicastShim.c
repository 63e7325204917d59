// Wraps the software device. SHIM_VERSION is the driver version that it reports. SHIM_MULTICAST lists the ordinals of
// the devices that support multicast, one digit each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static void* sim(const char* name) {
  static void* library;
  if (library == NULL) library = dlopen(getenv("SHIM_SIM"), RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}

static int has(int device) {
  const char* devices = getenv("SHIM_MULTICAST");
  return devices == NULL || strchr(devices, '0' + device) != NULL;
}

EXPORT int cuDriverGetVersion(int* version) {
  *version = atoi(getenv("SHIM_VERSION"));
  return 0;
}

static int attribute(int* value, int which, int device) {
  const int status = ((int (*)(int*, int, int))sim("cuDeviceGetAttribute"))(value, which, device);
  if (status == 0 && which == 132 && !has(device)) *value = 0;
  return status;
}

// The answer of an H200 without multicast.
static int granularity(uint64_t* bytes, const void* properties, int option) {
  if (!has(0) && !has(1)) return 801;
  return ((int (*)(uint64_t*, const void*, int))sim("cuMulticastGetGranularity"))(bytes, properties, option);
}

EXPORT int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
  *status = 0;
  if (strcmp(symbol, "cuDriverGetVersion") == 0) *function = cuDriverGetVersion;
  else if (strcmp(symbol, "cuDeviceGetAttribute") == 0) *function = attribute;
  else if (strcmp(symbol, "cuMulticastGetGranularity") == 0) *function = granularity;
  else
    return ((int (*)(const char*, void**, int, uint64_t, int*))sim("cuGetProcAddress_v2"))(symbol, function, version,
                                                                                           flags, status);
  return 0;
}
