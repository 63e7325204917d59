/*
 * Driver calls from C. Answers requests on standard input, so that its loops can alternate with other programs:
 *
 *   CASE BURSTS CALLS   runs BURSTS bursts of CALLS calls and waits for the GPU after each burst; answers with the
 *                       nanoseconds per call, without the waits
 *
 * Starts with a line `ready CASE …` that lists the cases. Argument: a PTX file with the kernels empty0 and empty4, or -
 * for none. Compiled as a shared library, it runs the same loops in the process that loads it.
 */
#include "common.h"

#define COPY_BYTES 1024
#define POOL_BYTES 4096

static CUstream stream;
static CUevent event;
static CUdeviceptr from, to;
static CUfunction empty0, empty4;

/* Creates the objects that the loops use. */
int calls_start(const char* ptx_file) {
  enter_device(0);
  CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUDA(cuMemAlloc(&from, COPY_BYTES));
  CUDA(cuMemAlloc(&to, COPY_BYTES));
  if (strcmp(ptx_file, "-") == 0) return 0;
  CUmodule module;
  CUDA(cuModuleLoadData(&module, read_file(ptx_file)));
  CUDA(cuModuleGetFunction(&empty0, module, "empty0"));
  CUDA(cuModuleGetFunction(&empty4, module, "empty4"));
  return 0;
}

/* Returns the nanoseconds per call. */
double calls_measure(const char* name, long bursts, long calls) {
  float a = 2;
  int n = COPY_BYTES / 4;
  void* parameters[] = {&a, &from, &to, &n};
  double total = 0;
#define MEASURE(statements)            \
  for (long b = 0; b < bursts; ++b) {  \
    const double start = now();        \
    for (long i = 0; i < calls; ++i) { \
      statements;                      \
    }                                  \
    total += now() - start;            \
    CUDA(cuStreamSynchronize(stream)); \
  }
  if (strcmp(name, "launch0") == 0 && empty0 != NULL) {
    MEASURE(CUDA(cuLaunchKernel(empty0, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL)))
  } else if (strcmp(name, "launch4") == 0 && empty4 != NULL) {
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
    fprintf(stderr, "calls.c: unknown case %s\n", name);
    exit(2);
  }
  return total / (double)(bursts * calls);
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: calls PTX-FILE|-\n"), 2;
  calls_start(argv[1]);
  printf("ready%s copy fill record query pool current\n", empty0 != NULL ? " launch0 launch4" : "");
  fflush(stdout);
  char name[32];
  long bursts, calls;
  while (scanf("%31s %ld %ld", name, &bursts, &calls) == 3) answer(calls_measure(name, bursts, calls));
  return 0;
}
