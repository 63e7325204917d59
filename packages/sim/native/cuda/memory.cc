// Allocation: device, managed and pinned memory, and registered host memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "core/allocation.h"
#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "core/stream.h"
#include "graph/capture.h"
#include "graph/memory.h"
#include "ipc/exchange.h"
#include "pool/pool.h"
#include "ptx/unwritten.h"

using namespace shoal;

namespace {

constexpr size_t kPitchAlignment = 512;

CUresult allocateOnDevice(const std::shared_ptr<Context>& context, size_t bytes, MemoryKind kind, unsigned flags,
                          CUdeviceptr* out) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = checkUnsafeCall()) return status;
  Device& device = context->device;
  uint64_t base = device.arena.allocate(bytes);
  if (base == 0) {
    // Pools may hold unused memory.
    trimPoolsOf(&device);
    base = device.arena.allocate(bytes);
  }
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (kind == MemoryKind::device) ptx::markUnwritten(base, bytes);
  auto block = std::make_shared<ArenaBlock>(device.arena, base, bytes, kind == MemoryKind::device);
  state().allocations.put(std::make_shared<Allocation>(
      Allocation::Description{kind, base, bytes, Place::device, context, &device, flags, std::move(block)}));
  *out = base;
  return CUDA_SUCCESS;
}

class HostPages : public Backing {
 public:
  HostPages(void* at, size_t size) : at_(at), size_(size) {}
  ~HostPages() override { munmap(at_, size_); }

 private:
  void* const at_;
  const size_t size_;
};

CUresult allocateOnHost(void** out, size_t bytes, unsigned flags) {
  return inContext([&](auto& context) -> CUresult {
    constexpr unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (out == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) {
      *out = nullptr;
      return CUDA_SUCCESS;
    }
    if (bytes > (size_t{1} << 47)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const CUresult status = checkUnsafeCall()) return status;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    // With unified addressing, pinned memory is always mapped.
    const unsigned actual = flags | CU_MEMHOSTALLOC_DEVICEMAP;
    state().allocations.put(std::make_shared<Allocation>(
        Allocation::Description{MemoryKind::pinned, reinterpret_cast<uint64_t>(at), bytes, Place::host, context,
                                nullptr, actual, std::make_shared<HostPages>(at, bytes)}));
    *out = at;
    return CUDA_SUCCESS;
  });
}

CUresult registerHost(void* p, size_t bytes, unsigned flags) {
  return inContext([&](auto& context) -> CUresult {
    constexpr unsigned knownFlags =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    if (p == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & ~knownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto base = reinterpret_cast<uint64_t>(p);
    if (auto known = state().allocations.covering(base); known && !known->isHost()) return CUDA_ERROR_INVALID_VALUE;
    if (state().allocations.overlaps(base, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (!isPlainHostMemory(base, bytes, Access::read)) return CUDA_ERROR_INVALID_VALUE;
    const unsigned actual = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    auto allocation = std::make_shared<Allocation>(
        Allocation::Description{MemoryKind::registered, base, bytes, Place::host, context, nullptr, actual, nullptr});
    return state().allocations.put(std::move(allocation)) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}

// Memory is freed in its own context, so no context needs to be current. If one is current, it must be usable.
template <class Body>
CUresult inCurrentIfAny(Body&& body) {
  return initialised([&]() -> CUresult {
    if (!contextStack().empty()) {
      if (const CUresult status = contextStack().back()->status()) return status;
    }
    return body();
  });
}

// Frees the allocation at the address if `accepts` returns true, after the work of its context.
template <class Accepts>
CUresult release(uint64_t address, CUresult otherwise, Accepts&& accepts) {
  auto allocation = state().allocations.startingAt(address);
  if (!allocation || !accepts(*allocation)) return otherwise;
  if (const CUresult status = allocation->context->synchronize()) return status;
  if (!state().allocations.remove(allocation)) return otherwise;
  withdraw(TicketKind::memory, allocation->id);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return inContext([&](auto& context) {
    const Arena& arena = context->device.arena;
    if (total != nullptr) *total = arena.capacity();
    if (free != nullptr) *free = arena.capacity() - std::min(arena.used(), arena.capacity());
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return inContext([&](auto& context) { return allocateOnDevice(context, bytesize, MemoryKind::device, 0, dptr); });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  return inContext([&](auto& context) -> CUresult {
    if (dptr == nullptr || pPitch == nullptr || WidthInBytes == 0 || Height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) return CUDA_ERROR_INVALID_VALUE;
    if (WidthInBytes > kMaxPitch) return CUDA_ERROR_INVALID_VALUE;
    const size_t pitch = (WidthInBytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    if (Height > SIZE_MAX / pitch) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult status = allocateOnDevice(context, pitch * Height, MemoryKind::device, 0, dptr);
    if (status == CUDA_SUCCESS) *pPitch = pitch;
    return status;
  });
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  return inCurrentIfAny([&]() -> CUresult {
    if (dptr == 0) return CUDA_SUCCESS;
    if (const CUresult status = checkUnsafeCall()) return status;
    CUresult freed = CUDA_SUCCESS;
    if (freeGraphMemory(dptr, freed)) return freed;
    return release(dptr, CUDA_ERROR_INVALID_VALUE, [](auto& allocation) {
      return allocation.kind == MemoryKind::device || allocation.kind == MemoryKind::managed ||
             allocation.kind == MemoryKind::pooled || allocation.kind == MemoryKind::external;
    });
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  return inContext([&](auto& context) -> CUresult {
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
    return allocateOnDevice(context, bytesize, MemoryKind::managed, flags, dptr);
  });
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) { return allocateOnHost(pp, bytesize, 0); }
CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) { return allocateOnHost(pp, bytesize, Flags); }

CUresult cuMemFreeHost(void* p) {
  return inCurrentIfAny([&]() -> CUresult {
    if (p == nullptr) return CUDA_SUCCESS;
    return release(reinterpret_cast<uint64_t>(p), CUDA_ERROR_INVALID_VALUE,
                   [](auto& allocation) { return allocation.kind == MemoryKind::pinned; });
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  return inContext([&](auto&) -> CUresult {
    if (pdptr == nullptr || Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = state().allocations.covering(reinterpret_cast<uint64_t>(p));
    if (!allocation || !allocation->isHost()) return CUDA_ERROR_INVALID_VALUE;
    *pdptr = reinterpret_cast<CUdeviceptr>(p);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  return inContext([&](auto&) -> CUresult {
    if (pFlags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = state().allocations.covering(reinterpret_cast<uint64_t>(p));
    if (!allocation || !allocation->isHost()) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = allocation->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) { return registerHost(p, bytesize, Flags); }
CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags) { return registerHost(p, bytesize, Flags); }

CUresult cuMemHostUnregister(void* p) {
  return inContext([&](auto&) -> CUresult {
    if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto around = state().allocations.covering(reinterpret_cast<uint64_t>(p));
    if (around && around->base != reinterpret_cast<uint64_t>(p)) return CUDA_ERROR_INVALID_VALUE;
    return release(reinterpret_cast<uint64_t>(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                   [](auto& allocation) { return allocation.kind == MemoryKind::registered; });
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return inContext([&](auto&) -> CUresult {
    auto allocation = state().allocations.covering(dptr);
    if (!allocation || (allocation->backing != nullptr && !allocation->backing->isReachable()))
      return CUDA_ERROR_NOT_FOUND;
    if (pbase != nullptr) *pbase = allocation->base;
    if (psize != nullptr) *psize = allocation->size;
    return CUDA_SUCCESS;
  });
}
