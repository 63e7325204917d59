/*
 * One rank from its start to its first all-reduce, in C. Arguments: the file of libnccl, the rank, the number of ranks.
 * After the exchange of the id it prints one line:
 *
 *   ready VERSION INIT FIRST   microseconds of ncclCommInitRank, and of the first all-reduce including its wait
 */
#include "ncclFunctions.h"

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: firstAllReduce LIBNCCL RANK RANKS\n"), 2;
  load_nccl(argv[1]);
  const int rank = atoi(argv[2]), world = atoi(argv[3]);
  CUstream stream;
  CUdeviceptr buffer;
  enter_device(rank);
  CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA(cuMemAlloc(&buffer, 1024));
  CUDA(cuMemsetD8(buffer, 0, 1024));
  ncclUniqueId id;
  if (rank == 0) NCCL(nccl.get_unique_id(&id));
  exchange_id((unsigned char*)id.internal, rank == 0);

  ncclComm_t comm;
  const double start = now();
  NCCL(nccl.init_rank(&comm, world, id, rank));
  const double made = now();
  NCCL(nccl.all_reduce((void*)buffer, (void*)buffer, 256, ncclFloat32, ncclSum, comm, stream));
  CUDA(cuStreamSynchronize(stream));
  const double done = now();
  int version = 0;
  NCCL(nccl.get_version(&version));
  printf("ready %d %.1f %.1f\n", version, (made - start) / 1e3, (done - made) / 1e3);
  fflush(stdout);
  char end[2];
  if (scanf("%1s", end) == 1) fail("standard input", "nothing more was expected");
  NCCL(nccl.destroy(comm));
  return 0;
}
