// Stream-ordered allocation.
#include "core/entry.h"
#include "graph/capture.h"
#include "graph/memory.h"
#include "pool.h"

using namespace shoal;

namespace {

CUresult allocateFrom(Pool& pool, CUdeviceptr* out, size_t bytes, const std::shared_ptr<Stream>& stream) {
  if (bytes == 0) {
    *out = 0;
    return CUDA_SUCCESS;
  }
  std::shared_ptr<Allocation> allocation;
  if (const CUresult status = pool.allocate(bytes, stream, allocation)) return status;
  const uint64_t address = allocation->base;
  state().allocations.put(std::move(allocation));
  *out = address;
  if (stream->kind != StreamKind::legacyDefault) return CUDA_SUCCESS;
  // Queue an empty operation, so that the allocation is ordered with the blocking streams.
  Operation operation;
  operation.run = [] { return CUDA_SUCCESS; };
  uint64_t sequence = 0;
  return stream->runOrEnqueue(std::move(operation), sequence);
}

// Allocates memory in the graph that the stream is captured into.
CUresult captureAllocation(CUdeviceptr* out, size_t bytes, const Device& device,
                           const std::shared_ptr<Stream>& stream) {
  const auto wanted = describeMemory(device.ordinal, bytes);
  std::shared_ptr<GraphMemory> memory;
  const auto context = &stream->context->device == &device ? stream->context : nullptr;
  if (const CUresult status = GraphMemory::create(wanted, memory, context)) return status;
  const CUdeviceptr address = memory->address;
  if (const CUresult status = captureWork(stream, std::make_shared<AllocWork>(std::move(memory), wanted)))
    return status;
  *out = address;
  return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* out, size_t bytes, CUstream handle, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkImplicit(stream)) return status;
    if (stream->isCaptured) return captureAllocation(out, bytes, context->device, stream);
    return allocateFrom(*currentPool(context->device), out, bytes, stream);
  });
}

CUresult allocateFromPool(CUdeviceptr* out, size_t bytes, CUmemoryPool poolHandle, CUstream handle, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    std::shared_ptr<Pool> pool;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = findPool(poolHandle, pool)) return status;
    if (const CUresult status = checkImplicit(stream)) return status;
    if (stream->isCaptured)
      return pool->device == nullptr ? CUDA_ERROR_INVALID_VALUE : captureAllocation(out, bytes, *pool->device, stream);
    // Only the exporting process can allocate from an imported pool.
    return pool->isImported ? CUDA_ERROR_INVALID_VALUE : allocateFrom(*pool, out, bytes, stream);
  });
}

CUresult freeInStream(CUdeviceptr address, CUstream handle, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if (address == 0) return CUDA_SUCCESS;
    if (const CUresult status = checkImplicit(stream)) return status;
    // A captured free is only valid for memory of a graph.
    if (stream->isCaptured) return captureWork(stream, std::make_shared<FreeWork>(address));
    CUresult freed = CUDA_SUCCESS;
    if (freeGraphMemory(address, freed)) return freed;
    auto allocation = state().allocations.startingAt(address);
    if (!allocation || (allocation->kind != MemoryKind::device && allocation->kind != MemoryKind::pooled))
      return CUDA_ERROR_INVALID_VALUE;
    // The address is invalid from now on. The memory lives until the stream reaches the free, because queued kernels
    // may use it.
    state().leaving.add(allocation);
    if (!state().allocations.remove(allocation)) {
      state().leaving.remove(allocation.get());
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto leave = [which = allocation.get()] { state().leaving.remove(which); };
    if (auto block = std::dynamic_pointer_cast<PoolBlock>(allocation->backing); block && !block->owner->isImported) {
      block->owner->free(block, stream, std::move(leave));
      return CUDA_SUCCESS;
    }
    Operation operation;
    operation.runsAfterErrors = true;
    operation.run = [leave] {
      leave();
      return CUDA_SUCCESS;
    };
    allocation.reset();
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

}  // namespace

SHOAL_TWIN(cuMemAllocAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
           allocate(dptr, bytesize, hStream, perThread))
SHOAL_TWIN(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
           allocateFromPool(dptr, bytesize, pool, hStream, perThread))
SHOAL_TWIN(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream hStream), freeInStream(dptr, hStream, perThread))
