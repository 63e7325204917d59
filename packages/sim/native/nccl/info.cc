// Version and error texts.
#include "problem.h"

using namespace shoal::nccl;

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return problem(ncclInvalidArgument, "ncclGetVersion: version is NULL");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "a CUDA call failed";
    case ncclSystemError: return "a system call failed";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "another rank failed or is gone";
    case ncclInProgress: return "in progress";
    case ncclTimeout: return "time ran out";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return lastProblem(); }
