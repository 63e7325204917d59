// Device properties. The CUDA runtime's names differ from the driver's attributes.
#include <shoal/cudart.h>

#include <string>
#include <vector>

#include "check.h"

namespace {

struct IntProperty {
  const char* name;
  int cudaDeviceProp::* field;
  CUdevice_attribute attribute;
};
struct UnsignedProperty {
  const char* name;
  unsigned cudaDeviceProp::* field;
  CUdevice_attribute attribute;
};
struct SizeProperty {
  const char* name;
  size_t cudaDeviceProp::* field;
  CUdevice_attribute attribute;
};

#define PROPERTY(field, attribute) {#field, &cudaDeviceProp::field, CU_DEVICE_ATTRIBUTE_##attribute}

constexpr IntProperty kInts[] = {
    PROPERTY(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    PROPERTY(warpSize, WARP_SIZE),
    PROPERTY(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    PROPERTY(major, COMPUTE_CAPABILITY_MAJOR),
    PROPERTY(minor, COMPUTE_CAPABILITY_MINOR),
    PROPERTY(multiProcessorCount, MULTIPROCESSOR_COUNT),
    PROPERTY(integrated, INTEGRATED),
    PROPERTY(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    PROPERTY(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    PROPERTY(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    PROPERTY(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
    PROPERTY(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
    PROPERTY(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
    PROPERTY(concurrentKernels, CONCURRENT_KERNELS),
    PROPERTY(ECCEnabled, ECC_ENABLED),
    PROPERTY(pciBusID, PCI_BUS_ID),
    PROPERTY(pciDeviceID, PCI_DEVICE_ID),
    PROPERTY(pciDomainID, PCI_DOMAIN_ID),
    PROPERTY(tccDriver, TCC_DRIVER),
    PROPERTY(asyncEngineCount, ASYNC_ENGINE_COUNT),
    PROPERTY(unifiedAddressing, UNIFIED_ADDRESSING),
    PROPERTY(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    PROPERTY(l2CacheSize, L2_CACHE_SIZE),
    PROPERTY(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    PROPERTY(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    PROPERTY(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    PROPERTY(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    PROPERTY(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    PROPERTY(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    PROPERTY(managedMemory, MANAGED_MEMORY),
    PROPERTY(isMultiGpuBoard, MULTI_GPU_BOARD),
    PROPERTY(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    PROPERTY(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    PROPERTY(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    PROPERTY(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    PROPERTY(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    PROPERTY(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    PROPERTY(cooperativeLaunch, COOPERATIVE_LAUNCH),
    PROPERTY(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    PROPERTY(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    PROPERTY(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    PROPERTY(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    PROPERTY(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    PROPERTY(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    PROPERTY(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    PROPERTY(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    PROPERTY(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    PROPERTY(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    PROPERTY(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    PROPERTY(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    PROPERTY(ipcEventSupported, IPC_EVENT_SUPPORTED),
    PROPERTY(clusterLaunch, CLUSTER_LAUNCH),
    PROPERTY(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
    PROPERTY(deviceNumaConfig, NUMA_CONFIG),
    PROPERTY(deviceNumaId, NUMA_ID),
    PROPERTY(mpsEnabled, MPS_ENABLED),
    PROPERTY(hostNumaId, HOST_NUMA_ID),
    PROPERTY(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
};

constexpr UnsignedProperty kUnsigned[] = {
    PROPERTY(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    PROPERTY(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    PROPERTY(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
    PROPERTY(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
};

constexpr SizeProperty kSizes[] = {
    PROPERTY(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    PROPERTY(memPitch, MAX_PITCH),
    PROPERTY(totalConstMem, TOTAL_CONSTANT_MEMORY),
    PROPERTY(textureAlignment, TEXTURE_ALIGNMENT),
    PROPERTY(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    PROPERTY(surfaceAlignment, SURFACE_ALIGNMENT),
    PROPERTY(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    PROPERTY(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    PROPERTY(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
};

// Properties with several axes. Their attributes are consecutive, except for those with their own names.
struct Axes {
  const char* name;
  const int* values;
  std::vector<CUdevice_attribute> attributes;
};

int attributeOf(CUdevice_attribute attribute, CUdevice device) {
  int value = -1;
  OK(cuDeviceGetAttribute(&value, attribute, device));
  return value;
}

template <class Property, size_t N>
void compare(const Property (&all)[N], const cudaDeviceProp& properties, CUdevice device) {
  for (const Property& each : all) {
    const auto got = static_cast<long long>(properties.*each.field),
               want = static_cast<long long>(attributeOf(each.attribute, device));
    if (got != want)
      throw check::Failure(std::string(each.name) + ": got " + std::to_string(got) + ", want " + std::to_string(want));
  }
}

}  // namespace

TEST(every_property_is_the_attribute_of_its_name) {
  int count = 0;
  EQUAL(cudaGetDeviceCount(&count), 0);
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp p;
    EQUAL(cudaGetDeviceProperties(&p, device), 0);
    compare(kInts, p, device);
    compare(kUnsigned, p, device);
    compare(kSizes, p, device);
    const Axes axes[] = {
        {"maxThreadsDim",
         p.maxThreadsDim,
         {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
          CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z}},
        {"maxGridSize",
         p.maxGridSize,
         {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z}},
        {"maxTexture2D",
         p.maxTexture2D,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT}},
        {"maxTexture2DMipmap",
         p.maxTexture2DMipmap,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT}},
        {"maxTexture2DLinear",
         p.maxTexture2DLinear,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH}},
        {"maxTexture2DGather",
         p.maxTexture2DGather,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT}},
        {"maxTexture3D",
         p.maxTexture3D,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH}},
        {"maxTexture3DAlt",
         p.maxTexture3DAlt,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE}},
        {"maxTexture1DLayered",
         p.maxTexture1DLayered,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS}},
        {"maxTexture2DLayered",
         p.maxTexture2DLayered,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS}},
        {"maxTextureCubemapLayered",
         p.maxTextureCubemapLayered,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS}},
        {"maxSurface2D",
         p.maxSurface2D,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT}},
        {"maxSurface3D",
         p.maxSurface3D,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH}},
        {"maxSurface1DLayered",
         p.maxSurface1DLayered,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS}},
        {"maxSurface2DLayered",
         p.maxSurface2DLayered,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS}},
        {"maxSurfaceCubemapLayered",
         p.maxSurfaceCubemapLayered,
         {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
          CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS}},
    };
    for (const Axes& each : axes) {
      for (size_t axis = 0; axis < each.attributes.size(); ++axis) {
        if (each.values[axis] != attributeOf(each.attributes[axis], device))
          throw check::Failure(std::string(each.name) + " " + std::to_string(axis));
      }
    }
  }
}
