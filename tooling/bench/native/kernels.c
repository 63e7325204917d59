/*
 * Reference loops for kernels of the software device. Answers requests on standard input, so that its loops can
 * alternate with other programs:
 *
 *   cycles COUNT     nanoseconds per processor cycle, measured by dependent additions
 *   axpy COUNT       microseconds for COUNT elements
 *   multiply N       microseconds for a product of N x N matrices with three plain loops
 *
 * Starts with a line `ready`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static float* numbers(size_t count) {
  float* made = malloc(count * sizeof *made);
  if (made == NULL) exit(1);
  for (size_t i = 0; i < count; ++i) made[i] = (float)(i % 17) * 0.25f;
  return made;
}

/* Not inlined, so that the compiler cannot remove the work. */
static __attribute__((noinline)) void axpy(float a, const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] += a * x[i];
}

static __attribute__((noinline)) void multiply(const float* a, const float* b, float* c, long n) {
  for (long i = 0; i < n; ++i) {
    for (long j = 0; j < n; ++j) {
      float sum = 0;
      for (long k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
}

static double cycles(long count) {
  unsigned long value = 1;
  const double start = now();
  for (long i = 0; i < count; i += 16) {
    for (int j = 0; j < 16; ++j) {
      __asm__ volatile("" : "+r"(value)); /* prevents the compiler from merging the additions */
      value = (value + 3) ^ 1;
    }
  }
  const double end = now();
  __asm__ volatile("" ::"r"(value));
  return (end - start) / (double)count / 2;
}

static float *x, *y, *z;
static long room = 0;

static void make_room(long count) {
  if (count <= room) return;
  free(x), free(y), free(z);
  x = numbers(count), y = numbers(count), z = numbers(count);
  room = count;
}

int main(void) {
  char what[16];
  long count;
  printf("ready\n");
  fflush(stdout);
  while (scanf(" %15s %ld", what, &count) == 2) {
    double value;
    if (strcmp(what, "cycles") == 0) {
      value = cycles(count);
    } else if (strcmp(what, "axpy") == 0) {
      make_room(count);
      const double start = now();
      axpy(1.5f, x, y, count);
      value = (now() - start) / 1e3;
    } else {
      make_room(count * count);
      const double start = now();
      multiply(x, y, z, count);
      value = (now() - start) / 1e3;
    }
    printf("%.6f\n", value);
    fflush(stdout);
  }
  return 0;
}
