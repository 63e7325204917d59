/*
 * Finds idle processors: runs a fixed loop on each given processor and prints a line for each:
 *
 *   PROCESSOR MICROSECONDS   the median of several runs of the loop
 *
 * The loop has many independent chains of instructions, so it fills the core. It takes longer if another thread uses
 * the same core, even a thread of another guest of the host, which nothing else shows.
 *
 * Arguments: the numbers of the processors.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* About 2 ms at 3 GHz and four instructions per cycle. */
#define ITERATIONS 1400000
#define RUNS 5

/* In microseconds. */
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* Hides the register from the compiler, so that each step is executed as one instruction. */
#define DONE(x) __asm__ volatile("" : "+r"(x))
#define STEP(x) \
  do {          \
    x += 7;     \
    DONE(x);    \
    x ^= 5;     \
    DONE(x);    \
  } while (0)

static double run(void) {
  uint64_t a = 0, b = 1, c = 2, d = 3, e = 4, f = 5, g = 6, h = 7;
  const double start = now();
  for (int i = 0; i < ITERATIONS; ++i) {
    STEP(a);
    STEP(b);
    STEP(c);
    STEP(d);
    STEP(e);
    STEP(f);
    STEP(g);
    STEP(h);
  }
  return now() - start;
}

static void bind_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    fprintf(stderr, "processor %d: %s\n", processor, strerror(errno));
    exit(1);
  }
}

static int ascending(const void* one, const void* other) {
  const double difference = *(const double*)one - *(const double*)other;
  return (difference > 0) - (difference < 0);
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char* end;
    const long processor = strtol(argv[i], &end, 10);
    if (*argv[i] == '\0' || *end != '\0' || processor < 0 || processor >= CPU_SETSIZE)
      return fprintf(stderr, "no processor: '%s'\n", argv[i]), 2;
    bind_to((int)processor);
    /* An untimed run first, because a processor is slow after sleeping. */
    run();
    double times[RUNS];
    for (int j = 0; j < RUNS; ++j) times[j] = run();
    qsort(times, RUNS, sizeof *times, ascending);
    printf("%ld %.1f\n", processor, times[RUNS / 2]);
  }
  return 0;
}
