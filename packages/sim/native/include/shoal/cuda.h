// The part of the CUDA driver's C ABI that the software device speaks: names, values and layouts.
// Declared here so that nothing of the CUDA toolkit is needed to build this package.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define SHOAL_EXPORT __declspec(dllexport)
#else
#define SHOAL_EXPORT __attribute__((visibility("default")))
#endif

// Callers may pass any number where an enumeration is expected; with a fixed type that is no undefined behaviour in C++.
#ifdef __cplusplus
#define SHOAL_INT : int
#else
#define SHOAL_INT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUlib_st* CUlibrary;
typedef struct CUkern_st* CUkernel;
typedef struct CUarray_st* CUarray;
typedef struct CUgreenCtx_st* CUgreenCtx;
typedef struct CUmemPoolHandle_st* CUmemoryPool;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUarrayMapInfo_st CUarrayMapInfo;

typedef struct CUuuid_st {
  char bytes[16];
} CUuuid;

typedef enum cudaError_enum SHOAL_INT {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_PROFILER_DISABLED = 5,
  CUDA_ERROR_PROFILER_NOT_INITIALIZED = 6,
  CUDA_ERROR_PROFILER_ALREADY_STARTED = 7,
  CUDA_ERROR_PROFILER_ALREADY_STOPPED = 8,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_DEVICE_NOT_LICENSED = 102,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202,
  CUDA_ERROR_MAP_FAILED = 205,
  CUDA_ERROR_UNMAP_FAILED = 206,
  CUDA_ERROR_ARRAY_IS_MAPPED = 207,
  CUDA_ERROR_ALREADY_MAPPED = 208,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ALREADY_ACQUIRED = 210,
  CUDA_ERROR_NOT_MAPPED = 211,
  CUDA_ERROR_NOT_MAPPED_AS_ARRAY = 212,
  CUDA_ERROR_NOT_MAPPED_AS_POINTER = 213,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
  CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_INVALID_GRAPHICS_CONTEXT = 219,
  CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
  CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224,
  CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225,
  CUDA_ERROR_CONTAINED = 226,
  CUDA_ERROR_INVALID_SOURCE = 300,
  CUDA_ERROR_FILE_NOT_FOUND = 301,
  CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
  CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_LOSSY_QUERY = 402,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_TOO_MANY_PEERS = 711,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
  CUDA_ERROR_MPS_CONNECTION_FAILED = 805,
  CUDA_ERROR_MPS_RPC_FAILURE = 806,
  CUDA_ERROR_MPS_SERVER_NOT_READY = 807,
  CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808,
  CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809,
  CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
  CUDA_ERROR_CDP_NOT_SUPPORTED = 811,
  CUDA_ERROR_CDP_VERSION_MISMATCH = 812,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  CUDA_ERROR_TIMEOUT = 909,
  CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
  CUDA_ERROR_EXTERNAL_DEVICE = 911,
  CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
  CUDA_ERROR_FUNCTION_NOT_LOADED = 913,
  CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
  CUDA_ERROR_KEY_ROTATION = 916,
  CUDA_ERROR_UNKNOWN = 999,
} CUresult;

// Device attribute codes run from 1 to 147 in CUDA 13.0; the ones the sources name are listed here.
typedef int CUdevice_attribute;
typedef enum CUdevice_P2PAttribute_enum SHOAL_INT {
  CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
  CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
  CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
  CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED = 4,
  CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED = 5,
} CUdevice_P2PAttribute;
typedef enum CUexecAffinityType_enum SHOAL_INT { CU_EXEC_AFFINITY_TYPE_SM_COUNT = 0 } CUexecAffinityType;

typedef enum CUctx_flags_enum SHOAL_INT {
  CU_CTX_SCHED_AUTO = 0x00,
  CU_CTX_SCHED_SPIN = 0x01,
  CU_CTX_SCHED_YIELD = 0x02,
  CU_CTX_SCHED_BLOCKING_SYNC = 0x04,
  CU_CTX_SCHED_MASK = 0x07,
  CU_CTX_MAP_HOST = 0x08,
  CU_CTX_LMEM_RESIZE_TO_MAX = 0x10,
  CU_CTX_COREDUMP_ENABLE = 0x20,
  CU_CTX_USER_COREDUMP_ENABLE = 0x40,
  CU_CTX_SYNC_MEMOPS = 0x80,
  CU_CTX_FLAGS_MASK = 0xFF,
} CUctx_flags;

