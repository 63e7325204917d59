// The symbols of NVSHMEM's log and options. NVSHMEM exports them for its plugins; no header declares them.
#include <pthread.h>

#include <cstdarg>
#include <cstdio>

#include "shoal/nvshmem.h"

extern "C" {
SHOAL_EXPORT FILE* nvshmem_debug_file = nullptr;
SHOAL_EXPORT int nvshmem_debug_level = 0;
SHOAL_EXPORT uint64_t nvshmem_debug_mask = 1;
SHOAL_EXPORT pthread_mutex_t nvshmem_debug_output_lock = PTHREAD_MUTEX_INITIALIZER;
SHOAL_EXPORT int nvshmem_nvtx_options = 0;
SHOAL_EXPORT int nvshmem_options = 0;
}

void nvshmem_debug_log(int level, unsigned long, const char* function, int line, const char* format, ...) {
  if (level > nvshmem_debug_level || format == nullptr) return;
  FILE* file = nvshmem_debug_file != nullptr ? nvshmem_debug_file : stdout;
  pthread_mutex_lock(&nvshmem_debug_output_lock);
  fprintf(file, "NVSHMEM %s:%d ", function == nullptr ? "" : function, line);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fputc('\n', file);
  fflush(file);
  pthread_mutex_unlock(&nvshmem_debug_output_lock);
}
