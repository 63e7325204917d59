// The occupancy functions of libcudart, which the software device does not have. All other functions come from the
// library that this one is linked with.
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_VALUE = 1 };

// The arguments of the last call, and the device that was current.
typedef struct {
  uint64_t kernel;
  uint64_t sharedMemory;
  uint32_t blockCount;
  uint32_t blockSize;
  uint32_t flags;
  uint32_t device;
  uint32_t calls;
} Occupancy;

static Occupancy last;

int cudaGetDevice(int* device);

static int answer(const void* kernel, Occupancy asked) {
  int device = -1;
  cudaGetDevice(&device);
  asked.device = (uint32_t)device;
  asked.kernel = (uint64_t)(uintptr_t)kernel;
  asked.calls = last.calls + 1;
  last = asked;
  return kernel == NULL ? INVALID_VALUE : SUCCESS;
}

EXPORT const Occupancy* shimLastOccupancy(void) { return &last; }

EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int blockSize,
                                                                  size_t sharedMemory, unsigned flags) {
  *blocks = 2048 / blockSize;
  return answer(kernel, (Occupancy){.blockSize = (uint32_t)blockSize, .sharedMemory = sharedMemory, .flags = flags});
}

EXPORT int cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* kernel, int blockCount, int blockSize) {
  *bytes = 65536 / (size_t)blockCount;
  return answer(kernel, (Occupancy){.blockSize = (uint32_t)blockSize, .blockCount = (uint32_t)blockCount});
}
