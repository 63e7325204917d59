// NCCL on two GPUs of this process.
#pragma once

#include "cuda.h"
#include "shoal/nccl.h"

namespace corners {

inline ncclComm_t comm[2];
inline CUcontext context[2];
inline CUstream stream[2];
inline CUdeviceptr from[2], to[2];

inline int pair(bool withComms = true) {
  cuInit(0);
  for (int device = 0; device < 2; ++device) {
    context[device] = primary(device);
    cuStreamCreate(&stream[device], CU_STREAM_NON_BLOCKING);
    cuMemAlloc_v2(&from[device], 4096);
    cuMemAlloc_v2(&to[device], 4096);
  }
  if (withComms) say("ncclCommInitAll", ncclCommInitAll(comm, 2, nullptr));
  return cuCtxSetCurrent(context[0]);
}

inline ncclResult_t reduce(int rank, size_t count, int type = ncclFloat32, int op = ncclSum) {
  return ncclAllReduce((void*)from[rank], (void*)to[rank], count, (ncclDataType_t)type, (ncclRedOp_t)op, comm[rank],
                       stream[rank]);
}

// Waits for both streams.
inline int finish() {
  for (int device = 0; device < 2; ++device) {
    cuCtxSetCurrent(context[device]);
    cuStreamSynchronize(stream[device]);
  }
  return cuCtxSetCurrent(context[0]);
}

}  // namespace corners
