// Shareable handles: descriptors that other processes can import, and fabric handles of plain bytes.
#include <cstring>

#include "core/entry.h"
#include "ipc/exchange.h"
#include "multicast/object.h"
#include "physical.h"

using namespace shoal;

namespace {

const std::shared_ptr<SharedFile>& fileOf(const MemoryHandle& handle) {
  return handle.physical ? handle.physical->file : handle.multicast->file();
}

// The label in the file says whether it is memory or a multicast object.
CUresult import(std::shared_ptr<SharedFile> file, CUmemGenericAllocationHandle* handle) {
  if (file->content() == Content::multicast) {
    std::shared_ptr<MulticastObject> multicast;
    if (const CUresult status = MulticastObject::open(std::move(file), multicast)) return status;
    *handle = memoryHandles().add(std::move(multicast));
    return CUDA_SUCCESS;
  }
  std::shared_ptr<Physical> physical;
  if (const CUresult status = Physical::open(std::move(file), physical)) return status;
  *handle = memoryHandles().add(std::move(physical), 0);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags) {
  return initialised([&]() -> CUresult {
    if (shareableHandle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    auto memory = memoryHandles().find(handle);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkExport(memory->types, handleType)) return status;
    if (memory->multicast) memory->multicast->markShared();
    if (handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      const int descriptor = fileOf(*memory)->duplicate();
      memcpy(shareableHandle, &descriptor, sizeof descriptor);
      return CUDA_SUCCESS;
    }
    writeTicket(offerFile(fileOf(*memory)), shareableHandle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle,
                                        CUmemAllocationHandleType shHandleType) {
  return initialised([&]() -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkImport(shHandleType)) return status;
    if (shHandleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      const auto number = reinterpret_cast<uintptr_t>(osHandle);
      auto file = number > INT32_MAX ? nullptr : SharedFile::open(static_cast<int>(number));
      return file ? import(std::move(file), handle) : CUDA_ERROR_UNKNOWN;
    }
    Ticket ticket;
    if (osHandle == nullptr || !readTicket(osHandle, TicketKind::fabric, ticket)) return CUDA_ERROR_INVALID_VALUE;
    auto file = fetch(ticket);
    return file ? import(std::move(file), handle) : CUDA_ERROR_INVALID_VALUE;
  });
}

// The software device does not support dma-buf, as attribute 124 reports.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType,
                                       unsigned long long flags) {
  return initialised([&]() -> CUresult {
    constexpr size_t page = 4096;
    if (handle == nullptr || size == 0 || dptr % page != 0 || size % page != 0) return CUDA_ERROR_INVALID_VALUE;
    if (handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
        (flags & ~uint64_t{CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE}) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return state().allocations.covering(dptr) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  });
}