typedef enum CUlimit_enum SHOAL_INT {
  CU_LIMIT_STACK_SIZE = 0,
  CU_LIMIT_PRINTF_FIFO_SIZE = 1,
  CU_LIMIT_MALLOC_HEAP_SIZE = 2,
  CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
  CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
  CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
  CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
  CU_LIMIT_SHMEM_SIZE = 7,
  CU_LIMIT_CIG_ENABLED = 8,
  CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED = 9,
} CUlimit;
typedef int CUfunc_cache;    // 0 none, 1 shared, 2 L1, 3 equal
typedef int CUsharedconfig;  // 0 default, 1 four bytes, 2 eight bytes

typedef struct CUexecAffinityParam_st {
  CUexecAffinityType type;
  union {
    struct {
      unsigned int val;
    } smCount;
  } param;
} CUexecAffinityParam;
typedef struct CUctxCigParam_st {
  int sharedDataType;
  void* sharedData;
} CUctxCigParam;
typedef struct CUctxCreateParams_st {
  CUexecAffinityParam* execAffinityParams;
  int numExecAffinityParams;
  CUctxCigParam* cigParams;
} CUctxCreateParams;

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_STREAM_DEFAULT 0x0u
#define CU_STREAM_NON_BLOCKING 0x1u

#define CU_EVENT_DEFAULT 0x0u
#define CU_EVENT_BLOCKING_SYNC 0x1u
#define CU_EVENT_DISABLE_TIMING 0x2u
#define CU_EVENT_INTERPROCESS 0x4u
#define CU_EVENT_RECORD_EXTERNAL 0x1u
#define CU_EVENT_WAIT_EXTERNAL 0x1u

#define CU_STREAM_WAIT_VALUE_GEQ 0x0u
#define CU_STREAM_WAIT_VALUE_EQ 0x1u
#define CU_STREAM_WAIT_VALUE_AND 0x2u
#define CU_STREAM_WAIT_VALUE_NOR 0x3u
#define CU_STREAM_WAIT_VALUE_FLUSH (1u << 30)
#define CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER 0x1u

typedef enum CUstreamCaptureStatus_enum SHOAL_INT { CU_STREAM_CAPTURE_STATUS_NONE = 0 } CUstreamCaptureStatus;

#define CU_MEMHOSTALLOC_PORTABLE 0x01u
#define CU_MEMHOSTALLOC_DEVICEMAP 0x02u
#define CU_MEMHOSTALLOC_WRITECOMBINED 0x04u
#define CU_MEMHOSTREGISTER_PORTABLE 0x01u
#define CU_MEMHOSTREGISTER_DEVICEMAP 0x02u
#define CU_MEMHOSTREGISTER_IOMEMORY 0x04u
#define CU_MEMHOSTREGISTER_READ_ONLY 0x08u
#define CU_MEM_ATTACH_GLOBAL 0x1u
#define CU_MEM_ATTACH_HOST 0x2u
#define CU_MEM_ATTACH_SINGLE 0x4u

typedef enum CUmemorytype_enum SHOAL_INT {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_ARRAY = 3,
  CU_MEMORYTYPE_UNIFIED = 4,
} CUmemorytype;

typedef struct CUDA_MEMCPY2D_st {
  size_t srcXInBytes;
  size_t srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes;
  size_t dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes;
  size_t Height;
} CUDA_MEMCPY2D;

typedef enum CUpointer_attribute_enum SHOAL_INT {
  CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
  CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
  CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  CU_POINTER_ATTRIBUTE_MAPPED = 13,
  CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
  CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
  CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
  CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
  CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
  CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
  CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
  CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE = 21,
} CUpointer_attribute;

// Managed memory
typedef enum CUmem_advise_enum SHOAL_INT {
  CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
  CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
  CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
  CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
  CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
  CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
} CUmem_advise;
typedef enum CUmem_range_attribute_enum SHOAL_INT {
  CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1,
  CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2,
  CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3,
  CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 4,
  CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE = 5,
  CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID = 6,
  CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE = 7,
  CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID = 8,
} CUmem_range_attribute;

