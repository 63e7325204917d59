// Sharing pools with other processes: the pool as a shareable handle, each allocation as plain bytes.
#include <cstddef>
#include <cstring>

#include "core/entry.h"
#include "ipc/exchange.h"
#include "pool.h"
#include "vmm/physical.h"

using namespace shoal;

namespace {

constexpr char kMagic[8] = {'s', 'h', 'o', 'a', 'l', 'p', 'p', '1'};

// Names an allocation in a pool. Both processes know the pool by its file.
struct PointerData {
  char magic[8];
  uint64_t device, inode;
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;  // of the fields above
};
static_assert(sizeof(PointerData) <= sizeof(CUmemPoolPtrExportData));

}  // namespace

CUresult cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool handle, CUmemAllocationHandleType handleType,
                                          unsigned long long flags) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Pool> pool;
    if (handle_out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = findPool(handle, pool)) return status;
    if (pool->isImported) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkExport(static_cast<unsigned>(pool->properties.handleTypes), handleType))
      return status;
    if (handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      const int descriptor = pool->file()->duplicate();
      memcpy(handle_out, &descriptor, sizeof descriptor);
    } else {
      writeTicket(offerFile(pool->file()), handle_out);
    }
    pool->isExported = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle, CUmemAllocationHandleType handleType,
                                            unsigned long long flags) {
  return initialised([&]() -> CUresult {
    if (pool_out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkImport(handleType)) return status;
    std::shared_ptr<SharedFile> file;
    if (handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      const auto number = reinterpret_cast<uintptr_t>(handle);
      if (number <= INT32_MAX) file = SharedFile::open(static_cast<int>(number));
      if (!file) return CUDA_ERROR_UNKNOWN;
    } else {
      Ticket ticket;
      if (handle != nullptr && readTicket(handle, TicketKind::fabric, ticket)) file = fetch(ticket);
      if (!file) return CUDA_ERROR_INVALID_VALUE;
    }
    std::shared_ptr<Pool> pool;
    if (const CUresult status = Pool::open(std::move(file), pool)) return status;
    *pool_out = pool->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr) {
  return initialised([&]() -> CUresult {
    if (shareData_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = state().allocations.startingAt(ptr);
    auto block = allocation ? std::dynamic_pointer_cast<PoolBlock>(allocation->backing) : nullptr;
    if (!block || block->owner->isImported || !block->owner->isExported) return CUDA_ERROR_INVALID_VALUE;
    PointerData data = {};
    memcpy(data.magic, kMagic, sizeof kMagic);
    const auto identity = block->owner->file()->identity();
    data.device = identity.device;
    data.inode = identity.inode;
    data.offset = block->offset;
    data.size = allocation->size;
    data.checksum = checksumOf(&data, offsetof(PointerData, checksum));
    memset(shareData_out, 0, sizeof *shareData_out);
    memcpy(shareData_out, &data, sizeof data);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolImportPointer(CUdeviceptr* ptr_out, CUmemoryPool handle, CUmemPoolPtrExportData* shareData) {
  return inContext([&](auto& context) -> CUresult {
    if (ptr_out == nullptr || shareData == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Pool> pool;
    if (const CUresult status = findPool(handle, pool)) return status;
    PointerData data;
    memcpy(&data, shareData, sizeof data);
    if (!pool->isImported || memcmp(data.magic, kMagic, sizeof kMagic) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (data.checksum != checksumOf(&data, offsetof(PointerData, checksum))) return CUDA_ERROR_INVALID_VALUE;
    const auto identity = pool->file()->identity();
    if (data.device != identity.device || data.inode != identity.inode) return CUDA_ERROR_INVALID_VALUE;
    return pool->import(data.offset, data.size, context, *ptr_out);
  });
}
