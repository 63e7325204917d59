// The part of NCCL's C ABI that the software device speaks: names, values and layouts of NCCL 2.30.7.
#pragma once

#include <limits.h>
#include <stdbool.h>

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

typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
} ncclSimInfo_t;
#define NCCL_SIM_INFO_MAGIC 0x74685283u
#define NCCL_SIM_INFO_INITIALIZER {sizeof(ncclSimInfo_t), NCCL_SIM_INFO_MAGIC, NCCL_VERSION_CODE, -1.0f}

typedef struct ncclParamHandle* ncclParamHandle_t;

// ---- of the device API, what the host sees

typedef struct ncclMultimemHandle {
  void* mcBasePtr;
} ncclMultimemHandle_t;

typedef struct ncclTeam {
  int nRanks, rank, stride;
} ncclTeam_t;

typedef uint32_t ncclDevResourceHandle_t;
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;

typedef struct ncclLsaBarrierHandle {
  ncclDevResourceHandle_t bufHandle;
  int nBarriers;
} ncclLsaBarrierHandle_t;

typedef struct ncclGinBarrierHandle {
  ncclGinSignal_t signal0;
  ncclDevResourceHandle_t unused;
} ncclGinBarrierHandle_t;

typedef struct ncclLLA2AHandle {
  ncclDevResourceHandle_t bufHandle;
  uint32_t nSlots;
} ncclLLA2AHandle_t;

typedef struct ncclGinOutboxHandle {
  ncclDevResourceHandle_t bufHandle;
  uint32_t size_log2;
} ncclGinOutboxHandle_t;

typedef struct ncclGinInboxA2AHandle {
  ncclDevResourceHandle_t bufHandle;
  ncclGinSignal_t signals;
  uint32_t size_log2;
  uint32_t nPeers_rcp32;
} ncclGinInboxA2AHandle_t;

typedef enum SHOAL_INT {
  NCCL_GIN_CONNECTION_NONE = 0,
  NCCL_GIN_CONNECTION_FULL = 1,
  NCCL_GIN_CONNECTION_RAIL = 2,
} ncclGinConnectionType_t;

typedef enum SHOAL_INT {
  NCCL_GIN_TYPE_NONE = 0,
  NCCL_GIN_TYPE_PROXY = 2,
  NCCL_GIN_TYPE_GDAKI = 3,
  NCCL_GIN_TYPE_GPI = 4,
} ncclGinType_t;

typedef struct ncclDevResourceRequirements {
  struct ncclDevResourceRequirements* next;
  size_t bufferSize, bufferAlign;
  ncclDevResourceHandle_t* outBufferHandle;
  int ginSignalCount;
  int ginCounterCount;
  ncclGinSignal_t* outGinSignalStart;
  ncclGinCounter_t* outGinCounterStart;
} ncclDevResourceRequirements_t;

typedef struct ncclTeamRequirements {
  struct ncclTeamRequirements* next;
  ncclTeam_t team;
  bool multimem;
  ncclMultimemHandle_t* outMultimemHandle;
} ncclTeamRequirements_t;

typedef struct ncclDevCommRequirements {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclDevResourceRequirements_t* resourceRequirementsList;
  ncclTeamRequirements_t* teamRequirementsList;
  bool lsaMultimem;
  int barrierCount;
  int lsaBarrierCount;
  int railGinBarrierCount;
  int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
  bool ginForceEnable;
  int ginContextCount;
  int ginSignalCount;
  int ginCounterCount;
  ncclGinConnectionType_t ginConnectionType;
  bool ginExclusiveContexts;
  int ginQueueDepth;
  int ginTrafficClass;
  int worldGinBarrierCount;
  bool ginStrongSignalsRequired;
  bool ginVaSignalsRequired;
} ncclDevCommRequirements_t;
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER                                                                                        \
  {sizeof(ncclDevCommRequirements_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NULL, NULL, false, 0, 0, 0, 0, 0, false, 4, 0, 0,            \
   NCCL_GIN_CONNECTION_NONE, false, 0, NCCL_CONFIG_UNDEF_INT, 0, true, true}

typedef struct ncclCommProperties {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
  bool deviceApiSupport;
  bool multimemSupport;
  ncclGinType_t ginType;
  int nLsaTeams;
  bool hostRmaSupport;
  ncclGinType_t railedGinType;
} ncclCommProperties_t;
#define NCCL_COMM_PROPERTIES_INITIALIZER {sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION_CODE}

#define NCCL_GIN_MAX_CONNECTIONS 4
typedef struct ncclResourceWindow_vidmem {
  char reserved1[8];
  char* lsaFlatBase;
  char reserved2[8];
  uint32_t stride4G;
  uint32_t mcOffset4K;
  char reserved3[32];
} ncclResourceWindow_vidmem_t;

typedef struct ncclDevComm {
  unsigned int magic;
  unsigned int version;
  int rank, nRanks;
  uint32_t nRanks_rcp32;
  int lsaRank, lsaSize;
  uint32_t lsaSize_rcp32;
  void* windowTable;
  ncclWindow_t resourceWindow;
  ncclResourceWindow_vidmem_t resourceWindow_inlined;
  ncclGinBarrierHandle_t hybridWorldGinBarrier;
  ncclMultimemHandle_t lsaMultimem;
  ncclLsaBarrierHandle_t lsaBarrier;
  ncclGinBarrierHandle_t railGinBarrier;
  uint8_t ginConnectionCount;
  uint8_t ginNetDeviceTypes[NCCL_GIN_MAX_CONNECTIONS];
  void* ginHandles[NCCL_GIN_MAX_CONNECTIONS];
  int ginSignalCount;
  int ginCounterCount;
  uint64_t* ginSignalShadows;
  uint32_t ginContextCount;
  bool ginConnectionsRailed;
  bool ginStrongLegacySignals;
  bool ginContextsRailed;
  uint32_t* abortFlag;
  ncclLsaBarrierHandle_t hybridLsaBarrier;
  ncclGinBarrierHandle_t hybridRailGinBarrier;
  ncclGinBarrierHandle_t worldGinBarrier;
} ncclDevComm_t;

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
SHOAL_NCCL(ncclCommQueryProperties, (ncclComm_t comm, ncclCommProperties_t* props))
SHOAL_NCCL(ncclDevCommCreate, (ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm))
SHOAL_NCCL(ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm_t* devComm))
SHOAL_EXPORT ncclTeam_t ncclTeamWorld(ncclComm_t comm);
SHOAL_EXPORT ncclTeam_t ncclTeamLsa(ncclComm_t comm);
SHOAL_EXPORT ncclTeam_t ncclTeamRail(ncclComm_t comm);
SHOAL_EXPORT int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
SHOAL_EXPORT int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);
SHOAL_EXPORT int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);
SHOAL_NCCL(ncclLLA2ACreateRequirement, (int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle, ncclDevResourceRequirements_t* outReq))
SHOAL_NCCL(ncclLsaBarrierCreateRequirement, (ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t* outHandle,
                                             ncclDevResourceRequirements_t* outReq))