// Where memory lies, how it may be shared and touched
typedef enum CUmemLocationType_enum SHOAL_INT {
  CU_MEM_LOCATION_TYPE_NONE = 0,
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_LOCATION_TYPE_HOST = 2,
  CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
  CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
} CUmemLocationType;
typedef struct CUmemLocation_st {
  CUmemLocationType type;
  int id;
} CUmemLocation;
typedef enum CUmemAllocationType_enum SHOAL_INT {
  CU_MEM_ALLOCATION_TYPE_PINNED = 1,
  CU_MEM_ALLOCATION_TYPE_MANAGED = 2,
} CUmemAllocationType;
typedef enum CUmemAllocationHandleType_enum SHOAL_INT {
  CU_MEM_HANDLE_TYPE_NONE = 0,
  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
  CU_MEM_HANDLE_TYPE_WIN32 = 2,
  CU_MEM_HANDLE_TYPE_WIN32_KMT = 4,
  CU_MEM_HANDLE_TYPE_FABRIC = 8,
} CUmemAllocationHandleType;
typedef enum CUmemAccess_flags_enum SHOAL_INT {
  CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
} CUmemAccess_flags;
typedef struct CUmemAccessDesc_st {
  CUmemLocation location;
  CUmemAccess_flags flags;
} CUmemAccessDesc;

// Virtual memory management
typedef enum CUmemAllocationGranularity_flags_enum SHOAL_INT {
  CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
} CUmemAllocationGranularity_flags;
#define CU_MEM_ALLOCATION_COMP_NONE 0
#define CU_MEM_ALLOCATION_COMP_GENERIC 1
#define CU_MEM_CREATE_USAGE_TILE_POOL 0x1
#define CU_MEM_CREATE_USAGE_HW_DECOMPRESS 0x2
typedef struct CUmemAllocationProp_st {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
} CUmemAllocationProp;
typedef enum CUmemRangeHandleType_enum SHOAL_INT { CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1 } CUmemRangeHandleType;
#define CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE 0x1

// Memory pools
typedef enum CUmemPool_attribute_enum SHOAL_INT {
  CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
  CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
  CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
  CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
  CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
  CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
  CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
  CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
} CUmemPool_attribute;
typedef struct CUmemPoolProps_st {
  CUmemAllocationType allocType;
  CUmemAllocationHandleType handleTypes;
  CUmemLocation location;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;
typedef struct CUmemPoolPtrExportData_st {
  unsigned char reserved[64];
} CUmemPoolPtrExportData;

// Handles for other processes
#define CU_IPC_HANDLE_SIZE 64
#define CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS 0x1u
typedef struct CUmemFabricHandle_st {
  unsigned char data[CU_IPC_HANDLE_SIZE];
} CUmemFabricHandle;
typedef struct CUipcEventHandle_st {
  char reserved[CU_IPC_HANDLE_SIZE];
} CUipcEventHandle;
typedef struct CUipcMemHandle_st {
  char reserved[CU_IPC_HANDLE_SIZE];
} CUipcMemHandle;

// Multicast
typedef enum CUmulticastGranularity_flags_enum SHOAL_INT {
  CU_MULTICAST_GRANULARITY_MINIMUM = 0,
  CU_MULTICAST_GRANULARITY_RECOMMENDED = 1,
} CUmulticastGranularity_flags;
typedef struct CUmulticastObjectProp_st {
  unsigned int numDevices;
  size_t size;
  unsigned long long handleTypes;
  unsigned long long flags;
} CUmulticastObjectProp;

typedef int CUjit_option;
#define CU_JIT_INFO_LOG_BUFFER 3
#define CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES 4
#define CU_JIT_ERROR_LOG_BUFFER 5
#define CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES 6
typedef int CUlibraryOption;
typedef int CUfunction_attribute;
typedef int CUmoduleLoadingMode;  // 1 eager, 2 lazy

typedef struct CUlaunchAttribute_st CUlaunchAttribute;
typedef struct CUlaunchConfig_st {
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

#define CU_GET_PROC_ADDRESS_DEFAULT 0
#define CU_GET_PROC_ADDRESS_LEGACY_STREAM 1
#define CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM 2
typedef enum CUdriverProcAddressQueryResult_enum SHOAL_INT {
  CU_GET_PROC_ADDRESS_SUCCESS = 0,
  CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
} CUdriverProcAddressQueryResult;

typedef void (*CUhostFn)(void* userData);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void* userData);
typedef size_t (*CUoccupancyB2DSize)(int blockSize);

#define SHOAL_CU(name, parameters) SHOAL_EXPORT CUresult name parameters;
// Functions with a twin whose stream 0 is the calling thread's own default stream.
#define SHOAL_CU_PTSZ(name, parameters) SHOAL_CU(name, parameters) SHOAL_CU(name##_ptsz, parameters)
#define SHOAL_CU_PTDS(name, parameters) SHOAL_CU(name, parameters) SHOAL_CU(name##_ptds, parameters)

// Initialisation, errors, entry points
SHOAL_CU(cuInit, (unsigned int Flags))
SHOAL_CU(cuDriverGetVersion, (int* driverVersion))
SHOAL_CU(cuGetErrorName, (CUresult error, const char** pStr))
SHOAL_CU(cuGetErrorString, (CUresult error, const char** pStr))
SHOAL_CU(cuGetProcAddress, (const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags))
SHOAL_CU(cuGetProcAddress_v2, (const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                               CUdriverProcAddressQueryResult* symbolStatus))

// Devices
SHOAL_CU(cuDeviceGet, (CUdevice* device, int ordinal))
SHOAL_CU(cuDeviceGetCount, (int* count))
SHOAL_CU(cuDeviceGetName, (char* name, int len, CUdevice dev))
SHOAL_CU(cuDeviceGetUuid, (CUuuid* uuid, CUdevice dev))
SHOAL_CU(cuDeviceGetUuid_v2, (CUuuid* uuid, CUdevice dev))
SHOAL_CU(cuDeviceGetLuid, (char* luid, unsigned int* deviceNodeMask, CUdevice dev))
SHOAL_CU(cuDeviceTotalMem_v2, (size_t* bytes, CUdevice dev))
SHOAL_CU(cuDeviceGetAttribute, (int* pi, CUdevice_attribute attrib, CUdevice dev))
SHOAL_CU(cuDeviceComputeCapability, (int* major, int* minor, CUdevice dev))
SHOAL_CU(cuDeviceGetPCIBusId, (char* pciBusId, int len, CUdevice dev))
SHOAL_CU(cuDeviceGetByPCIBusId, (CUdevice* dev, const char* pciBusId))
SHOAL_CU(cuDeviceGetP2PAttribute, (int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice))
SHOAL_CU(cuDeviceCanAccessPeer, (int* canAccessPeer, CUdevice dev, CUdevice peerDev))
SHOAL_CU(cuDeviceGetExecAffinitySupport, (int* pi, CUexecAffinityType type, CUdevice dev))
SHOAL_CU(cuDevicePrimaryCtxRetain, (CUcontext* pctx, CUdevice dev))
SHOAL_CU(cuDevicePrimaryCtxRelease, (CUdevice dev))
SHOAL_CU(cuDevicePrimaryCtxRelease_v2, (CUdevice dev))
SHOAL_CU(cuDevicePrimaryCtxReset, (CUdevice dev))
SHOAL_CU(cuDevicePrimaryCtxReset_v2, (CUdevice dev))
SHOAL_CU(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned int* flags, int* active))
SHOAL_CU(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned int flags))
SHOAL_CU(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags))

