/*
 * Functions that do nothing, with the signatures of a call without arguments, a copy and a kernel launch; and loops
 * that call them from C through a pointer that the compiler cannot see through.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define KEEP __attribute__((noinline, visibility("default")))

static volatile uint64_t sink;

KEEP int stub0(void) {
  sink = 1;
  return 0;
}

KEEP int stub4(uint64_t destination, uint64_t source, size_t bytes, void* stream) {
  sink = destination + source + bytes + (uintptr_t)stream;
  return 0;
}

KEEP int stub11(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                unsigned block_z, unsigned shared, void* stream, void** parameters, void** extra) {
  sink = (uintptr_t)function + grid_x + grid_y + grid_z + block_x + block_y + block_z + shared + (uintptr_t)stream +
         (uintptr_t)parameters + (uintptr_t)extra;
  return 0;
}

/* The sum of the last call's arguments, which shows that all of them arrived. */
KEEP uint64_t stub_sum(void) { return sink; }

static int (*volatile call0)(void) = stub0;
static int (*volatile call4)(uint64_t, uint64_t, size_t, void*) = stub4;
static int (*volatile call11)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                              void**, void**) = stub11;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Each loop writes the nanoseconds that n calls took. */
KEEP int loop0(size_t n, double* nanoseconds) {
  const double start = now();
  for (size_t i = 0; i < n; ++i) call0();
  *nanoseconds = now() - start;
  return 0;
}

KEEP int loop4(size_t n, double* nanoseconds) {
  const double start = now();
  for (size_t i = 0; i < n; ++i) call4(0x7f0000001000, 0x7f0000002000, 1024, (void*)0x55550000);
  *nanoseconds = now() - start;
  return 0;
}

KEEP int loop11(size_t n, double* nanoseconds) {
  const double start = now();
  for (size_t i = 0; i < n; ++i) {
    call11((void*)0x7f0000001000, 1, 2, 3, 4, 5, 6, 7, (void*)0x55550000, (void**)0x7f0000002000, 0);
  }
  *nanoseconds = now() - start;
  return 0;
}
