/*
 * Training steps in C: the kernels, launches and collectives from a list file, captured in one graph. Answers requests
 * on standard input, so that its loops can alternate with other programs:
 *
 *   steps COUNT   queues COUNT steps, waits for them, and answers with the microseconds per step
 *   loss          answers with the loss of the last step
 *
 * Arguments: the file of libnccl, the rank, the number of ranks, the list file, a file with the initial content of the
 * device memory, and a file with the code. Starts with a line `ready VERSION` after the exchange of the id. The list
 * has these lines; N is the number of arguments:
 *
 *   memory BYTES
 *   loss OFFSET STEP-OFFSET KEPT
 *   launch KERNEL GRID-X GRID-Y GRID-Z BLOCK-X BLOCK-Y BLOCK-Z N ARGUMENT …     ARGUMENT: p OFFSET, or v BITS
 *   all-reduce OFFSET COUNT
 */
#include "ncclFunctions.h"

#define MOST_ARGUMENTS 16

static CUdeviceptr memory;
static ncclComm_t comm;
static CUstream stream;

/* Queues the operations of the list. With NULL for the module, only reads the sizes. */
static void queue(const char* list, CUmodule module) {
  char word[16], kernel[256], kind;
  unsigned grid[3], block[3];
  int count, used;
  while (sscanf(list, "%15s%n", word, &used) == 1) {
    list += used;
    if (strcmp(word, "launch") == 0) {
      if (sscanf(list, "%255s %u %u %u %u %u %u %d%n", kernel, grid, grid + 1, grid + 2, block, block + 1, block + 2,
                 &count, &used) != 8 ||
          count > MOST_ARGUMENTS)
        fail("launch", list);
      list += used;
      unsigned long long values[MOST_ARGUMENTS];
      void* arguments[MOST_ARGUMENTS];
      for (int i = 0; i < count; ++i) {
        if (sscanf(list, " %c %llu%n", &kind, &values[i], &used) != 2) fail("argument", kernel);
        list += used;
        if (kind == 'p') values[i] += memory;
        arguments[i] = &values[i];
      }
      CUfunction function;
      CUDA(cuModuleGetFunction(&function, module, kernel));
      CUDA(cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, stream, arguments,
                          NULL));
    } else if (strcmp(word, "all-reduce") == 0) {
      size_t offset, numbers;
      if (sscanf(list, "%zu %zu%n", &offset, &numbers, &used) != 2) fail("all-reduce", list);
      list += used;
      void* data = (void*)(memory + offset);
      NCCL(nccl.all_reduce(data, data, numbers, ncclFloat32, ncclSum, comm, stream));
    } else {
      fail("list", word);
    }
  }
}

int main(int argc, char** argv) {
  if (argc != 7) return fprintf(stderr, "usage: gpt LIBNCCL RANK RANKS LIST MEMORY CODE\n"), 2;
  load_nccl(argv[1]);
  const int rank = atoi(argv[2]), world = atoi(argv[3]);
  enter_device(rank);
  CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const char* list = read_file(argv[4]);
  size_t bytes, loss_offset, step_offset;
  int kept, used;
  if (sscanf(list, "memory %zu loss %zu %zu %d%n", &bytes, &loss_offset, &step_offset, &kept, &used) != 4)
    fail("list", "no sizes");
  list += used;
  CUDA(cuMemAlloc(&memory, bytes));
  CUDA(cuMemsetD8(memory, 0, bytes));
  FILE* file = fopen(argv[5], "rb");
  if (file == NULL) fail(argv[5], strerror(errno));
  fseek(file, 0, SEEK_END);
  const long first = ftell(file);
  fclose(file);
  CUDA(cuMemcpyHtoD(memory, read_file(argv[5]), first));
  CUmodule module;
  CUDA(cuModuleLoadData(&module, read_file(argv[6])));

  ncclUniqueId id;
  if (rank == 0) NCCL(nccl.get_unique_id(&id));
  exchange_id((unsigned char*)id.internal, rank == 0);
  NCCL(nccl.init_rank(&comm, world, id, rank));
  /* The first all-reduce connects the ranks, which cannot be captured. It sums zeros. */
  CUdeviceptr zeros;
  CUDA(cuMemAlloc(&zeros, 4));
  CUDA(cuMemsetD8(zeros, 0, 4));
  NCCL(nccl.all_reduce((void*)zeros, (void*)zeros, 1, ncclFloat32, ncclSum, comm, stream));
  CUDA(cuStreamSynchronize(stream));
  CUgraph graph;
  CUgraphExec exec;
  CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  queue(list, module);
  CUDA(cuStreamEndCapture(stream, &graph));
  CUDA(cuGraphInstantiate(&exec, graph, 0));
  int version = 0;
  NCCL(nccl.get_version(&version));
  printf("ready %d\n", version);
  fflush(stdout);

  char name[32];
  while (scanf(" %31s", name) == 1) {
    if (strcmp(name, "loss") == 0) {
      int step;
      float loss;
      CUDA(cuMemcpyDtoH(&step, memory + step_offset, 4));
      CUDA(cuMemcpyDtoH(&loss, memory + loss_offset + 4 * ((step - 1) % kept), 4));
      printf("%.17g\n", loss);
      fflush(stdout);
      continue;
    }
    long steps;
    if (strcmp(name, "steps") != 0 || scanf("%ld", &steps) != 1)
      return fprintf(stderr, "gpt.c: unknown request %s\n", name), 2;
    const double start = now();
    for (long i = 0; i < steps; ++i) CUDA(cuGraphLaunch(exec, stream));
    CUDA(cuStreamSynchronize(stream));
    answer((now() - start) / 1e3 / (double)steps);
  }
  NCCL(nccl.destroy(comm));
  return 0;
}