// Contexts
SHOAL_CU(cuCtxCreate_v2, (CUcontext* pctx, unsigned int flags, CUdevice dev))
SHOAL_CU(cuCtxCreate_v3, (CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams, unsigned int flags, CUdevice dev))
SHOAL_CU(cuCtxCreate_v4, (CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags, CUdevice dev))
SHOAL_CU(cuCtxDestroy, (CUcontext ctx))
SHOAL_CU(cuCtxDestroy_v2, (CUcontext ctx))
SHOAL_CU(cuCtxGetCurrent, (CUcontext* pctx))
SHOAL_CU(cuCtxSetCurrent, (CUcontext ctx))
SHOAL_CU(cuCtxPushCurrent, (CUcontext ctx))
SHOAL_CU(cuCtxPushCurrent_v2, (CUcontext ctx))
SHOAL_CU(cuCtxPopCurrent, (CUcontext* pctx))
SHOAL_CU(cuCtxPopCurrent_v2, (CUcontext* pctx))
SHOAL_CU(cuCtxGetDevice, (CUdevice* device))
SHOAL_CU(cuCtxGetDevice_v2, (CUdevice* device, CUcontext ctx))
SHOAL_CU(cuCtxSynchronize, (void))
SHOAL_CU(cuCtxSynchronize_v2, (CUcontext ctx))
SHOAL_CU(cuCtxGetFlags, (unsigned int* flags))
SHOAL_CU(cuCtxSetFlags, (unsigned int flags))
SHOAL_CU(cuCtxGetId, (CUcontext ctx, unsigned long long* ctxId))
SHOAL_CU(cuCtxGetApiVersion, (CUcontext ctx, unsigned int* version))
SHOAL_CU(cuCtxGetLimit, (size_t* pvalue, CUlimit limit))
SHOAL_CU(cuCtxSetLimit, (CUlimit limit, size_t value))
SHOAL_CU(cuCtxGetCacheConfig, (CUfunc_cache* pconfig))
SHOAL_CU(cuCtxSetCacheConfig, (CUfunc_cache config))
SHOAL_CU(cuCtxGetSharedMemConfig, (CUsharedconfig* pConfig))
SHOAL_CU(cuCtxSetSharedMemConfig, (CUsharedconfig config))
SHOAL_CU(cuCtxGetStreamPriorityRange, (int* leastPriority, int* greatestPriority))
SHOAL_CU(cuCtxResetPersistingL2Cache, (void))
SHOAL_CU(cuCtxEnablePeerAccess, (CUcontext peerContext, unsigned int Flags))
SHOAL_CU(cuCtxDisablePeerAccess, (CUcontext peerContext))

