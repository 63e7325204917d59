// A libcudart that knows no version and no device; all other functions come from the library it is linked with.
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
