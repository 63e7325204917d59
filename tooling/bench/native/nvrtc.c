/*
 * NVRTC compilations in C. Answers requests on standard input, so that its loops can alternate with other programs:
 *
 *   first COUNT   compiles COUNT sources, each for the first time; answers with the microseconds per source, until code
 *                 and log are available
 *
 * Arguments: the file of libnvrtc, the source, the architecture. Starts with a line `ready`.
 */
#include "library.h"
#include <time.h>

#define FUNCTIONS(X)                                                                 \
  X(create, "nvrtcCreateProgram", int,                                               \
    (void**, const char*, const char*, int, const char* const*, const char* const*)) \
  X(compile, "nvrtcCompileProgram", int, (void*, int, const char* const*))           \
  X(log_size, "nvrtcGetProgramLogSize", int, (void*, size_t*))                       \
  X(log, "nvrtcGetProgramLog", int, (void*, char*))                                  \
  X(ptx_size, "nvrtcGetPTXSize", int, (void*, size_t*))                              \
  X(ptx, "nvrtcGetPTX", int, (void*, char*))                                         \
  X(cubin_size, "nvrtcGetCUBINSize", int, (void*, size_t*))                          \
  X(cubin, "nvrtcGetCUBIN", int, (void*, char*))                                     \
  X(destroy, "nvrtcDestroyProgram", int, (void**))

static struct {
  FUNCTIONS(MEMBER)
} nvrtc;

static void check(int status, const char* call) {
  if (status != 0) fail(call, "refused");
}
#define NVRTC(call) check(call, #call)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void get(void* program, int (*size_of)(void*, size_t*), int (*bytes_of)(void*, char*)) {
  size_t size = 0;
  NVRTC(size_of(program, &size));
  char* bytes = malloc(size + 1);
  if (size > 0) NVRTC(bytes_of(program, bytes));
  free(bytes);
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: nvrtc LIBNVRTC SOURCE ARCHITECTURE\n"), 2;
  void* library = open_library(argv[1]);
#define LOAD(name, symbol_name, result, parameters) nvrtc.name = symbol(library, symbol_name);
  FUNCTIONS(LOAD)
  char architecture[64], salt[64];
  snprintf(architecture, sizeof architecture, "--gpu-architecture=%s", argv[3]);
  printf("ready\n");
  fflush(stdout);
  /* On GPU machines, NVRTC caches its results on disk for all processes. No other program compiles these sources. */
  long count, done = 1000 * 1000;
  while (scanf(" first %ld", &count) == 1) {
    const double start = now();
    for (long i = 0; i < count; ++i) {
      snprintf(salt, sizeof salt, "--define-macro=SALT=%ld", ++done);
      const char* options[] = {architecture, salt};
      void* program;
      NVRTC(nvrtc.create(&program, argv[2], "program.cu", 0, NULL, NULL));
      NVRTC(nvrtc.compile(program, 2, options));
      get(program, nvrtc.log_size, nvrtc.log);
      get(program, nvrtc.ptx_size, nvrtc.ptx);
      get(program, nvrtc.cubin_size, nvrtc.cubin);
      NVRTC(nvrtc.destroy(&program));
    }
    printf("%.2f\n", (now() - start) / (double)count);
    fflush(stdout);
  }
  return 0;
}
