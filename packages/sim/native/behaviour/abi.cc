// Prints sizes, offsets and values of the ABI. Built with this package's headers and with NVIDIA's, both must print the same
// (test/abi.test.ts).
#include <cstddef>
#include <cstdio>

#ifdef SHOAL_REFERENCE
#include <cuda.h>
#ifdef SHOAL_REFERENCE_NCCL
#include <nccl.h>
#endif
#else
#include "shoal/nccl.h"
typedef CUDA_MEMCPY2D CUDA_MEMCPY2D_v2;
#define SHOAL_REFERENCE_NCCL
#endif

#define VALUE(name) printf("%s = %lld\n", #name, static_cast<long long>(name))
#define SIZE(type) printf("sizeof %s = %zu\n", #type, sizeof(type))
#define OFFSET(type, member) printf("offset %s.%s = %zu\n", #type, #member, offsetof(type, member))

int main() {
  SIZE(CUdevice);
  SIZE(CUdeviceptr);
  SIZE(CUcontext);
  SIZE(CUstream);
  SIZE(CUevent);
  SIZE(CUresult);
  SIZE(CUuuid);
  SIZE(CUexecAffinityParam);
  SIZE(CUctxCreateParams);
  OFFSET(CUctxCreateParams, execAffinityParams);
  OFFSET(CUctxCreateParams, numExecAffinityParams);
  OFFSET(CUctxCreateParams, cigParams);
  SIZE(CUDA_MEMCPY2D_v2);
  OFFSET(CUDA_MEMCPY2D_v2, srcXInBytes);
  OFFSET(CUDA_MEMCPY2D_v2, srcY);
  OFFSET(CUDA_MEMCPY2D_v2, srcMemoryType);
  OFFSET(CUDA_MEMCPY2D_v2, srcHost);
  OFFSET(CUDA_MEMCPY2D_v2, srcDevice);
  OFFSET(CUDA_MEMCPY2D_v2, srcArray);
  OFFSET(CUDA_MEMCPY2D_v2, srcPitch);
  OFFSET(CUDA_MEMCPY2D_v2, dstXInBytes);
  OFFSET(CUDA_MEMCPY2D_v2, dstY);
  OFFSET(CUDA_MEMCPY2D_v2, dstMemoryType);
  OFFSET(CUDA_MEMCPY2D_v2, dstHost);
  OFFSET(CUDA_MEMCPY2D_v2, dstDevice);
  OFFSET(CUDA_MEMCPY2D_v2, dstArray);
  OFFSET(CUDA_MEMCPY2D_v2, dstPitch);
  OFFSET(CUDA_MEMCPY2D_v2, WidthInBytes);
  OFFSET(CUDA_MEMCPY2D_v2, Height);
  SIZE(CUlaunchConfig);
  OFFSET(CUlaunchConfig, hStream);
  OFFSET(CUlaunchConfig, attrs);
  OFFSET(CUlaunchConfig, numAttrs);
  VALUE(CU_CTX_SCHED_MASK);
  VALUE(CU_CTX_FLAGS_MASK);
  VALUE(CU_CTX_MAP_HOST);
  VALUE(CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED);
  VALUE(CU_LIMIT_SHMEM_SIZE);
  VALUE(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH);
  VALUE(CU_STREAM_NON_BLOCKING);
  VALUE(CU_EVENT_BLOCKING_SYNC);
  VALUE(CU_EVENT_DISABLE_TIMING);
  VALUE(CU_EVENT_INTERPROCESS);
  VALUE(CU_EVENT_RECORD_EXTERNAL);
  VALUE(CU_EVENT_WAIT_EXTERNAL);
  VALUE(CU_STREAM_WAIT_VALUE_GEQ);
  VALUE(CU_STREAM_WAIT_VALUE_EQ);
  VALUE(CU_STREAM_WAIT_VALUE_AND);
  VALUE(CU_STREAM_WAIT_VALUE_NOR);
  VALUE(CU_STREAM_WAIT_VALUE_FLUSH);
  VALUE(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
  VALUE(CU_MEMHOSTALLOC_PORTABLE);
  VALUE(CU_MEMHOSTALLOC_DEVICEMAP);
  VALUE(CU_MEMHOSTALLOC_WRITECOMBINED);
  VALUE(CU_MEMHOSTREGISTER_PORTABLE);
  VALUE(CU_MEMHOSTREGISTER_DEVICEMAP);
  VALUE(CU_MEMHOSTREGISTER_IOMEMORY);
  VALUE(CU_MEMHOSTREGISTER_READ_ONLY);
  VALUE(CU_MEM_ATTACH_GLOBAL);
  VALUE(CU_MEM_ATTACH_HOST);
  VALUE(CU_MEMORYTYPE_HOST);
  VALUE(CU_MEMORYTYPE_DEVICE);
  VALUE(CU_MEMORYTYPE_ARRAY);
  VALUE(CU_MEMORYTYPE_UNIFIED);
  VALUE(CU_POINTER_ATTRIBUTE_CONTEXT);
  VALUE(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
  VALUE(CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE);
  VALUE(CU_JIT_ERROR_LOG_BUFFER);
  VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  VALUE(CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED);
  VALUE(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  VALUE(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  VALUE(CUDA_ERROR_KEY_ROTATION);
#ifdef SHOAL_REFERENCE_NCCL
  SIZE(ncclUniqueId);
  SIZE(ncclComm_t);
  SIZE(ncclResult_t);
  SIZE(ncclDataType_t);
  SIZE(ncclRedOp_t);
  SIZE(ncclConfig_t);
  OFFSET(ncclConfig_t, magic);
  OFFSET(ncclConfig_t, version);
  OFFSET(ncclConfig_t, blocking);
  OFFSET(ncclConfig_t, cgaClusterSize);
  OFFSET(ncclConfig_t, minCTAs);
  OFFSET(ncclConfig_t, maxCTAs);
  OFFSET(ncclConfig_t, netName);
  OFFSET(ncclConfig_t, splitShare);
  OFFSET(ncclConfig_t, commName);
  OFFSET(ncclConfig_t, graphStreamOrdering);
  VALUE(NCCL_VERSION_CODE);
  VALUE(NCCL_UNIQUE_ID_BYTES);
  VALUE(ncclRemoteError);
  VALUE(ncclInProgress);
  VALUE(ncclNumResults);
  VALUE(ncclInt8);
  VALUE(ncclUint8);
  VALUE(ncclInt32);
  VALUE(ncclUint32);
  VALUE(ncclInt64);
  VALUE(ncclUint64);
  VALUE(ncclFloat16);
  VALUE(ncclFloat32);
  VALUE(ncclFloat64);
  VALUE(ncclBfloat16);
  VALUE(ncclFloat8e4m3);
  VALUE(ncclFloat8e5m2);
  VALUE(ncclNumTypes);
  VALUE(ncclSum);
  VALUE(ncclProd);
  VALUE(ncclMax);
  VALUE(ncclMin);
  VALUE(ncclAvg);
  VALUE(ncclScalarDevice);
  VALUE(ncclScalarHostImmediate);
#endif
  return 0;
}
