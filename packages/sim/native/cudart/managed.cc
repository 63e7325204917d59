// Managed memory, through the driver.
#include "entry.h"

using namespace shoal::cudart;

cudaError_t cudaMallocManaged(void** devPtr, size_t size, unsigned int flags) {
  return onDevice([&] { return cuMemAllocManaged(addressOut(devPtr), size, flags); });
}

SHOAL_RT_TWIN(cudaStreamAttachMemAsync, _ptsz, (cudaStream_t stream, void* devPtr, size_t length, unsigned int flags),
              cuStreamAttachMemAsync(stream, address(devPtr), length, flags),
              cuStreamAttachMemAsync_ptsz(stream, address(devPtr), length, flags))
SHOAL_RT_TWIN(cudaMemPrefetchAsync, _ptsz,
              (const void* devPtr, size_t count, cudaMemLocation location, unsigned int flags, cudaStream_t stream),
              cuMemPrefetchAsync_v2(address(devPtr), count, location, flags, stream),
              cuMemPrefetchAsync_v2_ptsz(address(devPtr), count, location, flags, stream))

#define SHOAL_RT_PREFETCHES                                                                           \
  (void** dptrs, size_t* sizes, size_t count, cudaMemLocation* prefetchLocs, size_t* prefetchLocIdxs, \
   size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream)
SHOAL_RT_TWIN(cudaMemPrefetchBatchAsync, _ptsz, SHOAL_RT_PREFETCHES,
              cuMemPrefetchBatchAsync(addressOut(dptrs), sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs,
                                      flags, stream),
              cuMemPrefetchBatchAsync_ptsz(addressOut(dptrs), sizes, count, prefetchLocs, prefetchLocIdxs,
                                           numPrefetchLocs, flags, stream))
SHOAL_RT_TWIN(cudaMemDiscardAndPrefetchBatchAsync, _ptsz, SHOAL_RT_PREFETCHES,
              cuMemDiscardAndPrefetchBatchAsync(addressOut(dptrs), sizes, count, prefetchLocs, prefetchLocIdxs,
                                                numPrefetchLocs, flags, stream),
              cuMemDiscardAndPrefetchBatchAsync_ptsz(addressOut(dptrs), sizes, count, prefetchLocs, prefetchLocIdxs,
                                                     numPrefetchLocs, flags, stream))
SHOAL_RT_TWIN(cudaMemDiscardBatchAsync, _ptsz,
              (void** dptrs, size_t* sizes, size_t count, unsigned long long flags, cudaStream_t stream),
              cuMemDiscardBatchAsync(addressOut(dptrs), sizes, count, flags, stream),
              cuMemDiscardBatchAsync_ptsz(addressOut(dptrs), sizes, count, flags, stream))

cudaError_t cudaMemAdvise(const void* devPtr, size_t count, cudaMemoryAdvise advice, cudaMemLocation location) {
  return onDevice([&] { return cuMemAdvise_v2(address(devPtr), count, advice, location); });
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t dataSize, cudaMemRangeAttribute attribute, const void* devPtr,
                                     size_t count) {
  return onDevice([&] { return cuMemRangeGetAttribute(data, dataSize, attribute, address(devPtr), count); });
}

cudaError_t cudaMemRangeGetAttributes(void** data, size_t* dataSizes, cudaMemRangeAttribute* attributes,
                                      size_t numAttributes, const void* devPtr, size_t count) {
  return onDevice(
      [&] { return cuMemRangeGetAttributes(data, dataSizes, attributes, numAttributes, address(devPtr), count); });
}
