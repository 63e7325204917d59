// Memory of another library, imported through an opaque descriptor: a memory file, mapped on demand.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/array.h"
#include "core/addresses.h"
#include "core/allocation.h"
#include "core/entry.h"

using namespace shoal;

namespace {

constexpr size_t kPage = 4096;

struct ExternalMemory {
  ExternalMemory(int descriptor, size_t size) : descriptor(descriptor), size(size) {}
  ~ExternalMemory() { close(descriptor); }
  const int descriptor;
  const size_t size;
};

HandleTable<ExternalMemory>& memories() {
  static auto* table = new HandleTable<ExternalMemory>(15, "external memories");
  return *table;
}

// Pages of the file, mapped at device addresses.
class ExternalPages : public Backing {
 public:
  ExternalPages(const ExternalMemory& memory, size_t offset, size_t size)
      : size_(size), base_(reserveAddresses(size, kPage, 0)) {
    void* const at = reinterpret_cast<void*>(base_);
    if (base_ != 0 && mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.descriptor,
                           static_cast<off_t>(offset)) == at)
      return;
    if (base_ != 0) releaseAddresses(base_, size_);
    throw std::bad_alloc();
  }
  ~ExternalPages() override { releaseAddresses(base_, size_); }
  uint64_t base() const { return base_; }

 private:
  const size_t size_;
  const uint64_t base_;
};

CUresult import(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* described) {
  if (out == nullptr || described == nullptr || described->size == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((described->flags & ~static_cast<unsigned>(CUDA_EXTERNAL_MEMORY_DEDICATED)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (described->type < CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ||
      described->type > CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD)
    return CUDA_ERROR_INVALID_VALUE;
  if (described->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_NOT_SUPPORTED;
  struct stat file;
  const int descriptor = described->handle.fd;
  if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode) || static_cast<uint64_t>(file.st_size) < described->size)
    return CUDA_ERROR_INVALID_VALUE;
  // The driver owns the descriptor from now on and closes it.
  const uint64_t number = memories().reserve();
  memories().put(number, std::make_shared<ExternalMemory>(descriptor, described->size));
  *out = reinterpret_cast<CUexternalMemory>(number);
  return CUDA_SUCCESS;
}

CUresult map(const std::shared_ptr<Context>& context, CUdeviceptr* out, CUexternalMemory handle,
             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* described) {
  const auto memory = memories().find(handle);
  if (!memory) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || described == nullptr || described->flags != 0 || described->size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (described->offset > memory->size || described->size > memory->size - described->offset)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t first = described->offset / kPage * kPage;
  const size_t end = (described->offset + described->size + kPage - 1) / kPage * kPage;
  auto pages = std::make_shared<ExternalPages>(*memory, first, end - first);
  const uint64_t base = pages->base() + (described->offset - first);
  state().allocations.put(std::make_shared<Allocation>(Allocation::Description{
      MemoryKind::external, base, described->size, Place::device, context, &context->device, 0, std::move(pages)}));
  *out = base;
  return CUDA_SUCCESS;
}

// The levels follow one another, in the layout of this device's arrays.
CUresult mapMipmapped(const std::shared_ptr<Context>& context, CUmipmappedArray* out, CUexternalMemory handle,
                      const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* described) {
  const auto memory = memories().find(handle);
  if (!memory) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || described == nullptr || described->numLevels == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((described->arrayDesc.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const uint64_t offset = described->offset;
  return createMipmapped(out, described->arrayDesc, described->numLevels, context,
                         [&](size_t bytes, uint64_t& base, std::shared_ptr<Backing>& backing) -> CUresult {
                           if (offset > memory->size || bytes > memory->size - offset) return CUDA_ERROR_INVALID_VALUE;
                           const size_t first = offset / kPage * kPage;
                           auto pages = std::make_shared<ExternalPages>(
                               *memory, first, (offset - first + bytes + kPage - 1) / kPage * kPage);
                           base = pages->base() + (offset - first);
                           backing = std::move(pages);
                           return CUDA_SUCCESS;
                         });
}

}  // namespace

CUresult cuImportExternalMemory(CUexternalMemory* extMem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* memHandleDesc) {
  return inContext([&](auto&) { return import(extMem_out, memHandleDesc); });
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* devPtr, CUexternalMemory extMem,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* bufferDesc) {
  return inContext([&](auto& context) { return map(context, devPtr, extMem, bufferDesc); });
}

CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray* mipmap, CUexternalMemory extMem,
                                                 const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* mipmapDesc) {
  return inContext([&](auto& context) { return mapMipmapped(context, mipmap, extMem, mipmapDesc); });
}

// Mapped buffers stay valid until they are freed.
CUresult cuDestroyExternalMemory(CUexternalMemory extMem) {
  return inContext([&](auto&) {
    return memories().take(reinterpret_cast<uint64_t>(extMem)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}
