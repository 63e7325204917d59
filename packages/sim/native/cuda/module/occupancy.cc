// Occupancy: how many blocks fit on a multiprocessor, and how many clusters fit on the device.
#include <algorithm>

#include "core/device.h"
#include "function.h"

using namespace shoal;

namespace {

// The limits of one multiprocessor, equal to the device attributes.
constexpr unsigned kMostBlocks = 32, kMostThreads = 2048, kMostThreadsOfBlock = 1024, kRegisters = 65536,
                   kSharedBytes = 233472;
constexpr unsigned kMostBlocksOfClusters = 8, kSharedUnit = 128;
// The limit for a block without an opt-in to more.
constexpr uint64_t kUsualSharedBytes = 49152;

unsigned roundUp(unsigned value, unsigned unit) { return (value + unit - 1) / unit * unit; }

CUresult maxActiveBlocks(int* count, CUfunction handle, int blockSize, size_t dynamicBytes, unsigned flags) {
  return withFunction(handle, count, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (blockSize <= 0 || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    *count = activeBlocks(function, blockSize, dynamicBytes);
    return CUDA_SUCCESS;
  });
}

CUresult potentialBlockSize(int* minGridSize, int* blockSize, CUfunction handle, CUoccupancyB2DSize sharedOf,
                            size_t dynamicBytes, int limit, unsigned flags) {
  return withFunction(handle, minGridSize, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (blockSize == nullptr || limit < 0 || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    const int most = limit == 0 ? static_cast<int>(function.kernel->maxThreads)
                                : std::min(limit, static_cast<int>(function.kernel->maxThreads));
    int bestThreads = 0;
    // The answer is zero if no block size fits.
    *blockSize = *minGridSize = 0;
    for (int size = (most + 31) / 32 * 32; size > 0; size -= 32) {
      const int actual = std::min(size, most);
      const int blocks = activeBlocks(function, actual, sharedOf == nullptr ? dynamicBytes : sharedOf(actual));
      if (blocks * actual <= bestThreads) continue;
      bestThreads = blocks * actual;
      *blockSize = actual;
      *minGridSize = blocks * static_cast<int>(multiprocessorCount());
    }
    return CUDA_SUCCESS;
  });
}

// Calls `body` with the blocks per multiprocessor and the launch's cluster size; zero if the launch has none.
template <class Body>
CUresult ofClusters(int* out, CUfunction handle, const CUlaunchConfig* config, Body&& body) {
  return withFunction(handle, out, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    const ptx::Dimensions grid{config->gridDimX, config->gridDimY, config->gridDimZ};
    const auto threads = ptx::Dimensions{config->blockDimX, config->blockDimY, config->blockDimZ}.count();
    if (grid.count() == 0 || threads == 0 || threads > kMostThreadsOfBlock) return CUDA_ERROR_INVALID_VALUE;
    ptx::Dimensions given, cluster;
    bool isGiven = false;
    for (unsigned index = 0; index < config->numAttrs; ++index) {
      if (config->attrs[index].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
      const auto& [x, y, z] = config->attrs[index].value.clusterDim;
      given = {x, y, z};
      isGiven = true;
    }
    if (const CUresult status = findCluster(function, grid, isGiven ? &given : nullptr, cluster)) return status;
    const bool isClustered = isGiven || function.kernel->cluster[0] != 0 || function.settings->cluster[0] != 0;
    *out = body(function, activeBlocks(function, static_cast<int>(threads), config->sharedMemBytes),
                isClustered ? static_cast<int>(cluster.count()) : 0);
    return CUDA_SUCCESS;
  });
}

}  // namespace

// The kernel's directives about the number of threads do not matter here.
int shoal::activeBlocks(const LoadedFunction& function, int blockSize, uint64_t dynamicBytes) {
  const ptx::Kernel& kernel = *function.kernel;
  const auto threads = roundUp(static_cast<unsigned>(blockSize), 32);
  if (threads > kMostThreadsOfBlock) return 0;
  {
    std::lock_guard lock(function.settings->mutex);
    const uint64_t most = std::max(
        kUsualSharedBytes, uint64_t{kernel.sharedBytes} + static_cast<unsigned>(function.settings->maxDynamicShared));
    if (dynamicBytes > most || kernel.sharedBytes + dynamicBytes > most) return 0;
  }
  const unsigned shared =
      roundUp(kernel.sharedBytes + static_cast<unsigned>(dynamicBytes) + ptx::kReservedSharedBytes, kSharedUnit);
  const unsigned byRegisters = kRegisters / (roundUp(kernel.registers, 8) * threads);
  return static_cast<int>(std::min({kMostBlocks, kMostThreads / threads, byRegisters, kSharedBytes / shared}));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return maxActiveBlocks(numBlocks, func, blockSize, dynamicSMemSize, 0);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags) {
  return maxActiveBlocks(numBlocks, func, blockSize, dynamicSMemSize, flags);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                          int blockSizeLimit) {
  return potentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit,
                            0);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags) {
  return potentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit,
                            flags);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func, int numBlocks,
                                                 int blockSize) {
  return withFunction(func, dynamicSmemSize, [&](LoadedFunction& function, LoadedModule&) -> CUresult {
    if (numBlocks <= 0 || blockSize <= 0 || numBlocks > activeBlocks(function, blockSize, 0))
      return CUDA_ERROR_INVALID_VALUE;
    // As on hardware, the memory that the system reserves per block is not subtracted.
    const unsigned each = kSharedBytes / static_cast<unsigned>(numBlocks) / kSharedUnit * kSharedUnit;
    std::lock_guard lock(function.settings->mutex);
    *dynamicSmemSize =
        std::min(each - function.kernel->sharedBytes, static_cast<unsigned>(function.settings->maxDynamicShared));
    return CUDA_SUCCESS;
  });
}
CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func, const CUlaunchConfig* config) {
  return ofClusters(clusterSize, func, config, [](LoadedFunction& function, int blocks, int) {
    return blocks == 0 ? 0 : function.settings->isNonPortableClusterAllowed != 0 ? 16 : 8;
  });
}
CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func, const CUlaunchConfig* config) {
  return ofClusters(numClusters, func, config, [](LoadedFunction&, int blocks, int size) {
    if (blocks == 0 || size == 0) return 0;
    const int all = std::min(blocks, static_cast<int>(kMostBlocksOfClusters)) * static_cast<int>(multiprocessorCount());
    // The software device runs one cluster even if it has more blocks than fit.
    return std::max(1, all / size);
  });
}