// Streams
SHOAL_CU(cuStreamCreate, (CUstream* phStream, unsigned int Flags))
SHOAL_CU(cuStreamCreateWithPriority, (CUstream* phStream, unsigned int flags, int priority))
SHOAL_CU(cuStreamDestroy, (CUstream hStream))
SHOAL_CU(cuStreamDestroy_v2, (CUstream hStream))
SHOAL_CU_PTSZ(cuStreamSynchronize, (CUstream hStream))
SHOAL_CU_PTSZ(cuStreamQuery, (CUstream hStream))
SHOAL_CU_PTSZ(cuStreamWaitEvent, (CUstream hStream, CUevent hEvent, unsigned int Flags))
SHOAL_CU_PTSZ(cuStreamGetFlags, (CUstream hStream, unsigned int* flags))
SHOAL_CU_PTSZ(cuStreamGetPriority, (CUstream hStream, int* priority))
SHOAL_CU_PTSZ(cuStreamGetId, (CUstream hStream, unsigned long long* streamId))
SHOAL_CU_PTSZ(cuStreamGetCtx, (CUstream hStream, CUcontext* pctx))
SHOAL_CU_PTSZ(cuStreamGetCtx_v2, (CUstream hStream, CUcontext* pctx, CUgreenCtx* pGreenCtx))
SHOAL_CU_PTSZ(cuStreamGetDevice, (CUstream hStream, CUdevice* device))
SHOAL_CU_PTSZ(cuStreamAddCallback, (CUstream hStream, CUstreamCallback callback, void* userData, unsigned int flags))
SHOAL_CU_PTSZ(cuStreamIsCapturing, (CUstream hStream, CUstreamCaptureStatus* captureStatus))
SHOAL_CU_PTSZ(cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags))
SHOAL_CU_PTSZ(cuStreamWriteValue64_v2, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags))
SHOAL_CU_PTSZ(cuStreamWaitValue32_v2, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags))
SHOAL_CU_PTSZ(cuStreamWaitValue64_v2, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags))
SHOAL_CU_PTSZ(cuLaunchHostFunc, (CUstream hStream, CUhostFn fn, void* userData))

// Events
SHOAL_CU(cuEventCreate, (CUevent* phEvent, unsigned int Flags))
SHOAL_CU(cuEventDestroy, (CUevent hEvent))
SHOAL_CU(cuEventDestroy_v2, (CUevent hEvent))
SHOAL_CU_PTSZ(cuEventRecord, (CUevent hEvent, CUstream hStream))
SHOAL_CU_PTSZ(cuEventRecordWithFlags, (CUevent hEvent, CUstream hStream, unsigned int flags))
SHOAL_CU(cuEventQuery, (CUevent hEvent))
SHOAL_CU(cuEventSynchronize, (CUevent hEvent))
SHOAL_CU(cuEventElapsedTime, (float* pMilliseconds, CUevent hStart, CUevent hEnd))
SHOAL_CU(cuEventElapsedTime_v2, (float* pMilliseconds, CUevent hStart, CUevent hEnd))

