// A libcudart that fails to report a version and a device. All other functions come from the library that this one is
// linked with.
#define EXPORT __attribute__((visibility("default")))
enum { INVALID_DEVICE = 101 };

EXPORT int cudaRuntimeGetVersion(int* version) {
  *version = 0;
  return INVALID_DEVICE;
}

EXPORT int cudaGetDevice(int* device) {
  *device = 0;
  return INVALID_DEVICE;
}
