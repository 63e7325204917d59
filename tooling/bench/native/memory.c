/*
 * Mapped memory from C. Answers requests on standard input, so that its loops can alternate with other programs:
 *
 *   map COUNT         create, map, set access, wait for the context, unmap, release; nanoseconds per cycle
 *   mapWithoutWait    the same without the wait, for programs that know that the memory is idle
 *   grow COUNT        reserve the largest size and grow to it step by step; nanoseconds per growth
 *   release COUNT     wait, unmap the steps, free the addresses; nanoseconds per release
 *   growByCopy COUNT  grow by allocating new memory and copying, as a program without mapping does
 *   ranges COUNT      reserve, create, map, export, and release everything, COUNT times; nanoseconds per range
 *   resident, free, descriptors    resident bytes of this process, free bytes of the device, open descriptors
 *
 * Starts with a line `ready`. Arguments: the bytes of one mapping, the bytes of a step, the number of steps.
 */
#include "mapping.h"
#include <dirent.h>
#include <unistd.h>

static double map_and_unmap(CUdeviceptr address, size_t size, long count, int waits) {
  const CUmemAllocationProp wanted = properties(CU_MEM_HANDLE_TYPE_NONE);
  const double begin = now();
  for (long i = 0; i < count; ++i) {
    CUmemGenericAllocationHandle memory;
    CUDA(cuMemCreate(&memory, size, &wanted, 0));
    map(address, size, memory);
    if (waits) CUDA(cuCtxSynchronize());
    CUDA(cuMemUnmap(address, size));
    CUDA(cuMemRelease(memory));
  }
  return (now() - begin) / count;
}

static void grow_once(size_t step, long steps, double* growth, double* end) {
  const CUmemAllocationProp wanted = properties(CU_MEM_HANDLE_TYPE_NONE);
  double begin = now();
  CUdeviceptr address;
  CUDA(cuMemAddressReserve(&address, step * steps, 0, 0, 0));
  for (long i = 0; i < steps; ++i) {
    CUmemGenericAllocationHandle memory;
    CUDA(cuMemCreate(&memory, step, &wanted, 0));
    map(address + i * step, step, memory);
    CUDA(cuMemRelease(memory));
  }
  *growth += now() - begin;
  begin = now();
  CUDA(cuCtxSynchronize());
  for (long i = 0; i < steps; ++i) CUDA(cuMemUnmap(address + i * step, step));
  CUDA(cuMemAddressFree(address, step * steps));
  *end += now() - begin;
}

static double grow_by_copy(size_t step, long steps, long count) {
  double total = 0;
  for (long n = 0; n < count; ++n) {
    const double begin = now();
    CUdeviceptr memory;
    CUDA(cuMemAlloc(&memory, step));
    for (long i = 2; i <= steps; ++i) {
      CUdeviceptr larger;
      CUDA(cuMemAlloc(&larger, i * step));
      CUDA(cuMemcpyDtoD(larger, memory, (i - 1) * step));
      CUDA(cuCtxSynchronize());
      CUDA(cuMemFree(memory));
      memory = larger;
    }
    total += now() - begin;
    CUDA(cuMemFree(memory));
  }
  return total / count;
}

static double make_ranges(long count) {
  const CUmemAllocationProp wanted = properties(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  size_t size;
  CUDA(cuMemGetAllocationGranularity(&size, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  const double begin = now();
  for (long i = 0; i < count; ++i) {
    CUdeviceptr address;
    CUmemGenericAllocationHandle memory;
    int descriptor;
    CUDA(cuMemAddressReserve(&address, size, 0, 0, 0));
    CUDA(cuMemCreate(&memory, size, &wanted, 0));
    map(address, size, memory);
    CUDA(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(descriptor);
    CUDA(cuCtxSynchronize());
    CUDA(cuMemUnmap(address, size));
    CUDA(cuMemRelease(memory));
    CUDA(cuMemAddressFree(address, size));
  }
  return (now() - begin) / count;
}

static double resident(void) {
  long total, pages;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &total, &pages) != 2) fail("/proc/self/statm", strerror(errno));
  fclose(file);
  return (double)pages * sysconf(_SC_PAGESIZE);
}

static double descriptors(void) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == NULL) fail("/proc/self/fd", strerror(errno));
  // Does not count `.`, `..` and the descriptor of the folder itself.
  long count = -3;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: memory BYTES STEP_BYTES STEPS\n"), 2;
  const size_t size = strtoull(argv[1], NULL, 10), step = strtoull(argv[2], NULL, 10);
  const long steps = atol(argv[3]);
  enter_device(0);
  CUdeviceptr address;
  CUDA(cuMemAddressReserve(&address, size, 0, 0, 0));
  printf("ready\n");
  fflush(stdout);

  char line[128], name[32];
  while (fgets(line, sizeof line, stdin) != NULL) {
    long count = 1;
    double figure = 0, other = 0;
    if (sscanf(line, "%31s %ld", name, &count) < 1) continue;
    if (strcmp(name, "map") == 0) {
      figure = map_and_unmap(address, size, count, 1);
    } else if (strcmp(name, "mapWithoutWait") == 0) {
      figure = map_and_unmap(address, size, count, 0);
    } else if (strcmp(name, "grow") == 0 || strcmp(name, "release") == 0) {
      for (long i = 0; i < count; ++i) grow_once(step, steps, &figure, &other);
      figure = (name[0] == 'g' ? figure : other) / count;
    } else if (strcmp(name, "growByCopy") == 0) {
      figure = grow_by_copy(step, steps, count);
    } else if (strcmp(name, "ranges") == 0) {
      figure = make_ranges(count);
    } else if (strcmp(name, "resident") == 0) {
      figure = resident();
    } else if (strcmp(name, "free") == 0) {
      size_t left, total;
      CUDA(cuMemGetInfo(&left, &total));
      figure = left;
    } else if (strcmp(name, "descriptors") == 0) {
      figure = descriptors();
    } else {
      return fprintf(stderr, "unknown request %s\n", line), 2;
    }
    answer(figure);
  }
  return 0;
}
