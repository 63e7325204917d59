/* All-reduce over all devices of one process, from C. Answers requests on standard input, so that its loops can take
 * turns with others:
 *
 *   BYTES ITERATIONS   queues ITERATIONS all-reduces of BYTES bytes of f32 back to back, each a group over all devices,
 *                      waits for all streams once, and answers with the microseconds of one
 *
 * Starts with a line `ready VERSION`. Arguments: the file of libnccl, the number of devices, the largest message.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_DEVICES 64

/* The few things of NCCL that are needed here, so that no nccl.h has to be found. */
typedef int ncclResult_t;
typedef void* ncclComm_t;
enum { ncclSuccess = 0, ncclFloat32 = 7, ncclSum = 0 };

static void fail(const char* call, const char* words) {
  fprintf(stderr, "allreduce.c: %s: %s\n", call, words);
  exit(1);
}

static void check_cuda(CUresult status, const char* call) {
  const char* name = "?";
  if (status == CUDA_SUCCESS) return;
  cuGetErrorName(status, &name);
  fail(call, name);
}
#define CUDA(call) check_cuda(call, #call)

static const char* (*error_string)(ncclResult_t);
static void check_nccl(ncclResult_t status, const char* call) {
  if (status != ncclSuccess) fail(call, error_string(status));
}
#define NCCL(call) check_nccl(call, #call)

static void* symbol(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (address == NULL) fail(name, dlerror());
  return address;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: allreduce LIBNCCL DEVICES BYTES\n"), 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail("dlopen", dlerror());
  error_string = symbol(library, "ncclGetErrorString");
  ncclResult_t (*get_version)(int*) = symbol(library, "ncclGetVersion");
  ncclResult_t (*init_all)(ncclComm_t*, int, const int*) = symbol(library, "ncclCommInitAll");
  ncclResult_t (*group_start)(void) = symbol(library, "ncclGroupStart");
  ncclResult_t (*group_end)(void) = symbol(library, "ncclGroupEnd");
  ncclResult_t (*all_reduce)(const void*, void*, size_t, int, int, ncclComm_t, CUstream) =
      symbol(library, "ncclAllReduce");

  const int devices = atoi(argv[2]);
  const size_t most = strtoull(argv[3], NULL, 10);
  if (devices < 1 || devices > MOST_DEVICES) fail("DEVICES", "out of range");
  CUDA(cuInit(0));
  int ordinals[MOST_DEVICES];
  CUcontext contexts[MOST_DEVICES];
  CUstream streams[MOST_DEVICES];
  CUdeviceptr send[MOST_DEVICES], receive[MOST_DEVICES];
  ncclComm_t comms[MOST_DEVICES];
  for (int d = 0; d < devices; ++d) {
    CUdevice device;
    ordinals[d] = d;
    CUDA(cuDeviceGet(&device, d));
    CUDA(cuDevicePrimaryCtxRetain(&contexts[d], device));
    CUDA(cuCtxSetCurrent(contexts[d]));
    CUDA(cuStreamCreate(&streams[d], CU_STREAM_NON_BLOCKING));
    CUDA(cuMemAlloc(&send[d], most));
    CUDA(cuMemAlloc(&receive[d], most));
    CUDA(cuMemsetD8(send[d], 0, most));
  }
  NCCL(init_all(comms, devices, ordinals));
  CUDA(cuCtxSetCurrent(contexts[0]));
  int version = 0;
  NCCL(get_version(&version));
  printf("ready %d\n", version);
  fflush(stdout);

  size_t bytes;
  long iterations;
  while (scanf("%zu %ld", &bytes, &iterations) == 2) {
    if (bytes > most) fail("BYTES", "more than the buffers hold");
    const double start = now();
    for (long i = 0; i < iterations; ++i) {
      NCCL(group_start());
      for (int d = 0; d < devices; ++d) {
        NCCL(all_reduce((void*)send[d], (void*)receive[d], bytes / 4, ncclFloat32, ncclSum, comms[d], streams[d]));
      }
      NCCL(group_end());
    }
    for (int d = 0; d < devices; ++d) CUDA(cuStreamSynchronize(streams[d]));
    printf("%.4f\n", (now() - start) / (double)iterations);
    fflush(stdout);
  }
  return 0;
}