// Memory
SHOAL_CU(cuMemGetInfo_v2, (size_t* free, size_t* total))
SHOAL_CU(cuMemAlloc_v2, (CUdeviceptr* dptr, size_t bytesize))
SHOAL_CU(cuMemAllocPitch_v2, (CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes))
SHOAL_CU(cuMemFree_v2, (CUdeviceptr dptr))
SHOAL_CU_PTSZ(cuMemAllocAsync, (CUdeviceptr* dptr, size_t bytesize, CUstream hStream))
SHOAL_CU_PTSZ(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream))
SHOAL_CU(cuMemAllocManaged, (CUdeviceptr* dptr, size_t bytesize, unsigned int flags))
SHOAL_CU(cuMemAllocHost_v2, (void** pp, size_t bytesize))
SHOAL_CU(cuMemHostAlloc, (void** pp, size_t bytesize, unsigned int Flags))
SHOAL_CU(cuMemFreeHost, (void* p))
SHOAL_CU(cuMemHostGetDevicePointer_v2, (CUdeviceptr* pdptr, void* p, unsigned int Flags))
SHOAL_CU(cuMemHostGetFlags, (unsigned int* pFlags, void* p))
SHOAL_CU(cuMemHostRegister, (void* p, size_t bytesize, unsigned int Flags))
SHOAL_CU(cuMemHostRegister_v2, (void* p, size_t bytesize, unsigned int Flags))
SHOAL_CU(cuMemHostUnregister, (void* p))
SHOAL_CU(cuMemGetAddressRange_v2, (CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr))
SHOAL_CU(cuPointerGetAttribute, (void* data, CUpointer_attribute attribute, CUdeviceptr ptr))
SHOAL_CU(cuPointerGetAttributes, (unsigned int numAttributes, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr))
SHOAL_CU(cuPointerSetAttribute, (const void* value, CUpointer_attribute attribute, CUdeviceptr ptr))

// Managed memory
SHOAL_CU(cuMemAdvise, (CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device))
SHOAL_CU(cuMemAdvise_v2, (CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location))
SHOAL_CU_PTSZ(cuMemPrefetchAsync, (CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream))
SHOAL_CU_PTSZ(cuMemPrefetchAsync_v2, (CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream))
SHOAL_CU_PTSZ(cuStreamAttachMemAsync, (CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags))
SHOAL_CU(cuMemRangeGetAttribute, (void* data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count))
SHOAL_CU(cuMemRangeGetAttributes, (void** data, size_t* dataSizes, CUmem_range_attribute* attributes, size_t numAttributes,
                                   CUdeviceptr devPtr, size_t count))

// Memory pools
SHOAL_CU_PTSZ(cuMemAllocFromPoolAsync, (CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream))
SHOAL_CU(cuDeviceGetDefaultMemPool, (CUmemoryPool* pool_out, CUdevice dev))
SHOAL_CU(cuDeviceGetMemPool, (CUmemoryPool* pool, CUdevice dev))
SHOAL_CU(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool pool))
SHOAL_CU(cuMemGetDefaultMemPool, (CUmemoryPool* pool_out, CUmemLocation* location, CUmemAllocationType type))
SHOAL_CU(cuMemGetMemPool, (CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type))
SHOAL_CU(cuMemSetMemPool, (CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool))
SHOAL_CU(cuMemPoolCreate, (CUmemoryPool* pool, const CUmemPoolProps* poolProps))
SHOAL_CU(cuMemPoolDestroy, (CUmemoryPool pool))
SHOAL_CU(cuMemPoolTrimTo, (CUmemoryPool pool, size_t minBytesToKeep))
SHOAL_CU(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void* value))
SHOAL_CU(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void* value))
SHOAL_CU(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc* map, size_t count))
SHOAL_CU(cuMemPoolGetAccess, (CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location))
SHOAL_CU(cuMemPoolExportToShareableHandle, (void* handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
                                            unsigned long long flags))
SHOAL_CU(cuMemPoolImportFromShareableHandle, (CUmemoryPool* pool_out, void* handle, CUmemAllocationHandleType handleType,
                                              unsigned long long flags))
SHOAL_CU(cuMemPoolExportPointer, (CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr))
SHOAL_CU(cuMemPoolImportPointer, (CUdeviceptr* ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData* shareData))

// Virtual memory management
SHOAL_CU(cuMemGetAllocationGranularity, (size_t* granularity, const CUmemAllocationProp* prop, CUmemAllocationGranularity_flags option))
SHOAL_CU(cuMemAddressReserve, (CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags))
SHOAL_CU(cuMemAddressFree, (CUdeviceptr ptr, size_t size))
SHOAL_CU(cuMemCreate, (CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop, unsigned long long flags))
SHOAL_CU(cuMemRelease, (CUmemGenericAllocationHandle handle))
SHOAL_CU(cuMemMap, (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags))
SHOAL_CU_PTSZ(cuMemMapArrayAsync, (CUarrayMapInfo* mapInfoList, unsigned int count, CUstream hStream))
SHOAL_CU(cuMemUnmap, (CUdeviceptr ptr, size_t size))
SHOAL_CU(cuMemSetAccess, (CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count))
SHOAL_CU(cuMemGetAccess, (unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr))
SHOAL_CU(cuMemExportToShareableHandle, (void* shareableHandle, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
                                        unsigned long long flags))
