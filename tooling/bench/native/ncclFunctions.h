/* The types and functions of NCCL that the programs use, so that no nccl.h is required. */
#ifndef SHOAL_BENCH_NCCL_FUNCTIONS_H
#define SHOAL_BENCH_NCCL_FUNCTIONS_H

#include "ranks.h"

typedef int ncclResult_t;
typedef void* ncclComm_t;
typedef struct {
  char internal[ID_BYTES];
} ncclUniqueId;
enum { ncclSuccess = 0, ncclFloat32 = 7, ncclSum = 0 };

#define FUNCTIONS(X)                                                                                                 \
  X(get_version, "ncclGetVersion", ncclResult_t, (int*))                                                             \
  X(error_string, "ncclGetErrorString", const char*, (ncclResult_t))                                                 \
  X(get_unique_id, "ncclGetUniqueId", ncclResult_t, (ncclUniqueId*))                                                 \
  X(init_rank, "ncclCommInitRank", ncclResult_t, (ncclComm_t*, int, ncclUniqueId, int))                              \
  X(destroy, "ncclCommDestroy", ncclResult_t, (ncclComm_t))                                                          \
  X(group_start, "ncclGroupStart", ncclResult_t, (void))                                                             \
  X(group_end, "ncclGroupEnd", ncclResult_t, (void))                                                                 \
  X(all_reduce, "ncclAllReduce", ncclResult_t, (const void*, void*, size_t, int, int, ncclComm_t, CUstream))         \
  X(reduce_scatter, "ncclReduceScatter", ncclResult_t, (const void*, void*, size_t, int, int, ncclComm_t, CUstream)) \
  X(all_gather, "ncclAllGather", ncclResult_t, (const void*, void*, size_t, int, ncclComm_t, CUstream))

static struct {
  FUNCTIONS(MEMBER)
  /* NULL before NCCL 2.28. */
  ncclResult_t (*all_to_all)(const void*, void*, size_t, int, ncclComm_t, CUstream);
} nccl;

static void check_nccl(ncclResult_t status, const char* call) {
  if (status != ncclSuccess) fail(call, nccl.error_string(status));
}
#define NCCL(call) check_nccl(call, #call)

static void load_nccl(const char* path) {
  void* library = open_library(path);
#define LOAD(name, symbol_name, result, parameters) nccl.name = symbol(library, symbol_name);
  FUNCTIONS(LOAD)
  nccl.all_to_all = dlsym(library, "ncclAlltoAll");
}

#endif
