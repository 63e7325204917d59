// The part of NCCL's C ABI that the software device speaks: names, values and layouts of NCCL 2.30.7.
#pragma once

#include <limits.h>

#include "shoal/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow_vidmem* ncclWindow_t;
typedef CUstream cudaStream_t;

#define NCCL_VERSION_CODE 23007
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum SHOAL_INT {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8,
  ncclNumResults = 9,
} ncclResult_t;

typedef enum SHOAL_INT {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12,
} ncclDataType_t;

// Values from ncclNumOps on are operations made by ncclRedOpCreatePreMulSum.
typedef enum SHOAL_INT {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff,
} ncclRedOp_t;

typedef enum SHOAL_INT { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_API_MAGIC 0xcafebeefu
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;
  int numRmaCtx;
  int maxP2pPeers;
  int graphStreamOrdering;
} ncclConfig_t;
#define NCCL_CTA_POLICY_DEFAULT 0
#define NCCL_CTA_POLICY_EFFICIENCY 1
#define NCCL_CTA_POLICY_ZERO 2
#define NCCL_CONFIG_INITIALIZER                                                                                                \
  {sizeof(ncclConfig_t),  NCCL_API_MAGIC,        NCCL_VERSION_CODE,     NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,           \
   NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NULL,                  NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,           \
   NULL,                  NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,           \
   NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,           \
   NCCL_CONFIG_UNDEF_INT}

#define NCCL_WIN_DEFAULT 0
#define NCCL_WIN_COLL_SYMMETRIC 1
#define NCCL_WIN_STRICT_ORDERING 2
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_SHRINK_DEFAULT 0
#define NCCL_SHRINK_ABORT 1
#define NCCL_REVOKE_DEFAULT 0
#define NCCL_SUSPEND_MEM 1

typedef enum SHOAL_INT {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3,
} ncclCommMemStat_t;

typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

typedef struct ncclMultimemHandle {
  void* mcBasePtr;
} ncclMultimemHandle_t;

#define SHOAL_NCCL(name, parameters) SHOAL_EXPORT ncclResult_t name parameters;

SHOAL_NCCL(ncclGetVersion, (int* version))
SHOAL_EXPORT const char* ncclGetErrorString(ncclResult_t result);
SHOAL_EXPORT const char* ncclGetLastError(ncclComm_t comm);

SHOAL_NCCL(ncclGetUniqueId, (ncclUniqueId* uniqueId))
SHOAL_NCCL(ncclCommInitAll, (ncclComm_t* comm, int ndev, const int* devlist))
SHOAL_NCCL(ncclCommInitRank, (ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank))
SHOAL_NCCL(ncclCommInitRankConfig, (ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config))
SHOAL_NCCL(ncclCommInitRankScalable, (ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config))
SHOAL_NCCL(ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config))
SHOAL_NCCL(ncclCommShrink, (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config,
                            int shrinkFlags))
SHOAL_NCCL(ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId* uniqueId))
SHOAL_NCCL(ncclCommGrow, (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm, ncclConfig_t* config))
SHOAL_NCCL(ncclCommRevoke, (ncclComm_t comm, int revokeFlags))
SHOAL_NCCL(ncclCommSuspend, (ncclComm_t comm, int flags))
SHOAL_NCCL(ncclCommResume, (ncclComm_t comm))
SHOAL_NCCL(ncclCommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value))
SHOAL_NCCL(ncclCommFinalize, (ncclComm_t comm))
SHOAL_NCCL(ncclCommDestroy, (ncclComm_t comm))
SHOAL_NCCL(ncclCommAbort, (ncclComm_t comm))
SHOAL_NCCL(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError))
SHOAL_NCCL(ncclCommCount, (const ncclComm_t comm, int* count))
SHOAL_NCCL(ncclCommCuDevice, (const ncclComm_t comm, int* device))
SHOAL_NCCL(ncclCommUserRank, (const ncclComm_t comm, int* rank))
SHOAL_NCCL(ncclCommRegister, (const ncclComm_t comm, void* buff, size_t size, void** handle))
SHOAL_NCCL(ncclCommDeregister, (const ncclComm_t comm, void* handle))
SHOAL_NCCL(ncclCommWindowRegister, (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags))
SHOAL_NCCL(ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win))
SHOAL_NCCL(ncclWinGetUserPtr, (ncclComm_t comm, ncclWindow_t win, void** outUserPtr))
SHOAL_NCCL(ncclGetLsaDevicePointer, (ncclWindow_t window, size_t offset, int lsaRank, void** outPtr))
SHOAL_NCCL(ncclGetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, void** outPtr))
SHOAL_NCCL(ncclGetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, void** outPtr))
SHOAL_NCCL(ncclGetMultimemDevicePointer, (ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void** outPtr))
SHOAL_NCCL(ncclMemAlloc, (void** ptr, size_t size))
SHOAL_NCCL(ncclMemFree, (void* ptr))
SHOAL_NCCL(ncclRedOpCreatePreMulSum, (ncclRedOp_t* op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,
                                      ncclComm_t comm))
SHOAL_NCCL(ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm))

SHOAL_NCCL(ncclGroupStart, (void))
SHOAL_NCCL(ncclGroupEnd, (void))
SHOAL_NCCL(ncclAllReduce, (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream))
SHOAL_NCCL(ncclReduce, (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream))
SHOAL_NCCL(ncclBroadcast, (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream))
SHOAL_NCCL(ncclBcast, (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream))
SHOAL_NCCL(ncclAllGather, (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream))
SHOAL_NCCL(ncclReduceScatter, (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream))
SHOAL_NCCL(ncclAlltoAll, (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream))
SHOAL_NCCL(ncclGather, (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream))
SHOAL_NCCL(ncclScatter, (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                         cudaStream_t stream))
SHOAL_NCCL(ncclSend, (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream))
SHOAL_NCCL(ncclPutSignal, (const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
                           size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
SHOAL_NCCL(ncclSignal, (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
SHOAL_NCCL(ncclWaitSignal, (int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream))
SHOAL_NCCL(ncclRecv, (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream))

#ifdef __cplusplus
}
#endif
