/*
 * Operations that a program waits for, in C: round trips to the device, launches, copies and short calls.
 *
 *   CASE COUNT BYTES   runs the case COUNT times with this number of bytes; answers with the nanoseconds per run
 *
 * Argument: a PTX file with the kernels empty0 and addOne, which adds 1 to each of n floats.
 */
#include "common.h"

#define STREAMS 16
#define BLOCK 256

static CUstream streams[STREAMS];
static CUdeviceptr device[STREAMS];
static char *pinned[STREAMS], *ordinary;
static CUfunction add_one;
static size_t room;

/*
 * Allocates memory for `bytes` and writes to it once, so that no loop pays for the first touch. Each stream gets memory
 * of the first requested size.
 */
static void make_room(size_t bytes) {
  if (bytes <= room) return;
  const int count = room == 0 ? STREAMS : 1;
  for (int i = 0; i < count; ++i) {
    if (room > 0) CUDA(cuMemFree(device[i])), CUDA(cuMemFreeHost(pinned[i]));
    CUDA(cuMemAlloc(&device[i], bytes));
    CUDA(cuMemHostAlloc((void**)&pinned[i], bytes, 0));
    memset(pinned[i], 0, bytes);
  }
  ordinary = realloc(ordinary, bytes);
  memset(ordinary, 0, bytes);
  room = bytes;
}

static void launch(int i, size_t bytes) {
  unsigned n = bytes / 4;
  void* parameters[] = {&device[i], &n};
  CUDA(cuLaunchKernel(add_one, (n + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, streams[i], parameters, NULL));
}

static void queue_trip(int i, char* host, size_t bytes) {
  CUDA(cuMemcpyHtoDAsync(device[i], host, bytes, streams[i]));
  launch(i, bytes);
  CUDA(cuMemcpyDtoHAsync(host, device[i], bytes, streams[i]));
}

/* The start and the end of a round trip on a stream. The end checks the result, as the JavaScript side does. */
static void begin_trip(int i, size_t bytes, float* before) {
  *before = *(float*)pinned[i] = ((float*)pinned[i])[bytes / 4 - 1];
  queue_trip(i, pinned[i], bytes);
}

static void end_trip(int i, size_t bytes, float before) {
  float *first = (float*)pinned[i], *last = first + bytes / 4 - 1;
  CUDA(cuStreamSynchronize(streams[i]));
  if (*first != before + 1 || *last != before + 1) fprintf(stderr, "a round trip lost its data\n"), exit(1);
  *first = *last = 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: costs PTX-FILE\n"), 2;
  enter_device(0);
  CUmodule module;
  CUfunction empty;
  CUDA(cuModuleLoadData(&module, read_file(argv[1])));
  CUDA(cuModuleGetFunction(&empty, module, "empty0"));
  CUDA(cuModuleGetFunction(&add_one, module, "addOne"));
  for (int i = 0; i < STREAMS; ++i) CUDA(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
  const CUstream stream = streams[0];
  puts("ready");
  fflush(stdout);

  char name[32];
  long count;
  size_t bytes;
  while (scanf("%31s %ld %zu", name, &count, &bytes) == 3) {
    make_room(bytes < 65536 ? 65536 : bytes);
    CUDA(cuStreamSynchronize(stream));
    double total = -1;
#define CASE(word, statements)         \
  if (strcmp(name, word) == 0) {       \
    const double start = now();        \
    for (long i = 0; i < count; ++i) { \
      statements;                      \
    }                                  \
    CUDA(cuStreamSynchronize(stream)); \
    total = now() - start;             \
  }
    CUdeviceptr memory;
    CASE("idle", CUDA(cuStreamSynchronize(stream)))
    CASE("launch", CUDA(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
         CUDA(cuStreamSynchronize(stream)))
    CASE("pinned", queue_trip(0, pinned[0], bytes); CUDA(cuStreamSynchronize(stream)))
    CASE("ordinary", queue_trip(0, ordinary, bytes); CUDA(cuStreamSynchronize(stream)))
    CASE("driver", CUDA(cuMemcpyHtoD(device[0], ordinary, bytes)); launch(0, bytes); CUDA(cuStreamSynchronize(stream));
         CUDA(cuMemcpyDtoH(ordinary, device[0], bytes)))
    float before[STREAMS];
    CASE("inFlight", for (int s = 0; s < STREAMS; ++s) begin_trip(s, bytes, &before[s]);
         for (int s = 0; s < STREAMS; ++s) end_trip(s, bytes, before[s]))
    CASE("up-pinned", CUDA(cuMemcpyHtoDAsync(device[0], pinned[0], bytes, stream)); CUDA(cuStreamSynchronize(stream)))
    CASE("up-ordinary", CUDA(cuMemcpyHtoDAsync(device[0], ordinary, bytes, stream)); CUDA(cuStreamSynchronize(stream)))
    CASE("down-pinned", CUDA(cuMemcpyDtoHAsync(pinned[0], device[0], bytes, stream)); CUDA(cuStreamSynchronize(stream)))
    CASE("down-ordinary", CUDA(cuMemcpyDtoHAsync(ordinary, device[0], bytes, stream));
         CUDA(cuStreamSynchronize(stream)))
    CASE("pool", CUDA(cuMemAllocAsync(&memory, 4096, stream)); CUDA(cuMemFreeAsync(memory, stream)))
    if (total < 0) return fprintf(stderr, "costs.c: unknown case %s\n", name), 2;
    answer(total / (double)count);
  }
  return 0;
}
