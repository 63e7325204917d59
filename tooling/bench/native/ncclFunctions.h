/* The few things of NCCL that the C programs use, so that no nccl.h has to be found. */
#ifndef SHOAL_BENCH_NCCL_FUNCTIONS_H
#define SHOAL_BENCH_NCCL_FUNCTIONS_H

#include "ranks.h"

typedef int ncclResult_t;
typedef void* ncclComm_t;
typedef struct {
  char internal[ID_BYTES];
} ncclUniqueId;
enum { ncclSuccess = 0, ncclFloat32 = 7, ncclSum = 0 };

typedef ncclResult_t reduction(const void*, void*, size_t, int, int, ncclComm_t, CUstream);
typedef ncclResult_t movement(const void*, void*, size_t, int, ncclComm_t, CUstream);

static struct {
  ncclResult_t (*get_version)(int*);
  const char* (*error_string)(ncclResult_t);
  ncclResult_t (*get_unique_id)(ncclUniqueId*);
  ncclResult_t (*init_rank)(ncclComm_t*, int, ncclUniqueId, int);
  ncclResult_t (*destroy)(ncclComm_t);
  ncclResult_t (*group_start)(void);
  ncclResult_t (*group_end)(void);
  reduction *all_reduce, *reduce_scatter;
  movement* all_gather;
  /* NULL before NCCL 2.28. */
  movement* all_to_all;
} nccl;

static void check_nccl(ncclResult_t status, const char* call) {
  if (status != ncclSuccess) fail(call, nccl.error_string(status));
}
#define NCCL(call) check_nccl(call, #call)

static void load_nccl(const char* path) {
  void* library = open_library(path);
  nccl.get_version = symbol(library, "ncclGetVersion");
  nccl.error_string = symbol(library, "ncclGetErrorString");
  nccl.get_unique_id = symbol(library, "ncclGetUniqueId");
  nccl.init_rank = symbol(library, "ncclCommInitRank");
  nccl.destroy = symbol(library, "ncclCommDestroy");
  nccl.group_start = symbol(library, "ncclGroupStart");
  nccl.group_end = symbol(library, "ncclGroupEnd");
  nccl.all_reduce = symbol(library, "ncclAllReduce");
  nccl.reduce_scatter = symbol(library, "ncclReduceScatter");
  nccl.all_gather = symbol(library, "ncclAllGather");
  nccl.all_to_all = dlsym(library, "ncclAlltoAll");
}

#endif
