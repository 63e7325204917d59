// Legacy IPC of memory: an allocation of cuMemAlloc, mapped in another process.
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "core/addresses.h"
#include "core/device.h"
#include "core/entry.h"
#include "exchange.h"

using namespace shoal;

namespace {

constexpr size_t kPage = 4096;

// Pages of another process's device memory.
class ImportedPages : public Backing {
 public:
  ImportedPages(const SharedFile& file, size_t offset, size_t size)
      : size_(size), base_(reserveAddresses(size, kPage, 0)) {
    if (base_ == 0) throw std::bad_alloc();
    try {
      file.map(offset, size, PROT_READ | PROT_WRITE, reinterpret_cast<void*>(base_));
    } catch (...) {
      releaseAddresses(base_, size_);
      throw;
    }
  }
  ~ImportedPages() override { releaseAddresses(base_, size_); }
  uint64_t base() const { return base_; }

 private:
  const size_t size_;
  const uint64_t base_;
};

struct Opened {
  std::weak_ptr<Allocation> allocation;
  int count = 0;
};

// The process, its number for the memory, and the opening context. Opening a handle again returns the same address.
struct Key {
  std::string process;
  uint64_t id;
  unsigned long long context;
  bool operator<(const Key& other) const {
    return std::tie(process, id, context) < std::tie(other.process, other.id, other.context);
  }
};

struct Table {
  std::mutex mutex;
  std::map<Key, Opened> opened;
};

Table& table() {
  static Table* all = new Table;
  return *all;
}

bool isAlive(const std::shared_ptr<Allocation>& allocation) {
  return allocation && state().allocations.startingAt(allocation->base) == allocation;
}

CUresult open(CUdeviceptr* out, const CUipcMemHandle& handle, unsigned flags) {
  return inContext([&](auto& context) -> CUresult {
    if (out == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    Ticket ticket;
    if (!readTicket(&handle, TicketKind::memory, ticket)) return CUDA_ERROR_INVALID_VALUE;
    // As on hardware, a process cannot open its own handle.
    if (isOwn(ticket)) return CUDA_ERROR_INVALID_CONTEXT;
    Device* device = nullptr;
    if (const CUresult status = findDevice(ticket.device, device)) return status;
    Key key = {std::string(reinterpret_cast<const char*>(ticket.process.bytes), sizeof ticket.process.bytes), ticket.id,
               context->id};
    std::lock_guard lock(table().mutex);
    // Drop the entries of contexts that have ended.
    for (auto each = table().opened.begin(); each != table().opened.end();) {
      each = isAlive(each->second.allocation.lock()) ? std::next(each) : table().opened.erase(each);
    }
    Opened& opened = table().opened[key];
    if (auto known = opened.allocation.lock()) {
      ++opened.count;
      *out = known->base;
      return CUDA_SUCCESS;
    }
    auto file = fetch(ticket);
    // The memory was freed, or its process has ended.
    if (!file) return isReachable(ticket.process) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    if (file->content() != Content::arena || ticket.size == 0 || ticket.offset > file->size() ||
        ticket.size > file->size() - ticket.offset) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const size_t first = ticket.offset / kPage * kPage;
    const size_t end = (ticket.offset + ticket.size + kPage - 1) / kPage * kPage;
    auto pages = std::make_shared<ImportedPages>(*file, first, end - first);
    const uint64_t base = pages->base() + (ticket.offset - first);
    auto allocation = std::make_shared<Allocation>(Allocation::Description{
        MemoryKind::imported, base, ticket.size, Place::device, context, device, 0, std::move(pages)});
    state().allocations.put(allocation);
    opened = {allocation, 1};
    *out = base;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  return inContext([&](auto&) -> CUresult {
    auto allocation = state().allocations.covering(dptr);
    if (pHandle == nullptr || !allocation || !allocation->backing || !allocation->backing->isLegacyIpcCapable())
      return CUDA_ERROR_INVALID_VALUE;
    Arena& arena = allocation->device->arena;
    auto deliver = [weak = std::weak_ptr<Allocation>(allocation)]() -> std::shared_ptr<SharedFile> {
      auto known = weak.lock();
      return isAlive(known) ? known->device->arena.file() : nullptr;
    };
    Ticket ticket = offer(TicketKind::memory, allocation->id, std::move(deliver));
    ticket.device = allocation->device->ordinal;
    ticket.offset = arena.offsetOf(allocation->base);
    ticket.size = allocation->size;
    writeTicket(ticket, pHandle);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return open(pdptr, handle, Flags);
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return open(pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  return inContext([&](auto&) -> CUresult {
    std::shared_ptr<Allocation> allocation;
    {
      std::lock_guard lock(table().mutex);
      allocation = state().allocations.startingAt(dptr);
      if (!allocation || allocation->kind != MemoryKind::imported) return CUDA_ERROR_INVALID_VALUE;
      for (auto each = table().opened.begin(); each != table().opened.end(); ++each) {
        if (each->second.allocation.lock() != allocation) continue;
        if (--each->second.count != 0) return CUDA_SUCCESS;
        table().opened.erase(each);
        break;
      }
      state().allocations.remove(allocation);
    }
    // Like cuMemFree, this returns after the last use of the memory.
    return allocation->context->synchronize();
  });
}