SHOAL_NCCL(ncclGinBarrierCreateRequirement, (ncclComm_t comm, ncclTeam_t team, int nBarriers, ncclGinBarrierHandle_t* outHandle,
                                             ncclDevResourceRequirements_t* outReq))
SHOAL_NCCL(ncclGinOutboxCreateRequirement, (int nBlocks, int size_log2, ncclGinOutboxHandle_t* outHandle,
                                            ncclDevResourceRequirements_t* outReq))
SHOAL_NCCL(ncclGinInboxA2ACreateRequirement, (ncclTeam_t peers, int nBlocks, int size_log2, ncclGinInboxA2AHandle_t* outHandle,
                                              ncclDevResourceRequirements_t* outReq))

SHOAL_NCCL(ncclParamBind, (ncclParamHandle_t* out, const char* key))
SHOAL_NCCL(ncclParamGetI8, (ncclParamHandle_t h, int8_t* out))
SHOAL_NCCL(ncclParamGetI16, (ncclParamHandle_t h, int16_t* out))
SHOAL_NCCL(ncclParamGetI32, (ncclParamHandle_t h, int32_t* out))
SHOAL_NCCL(ncclParamGetI64, (ncclParamHandle_t h, int64_t* out))
SHOAL_NCCL(ncclParamGetU8, (ncclParamHandle_t h, uint8_t* out))
SHOAL_NCCL(ncclParamGetU16, (ncclParamHandle_t h, uint16_t* out))
SHOAL_NCCL(ncclParamGetU32, (ncclParamHandle_t h, uint32_t* out))
SHOAL_NCCL(ncclParamGetU64, (ncclParamHandle_t h, uint64_t* out))
SHOAL_NCCL(ncclParamGetStr, (ncclParamHandle_t h, const char** out))
SHOAL_NCCL(ncclParamGet, (ncclParamHandle_t h, void* out, int maxLen, int* len))
SHOAL_NCCL(ncclParamGetParameter, (const char* key, const char** value, int* valueLen))
SHOAL_NCCL(ncclParamGetAllParameterKeys, (const char*** table, int* tableLen))
SHOAL_EXPORT void ncclParamDumpAll(void);
SHOAL_EXPORT void ncclResetDebugInit(void);
SHOAL_EXPORT void ncclResetDebugInitInternal(void);

SHOAL_NCCL(ncclMemAlloc, (void** ptr, size_t size))
SHOAL_NCCL(ncclMemFree, (void* ptr))
SHOAL_NCCL(ncclRedOpCreatePreMulSum, (ncclRedOp_t* op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,
                                      ncclComm_t comm))
SHOAL_NCCL(ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm))

SHOAL_NCCL(ncclGroupStart, (void))
SHOAL_NCCL(ncclGroupEnd, (void))
SHOAL_NCCL(ncclGroupSimulateEnd, (ncclSimInfo_t* simInfo))
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

// What only the software device has.

// Replaces the faults injected into ranks of this process; null: none. In the words of SHOAL_SIM_FAULT, which says it from the
// start; an ncclResult_t.
SHOAL_EXPORT int shoalSimNcclFault(const char* faults);

#ifdef __cplusplus
}
#endif