SHOAL_CU(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle* handle, void* osHandle, CUmemAllocationHandleType shHandleType))
SHOAL_CU(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle))
SHOAL_CU(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle* handle, void* addr))
SHOAL_CU(cuMemGetHandleForAddressRange, (void* handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType,
                                         unsigned long long flags))

// Memory and events between processes
SHOAL_CU(cuIpcGetMemHandle, (CUipcMemHandle* pHandle, CUdeviceptr dptr))
SHOAL_CU(cuIpcOpenMemHandle, (CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags))
SHOAL_CU(cuIpcOpenMemHandle_v2, (CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags))
SHOAL_CU(cuIpcCloseMemHandle, (CUdeviceptr dptr))
SHOAL_CU(cuIpcGetEventHandle, (CUipcEventHandle* pHandle, CUevent event))
SHOAL_CU(cuIpcOpenEventHandle, (CUevent* phEvent, CUipcEventHandle handle))

// Multicast
SHOAL_CU(cuMulticastGetGranularity, (size_t* granularity, const CUmulticastObjectProp* prop, CUmulticastGranularity_flags option))
SHOAL_CU(cuMulticastCreate, (CUmemGenericAllocationHandle* mcHandle, const CUmulticastObjectProp* prop))
SHOAL_CU(cuMulticastAddDevice, (CUmemGenericAllocationHandle mcHandle, CUdevice dev))
SHOAL_CU(cuMulticastBindMem, (CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUmemGenericAllocationHandle memHandle,
                              size_t memOffset, size_t size, unsigned long long flags))
SHOAL_CU(cuMulticastBindAddr, (CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr, size_t size,
                               unsigned long long flags))
SHOAL_CU(cuMulticastUnbind, (CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset, size_t size))

// Copies
SHOAL_CU_PTDS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount))
SHOAL_CU_PTSZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream))
SHOAL_CU_PTDS(cuMemcpyPeer, (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount))
SHOAL_CU_PTSZ(cuMemcpyPeerAsync, (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                                  size_t ByteCount, CUstream hStream))
SHOAL_CU_PTDS(cuMemcpyHtoD_v2, (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount))
SHOAL_CU_PTDS(cuMemcpyDtoH_v2, (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount))
SHOAL_CU_PTDS(cuMemcpyDtoD_v2, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount))
SHOAL_CU_PTSZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount, CUstream hStream))
SHOAL_CU_PTSZ(cuMemcpyDtoHAsync_v2, (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream))
SHOAL_CU_PTSZ(cuMemcpyDtoDAsync_v2, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream))
SHOAL_CU_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* pCopy))
SHOAL_CU_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* pCopy))
SHOAL_CU_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* pCopy, CUstream hStream))

// Fills
SHOAL_CU_PTDS(cuMemsetD8_v2, (CUdeviceptr dstDevice, unsigned char uc, size_t N))
SHOAL_CU_PTDS(cuMemsetD16_v2, (CUdeviceptr dstDevice, unsigned short us, size_t N))
SHOAL_CU_PTDS(cuMemsetD32_v2, (CUdeviceptr dstDevice, unsigned int ui, size_t N))
SHOAL_CU_PTDS(cuMemsetD2D8_v2, (CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height))
SHOAL_CU_PTDS(cuMemsetD2D16_v2, (CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height))
SHOAL_CU_PTDS(cuMemsetD2D32_v2, (CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height))
SHOAL_CU_PTSZ(cuMemsetD8Async, (CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream))
SHOAL_CU_PTSZ(cuMemsetD16Async, (CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream))
SHOAL_CU_PTSZ(cuMemsetD32Async, (CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream))
SHOAL_CU_PTSZ(cuMemsetD2D8Async, (CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height, CUstream hStream))
SHOAL_CU_PTSZ(cuMemsetD2D16Async, (CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height, CUstream hStream))
SHOAL_CU_PTSZ(cuMemsetD2D32Async, (CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height, CUstream hStream))

