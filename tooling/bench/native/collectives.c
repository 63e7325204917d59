/*
 * Collectives from C, with one device per rank and one or more ranks per process. Answers requests on standard input,
 * so that its loops can alternate with other programs:
 *
 *   OPERATION BYTES ITERATIONS WARMUPS
 *
 * Queues WARMUPS operations and waits for them. Then queues ITERATIONS operations back to back, waits for all streams
 * once, and answers with the microseconds per operation. BYTES is the larger side of a rank, as in nccl-tests. A single
 * rank in its process needs no group; several ranks use one group per operation.
 *
 * Arguments: the file of libnccl, the first rank of this process, its number of ranks, the total number of ranks, and
 * the largest message. After the exchange of the id it prints `ready VERSION`, followed by `no all-to-all` if NCCL is
 * too old.
 */
#include "ncclFunctions.h"

enum operation { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL };

static int local, world;
static CUcontext contexts[MOST_DEVICES];
static CUstream streams[MOST_DEVICES];
static CUdeviceptr send[MOST_DEVICES], receive[MOST_DEVICES];
static ncclComm_t comms[MOST_DEVICES];

static inline void queue(enum operation operation, size_t count) {
  if (local > 1) NCCL(nccl.group_start());
  for (int i = 0; i < local; ++i) {
    const void* from = (const void*)send[i];
    void* to = (void*)receive[i];
    switch (operation) {
      case ALL_REDUCE: NCCL(nccl.all_reduce(from, to, count, ncclFloat32, ncclSum, comms[i], streams[i])); break;
      case ALL_GATHER: NCCL(nccl.all_gather(from, to, count, ncclFloat32, comms[i], streams[i])); break;
      case REDUCE_SCATTER:
        NCCL(nccl.reduce_scatter(from, to, count, ncclFloat32, ncclSum, comms[i], streams[i]));
        break;
      case ALL_TO_ALL: NCCL(nccl.all_to_all(from, to, count, ncclFloat32, comms[i], streams[i])); break;
    }
  }
  if (local > 1) NCCL(nccl.group_end());
}

static void synchronize(void) {
  for (int i = 0; i < local; ++i) CUDA(cuStreamSynchronize(streams[i]));
}

static enum operation operation_named(const char* name) {
  if (strcmp(name, "all-reduce") == 0) return ALL_REDUCE;
  if (strcmp(name, "all-gather") == 0) return ALL_GATHER;
  if (strcmp(name, "reduce-scatter") == 0) return REDUCE_SCATTER;
  if (strcmp(name, "all-to-all") == 0 && nccl.all_to_all != NULL) return ALL_TO_ALL;
  fail(name, "no such operation");
  return ALL_REDUCE;
}

int main(int argc, char** argv) {
  if (argc != 6) return fprintf(stderr, "usage: collectives LIBNCCL FIRST-RANK LOCAL-RANKS RANKS BYTES\n"), 2;
  load_nccl(argv[1]);
  const int first = atoi(argv[2]);
  local = atoi(argv[3]);
  world = atoi(argv[4]);
  const size_t most = strtoull(argv[5], NULL, 10);
  if (local < 1 || local > MOST_DEVICES || first < 0 || first + local > world) fail("ranks", "out of range");
  for (int i = 0; i < local; ++i) {
    contexts[i] = enter_device(first + i);
    CUDA(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    CUDA(cuMemAlloc(&send[i], most));
    CUDA(cuMemAlloc(&receive[i], most));
    CUDA(cuMemsetD8(send[i], 0, most));
    CUDA(cuMemsetD8(receive[i], 0, most));
  }
  ncclUniqueId id;
  if (first == 0) NCCL(nccl.get_unique_id(&id));
  exchange_id((unsigned char*)id.internal, first == 0);
  NCCL(nccl.group_start());
  for (int i = 0; i < local; ++i) {
    CUDA(cuCtxSetCurrent(contexts[i]));
    NCCL(nccl.init_rank(&comms[i], world, id, first + i));
  }
  NCCL(nccl.group_end());
  CUDA(cuCtxSetCurrent(contexts[0]));
  int version = 0;
  NCCL(nccl.get_version(&version));
  printf("ready %d%s\n", version, nccl.all_to_all == NULL ? " no all-to-all" : "");
  fflush(stdout);

  char name[32];
  size_t bytes;
  long iterations, warmups;
  while (scanf(" %31s %zu %ld %ld", name, &bytes, &iterations, &warmups) == 4) {
    const enum operation operation = operation_named(name);
    const size_t count = bytes / 4 / (operation == ALL_REDUCE ? 1 : world);
    if (bytes > most || count == 0) fail("BYTES", "more than the buffers hold, or nothing");
    for (long i = 0; i < warmups; ++i) queue(operation, count);
    synchronize();
    const double start = now();
    for (long i = 0; i < iterations; ++i) queue(operation, count);
    synchronize();
    answer((now() - start) / 1e3 / (double)iterations);
  }
  for (int i = 0; i < local; ++i) NCCL(nccl.destroy(comms[i]));
  return 0;
}
