/* Calls of the driver, in C. Answers requests on standard input, so that its loops can take turns with others:
 *
 *   CASE BURSTS CALLS   runs BURSTS bursts of CALLS calls, waiting for the GPU after each; answers with the nanoseconds
 *                       of one call, the waits left out
 *
 * Starts with a line `ready CASE …` that lists what can be asked for. Argument: a file of PTX with the kernels empty0 and empty4, or - for none.
 */
#include "common.h"

#define COPY_BYTES 1024
#define POOL_BYTES 4096

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: calls PTX-FILE|-\n"), 2;
  const int has_kernels = strcmp(argv[1], "-") != 0;
  enter_device(0);
  CUstream stream;
  CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUevent event;
  CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr from, to;
  CUDA(cuMemAlloc(&from, COPY_BYTES));
  CUDA(cuMemAlloc(&to, COPY_BYTES));
  CUfunction empty0 = NULL, empty4 = NULL;
  if (has_kernels) {
    CUmodule module;
    CUDA(cuModuleLoadData(&module, read_file(argv[1])));
    CUDA(cuModuleGetFunction(&empty0, module, "empty0"));
    CUDA(cuModuleGetFunction(&empty4, module, "empty4"));
  }
  float a = 2;
  int n = COPY_BYTES / 4;
  void* parameters[] = {&a, &from, &to, &n};
  printf("ready%s copy fill record query pool current\n", has_kernels ? " launch0 launch4" : "");
  fflush(stdout);

  char name[32];
  long bursts, calls;
  while (scanf("%31s %ld %ld", name, &bursts, &calls) == 3) {
    double total = 0;
#define MEASURE(statements)                             \
  for (long b = 0; b < bursts; ++b) {                   \
    const double start = now();                         \
    for (long i = 0; i < calls; ++i) { statements; }    \
    total += now() - start;                             \
    CUDA(cuStreamSynchronize(stream));                  \
  }
    if (strcmp(name, "launch0") == 0 && has_kernels) {
      MEASURE(CUDA(cuLaunchKernel(empty0, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL)))
    } else if (strcmp(name, "launch4") == 0 && has_kernels) {
      MEASURE(CUDA(cuLaunchKernel(empty4, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL)))
    } else if (strcmp(name, "copy") == 0) {
      MEASURE(CUDA(cuMemcpyDtoDAsync(to, from, COPY_BYTES, stream)))
    } else if (strcmp(name, "fill") == 0) {
      MEASURE(CUDA(cuMemsetD8Async(to, 0, COPY_BYTES, stream)))
    } else if (strcmp(name, "record") == 0) {
      MEASURE(CUDA(cuEventRecord(event, stream)))
    } else if (strcmp(name, "query") == 0) {
      MEASURE(CUDA(cuStreamQuery(stream)))
    } else if (strcmp(name, "pool") == 0) {
      CUdeviceptr memory;
      MEASURE(CUDA(cuMemAllocAsync(&memory, POOL_BYTES, stream)); CUDA(cuMemFreeAsync(memory, stream)))
    } else if (strcmp(name, "current") == 0) {
      CUcontext current;
      MEASURE(CUDA(cuCtxGetCurrent(&current)))
    } else {
      return fprintf(stderr, "calls.c: unknown case %s\n", name), 2;
    }
    answer(total / (double)(bursts * calls));
  }
  return 0;
}
