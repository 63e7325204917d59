/* The calls that are measured, from C. Answers requests on standard input, so that its loops can take turns with others:
 *
 *   CASE BURSTS CALLS   runs BURSTS bursts of CALLS calls, waiting for the GPU after each; answers with the nanoseconds
 *                       of one call, the waits left out
 *
 * Starts with a line `ready CASE …` that lists what can be asked for. Argument: a folder with empty.ptx, or - for none.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COPY_BYTES 1024
#define POOL_BYTES 4096

static void check(CUresult status, const char* call) {
  if (status == CUDA_SUCCESS) return;
  const char* name = NULL;
  cuGetErrorName(status, &name);
  fprintf(stderr, "calls.c: %s: %s (%d)\n", call, name ? name : "?", status);
  exit(1);
}
#define CHECK(call) check(call, #call)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static char* read_file(const char* folder, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char* text = malloc(size + 1);
  if (fread(text, 1, size, file) != (size_t)size) {
    perror(path);
    exit(1);
  }
  text[size] = 0;
  fclose(file);
  return text;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: calls FOLDER|-\n"), 2;
  const int has_kernels = strcmp(argv[1], "-") != 0;
  CHECK(cuInit(0));
  CUdevice device;
  CHECK(cuDeviceGet(&device, 0));
  CUcontext context;
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUevent event;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr from, to;
  CHECK(cuMemAlloc(&from, COPY_BYTES));
  CHECK(cuMemAlloc(&to, COPY_BYTES));
  CUfunction empty0 = NULL, empty4 = NULL;
  if (has_kernels) {
    CUmodule module;
    CHECK(cuModuleLoadData(&module, read_file(argv[1], "empty.ptx")));
    CHECK(cuModuleGetFunction(&empty0, module, "empty0"));
    CHECK(cuModuleGetFunction(&empty4, module, "empty4"));
  }
  float a = 2;
  int n = COPY_BYTES / 4;
  void* parameters[] = {&a, &from, &to, &n};
  printf("ready%s copy record query pool current\n", has_kernels ? " launch0 launch4" : "");
  fflush(stdout);

  char name[32];
  long bursts, calls;
  while (scanf("%31s %ld %ld", name, &bursts, &calls) == 3) {
    double total = 0;
#define MEASURE(call)                                             \
  for (long b = 0; b < bursts; ++b) {                             \
    const double start = now();                                   \
    for (long i = 0; i < calls; ++i) CHECK(call);                 \
    total += now() - start;                                       \
    CHECK(cuStreamSynchronize(stream));                           \
  }
    if (strcmp(name, "launch0") == 0 && has_kernels) {
      MEASURE(cuLaunchKernel(empty0, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL))
    } else if (strcmp(name, "launch4") == 0 && has_kernels) {
      MEASURE(cuLaunchKernel(empty4, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL))
    } else if (strcmp(name, "copy") == 0) {
      MEASURE(cuMemcpyDtoDAsync(to, from, COPY_BYTES, stream))
    } else if (strcmp(name, "record") == 0) {
      MEASURE(cuEventRecord(event, stream))
    } else if (strcmp(name, "query") == 0) {
      MEASURE(cuStreamQuery(stream))
    } else if (strcmp(name, "pool") == 0) {
      CUdeviceptr memory;
      for (long b = 0; b < bursts; ++b) {
        const double start = now();
        for (long i = 0; i < calls; ++i) {
          CHECK(cuMemAllocAsync(&memory, POOL_BYTES, stream));
          CHECK(cuMemFreeAsync(memory, stream));
        }
        total += now() - start;
        CHECK(cuStreamSynchronize(stream));
      }
    } else if (strcmp(name, "current") == 0) {
      CUcontext current;
      MEASURE(cuCtxGetCurrent(&current))
    } else {
      return fprintf(stderr, "calls.c: unknown case %s\n", name), 2;
    }
    printf("%.3f\n", total / (double)(bursts * calls));
    fflush(stdout);
  }
  return 0;
}