// Modules, libraries, functions, launch
SHOAL_CU(cuModuleLoad, (CUmodule* module, const char* fname))
SHOAL_CU(cuModuleLoadData, (CUmodule* module, const void* image))
SHOAL_CU(cuModuleLoadDataEx, (CUmodule* module, const void* image, unsigned int numOptions, CUjit_option* options, void** optionValues))
SHOAL_CU(cuModuleLoadFatBinary, (CUmodule* module, const void* fatCubin))
SHOAL_CU(cuModuleUnload, (CUmodule hmod))
SHOAL_CU(cuModuleGetFunction, (CUfunction* hfunc, CUmodule hmod, const char* name))
SHOAL_CU(cuModuleGetGlobal_v2, (CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name))
SHOAL_CU(cuModuleGetFunctionCount, (unsigned int* count, CUmodule mod))
SHOAL_CU(cuModuleEnumerateFunctions, (CUfunction* functions, unsigned int numFunctions, CUmodule mod))
SHOAL_CU(cuModuleGetLoadingMode, (CUmoduleLoadingMode* mode))
SHOAL_CU(cuLibraryLoadData, (CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues,
                             unsigned int numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues,
                             unsigned int numLibraryOptions))
SHOAL_CU(cuLibraryLoadFromFile, (CUlibrary* library, const char* fileName, CUjit_option* jitOptions, void** jitOptionsValues,
                                 unsigned int numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues,
                                 unsigned int numLibraryOptions))
SHOAL_CU(cuLibraryUnload, (CUlibrary library))
SHOAL_CU(cuLibraryGetKernel, (CUkernel* pKernel, CUlibrary library, const char* name))
SHOAL_CU(cuLibraryGetKernelCount, (unsigned int* count, CUlibrary lib))
SHOAL_CU(cuFuncGetAttribute, (int* pi, CUfunction_attribute attrib, CUfunction hfunc))
SHOAL_CU(cuFuncSetAttribute, (CUfunction hfunc, CUfunction_attribute attrib, int value))
SHOAL_CU(cuFuncSetCacheConfig, (CUfunction hfunc, CUfunc_cache config))
SHOAL_CU(cuFuncGetModule, (CUmodule* hmod, CUfunction hfunc))
SHOAL_CU(cuFuncGetName, (const char** name, CUfunction hfunc))
SHOAL_CU(cuFuncGetParamInfo, (CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize))
SHOAL_CU_PTSZ(cuLaunchKernel, (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                               unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
                               CUstream hStream, void** kernelParams, void** extra))
SHOAL_CU_PTSZ(cuLaunchKernelEx, (const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra))
SHOAL_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize))
SHOAL_CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize,
                                                                unsigned int flags))
SHOAL_CU(cuOccupancyMaxPotentialBlockSize, (int* minGridSize, int* blockSize, CUfunction func,
                                            CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit))
SHOAL_CU(cuOccupancyMaxPotentialBlockSizeWithFlags, (int* minGridSize, int* blockSize, CUfunction func,
                                                     CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                                     int blockSizeLimit, unsigned int flags))
SHOAL_CU(cuOccupancyAvailableDynamicSMemPerBlock, (size_t* dynamicSmemSize, CUfunction func, int numBlocks, int blockSize))
SHOAL_CU(cuOccupancyMaxPotentialClusterSize, (int* clusterSize, CUfunction func, const CUlaunchConfig* config))
SHOAL_CU(cuOccupancyMaxActiveClusters, (int* numClusters, CUfunction func, const CUlaunchConfig* config))

// What only the software device has.

// One line that names the software device; no real driver exports this symbol.
SHOAL_EXPORT const char* shoalSimDescribe(void);
// Makes every context of the device fail with `code` from now on, as a fault on hardware would; code 0 heals it.
SHOAL_CU(shoalSimInjectError, (int device, int code))
// Queues a pause on a stream.
SHOAL_CU(shoalSimStreamDelay, (CUstream stream, uint64_t nanoseconds))
// Queues `run` on a stream as device work. It may block; its result becomes the context's error unless it is 0.
// `discard` is called in its place when the context has failed before. The ranges are checked like those of a copy and stay
// alive until the work has ended.
typedef struct ShoalSimRange_st {
  CUdeviceptr address;
  size_t length;
  int isWritten;
} ShoalSimRange;
SHOAL_CU(shoalSimEnqueue, (CUstream stream, CUresult (*run)(void*), void (*discard)(void*), void* userData, const ShoalSimRange* ranges,
                           size_t rangeCount))

#ifdef __cplusplus
}
#endif
