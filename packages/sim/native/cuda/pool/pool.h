// A memory pool: memory is reserved in segments, handed out in stream order, and kept for reuse.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "core/allocation.h"
#include "core/device.h"
#include "core/sharedfile.h"
#include "core/stream.h"
#include "shoal/cuda.h"

namespace shoal {

class Pool;

// The memory of one allocation.
class PoolBlock : public Backing, public std::enable_shared_from_this<PoolBlock> {
 public:
  PoolBlock(std::shared_ptr<Pool> pool, size_t offset, size_t size, size_t segment, size_t segmentSize);
  ~PoolBlock() override;
  std::optional<unsigned> rightsOf(int device) const override;
  bool isStrict() const override;
  std::shared_ptr<SharedFile> locate(uint64_t address, size_t& offset) const override;
  std::shared_ptr<const void> memory() const override { return shared_from_this(); }
  unsigned handleTypes() const override;
  bool isManaged() const override;
  CUmemoryPool pool() const override;
  uint64_t mappingBase() const override;
  size_t mappingSize() const override { return segmentSize; }

  const std::shared_ptr<Pool> owner;
  const size_t offset;
  const size_t size;
  const size_t segment;
  const size_t segmentSize;
  size_t used = 0;  // requested size, guarded by the pool's mutex; 0 after a stream-ordered free
};

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  static std::shared_ptr<Pool> create(const CUmemPoolProps& properties, Device* device, bool isDefault);
  // Opens a pool of another process. It only supplies memory through imported pointers.
  static CUresult open(std::shared_ptr<SharedFile> file, std::shared_ptr<Pool>& pool);
  Pool(const CUmemPoolProps& properties, Device* device, bool isDefault, bool isImported);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  CUmemoryPool handle() const { return reinterpret_cast<CUmemoryPool>(handle_); }
  // Allocates for the stream. Returns CUDA_ERROR_OUT_OF_MEMORY if neither the pool nor the device has enough memory.
  CUresult allocate(size_t bytes, const std::shared_ptr<Stream>& stream, std::shared_ptr<Allocation>& allocation);
  // Later work of the stream may reuse the memory at once. All streams may reuse it after the stream has reached the
  // free; `afterwards` is called then.
  void free(const std::shared_ptr<PoolBlock>& block, const std::shared_ptr<Stream>& stream,
            std::function<void()> afterwards);
  // Maps memory of an imported pool.
  CUresult import(size_t offset, size_t bytes, const std::shared_ptr<Context>& context, CUdeviceptr& address);

  // Releases unused segments as long as `bytesToKeep` bytes stay reserved.
  void trimTo(size_t bytesToKeep);
  // Trims to the release threshold, after a synchronisation.
  void trimToThreshold();

  CUresult getAttribute(CUmemPool_attribute attribute, void* value);
  CUresult setAttribute(CUmemPool_attribute attribute, const void* value);
  unsigned rightsOf(int device) const;
  unsigned hostRights() const { return hostRights_; }
  void setRights(int device, unsigned rights) { rights_[static_cast<size_t>(device)] = rights; }

  bool isManaged() const { return properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED; }
  Place place() const { return device == nullptr && !isManaged() ? Place::host : Place::device; }

  const CUmemPoolProps properties;
  Device* const device;  // null: host memory, or managed memory without a preferred device
  const bool isDefault;
  const bool isImported;
  // Drivers refuse to export a pointer before its pool was exported.
  std::atomic<bool> isExported{false};

  // The file and the addresses are only created when memory is first needed.
  std::shared_ptr<SharedFile> file();
  uint64_t base();

 private:
  friend class PoolBlock;
  struct Segment {
    size_t size;
    std::map<size_t, size_t> free;  // offset → length; adjacent ranges are merged
  };
  struct PendingFree {
    std::shared_ptr<PoolBlock> block;
    std::shared_ptr<Stream> stream;
    uint64_t sequence;
  };

  // The caller of these functions holds the mutex.
  void prepare();
  std::shared_ptr<PoolBlock> cut(size_t need, size_t bytes);
  bool reserveSegment(size_t need, size_t step);
  std::shared_ptr<PoolBlock> reuse(size_t need, size_t bytes, const std::shared_ptr<Stream>& stream, Dependency* after);
  void countUse(size_t bytes);
  void releaseWhile(const std::function<bool(size_t)>& mayRelease);

  void release(PoolBlock& block);
  void finishFree(const PoolBlock* block);

  uint64_t handle_ = 0;
  std::mutex mutex_;
  std::shared_ptr<SharedFile> file_;
  uint64_t base_ = 0;
  size_t extent_ = 0;  // size of the address range
  std::map<size_t, Segment> segments_;
  std::list<PendingFree> pending_;
  size_t reserved_ = 0, reservedHigh_ = 0, used_ = 0, usedHigh_ = 0;
  uint64_t threshold_ = 0;
  std::array<int, 3> reuse_{1, 1, 1};
  std::array<std::atomic<unsigned>, 64> rights_{};
  std::atomic<unsigned> hostRights_{0};
};

CUresult findPool(CUmemoryPool handle, std::shared_ptr<Pool>& pool);
// The pool that cuMemAllocAsync uses.
std::shared_ptr<Pool> currentPool(Device& device);
// Called when a pool is destroyed: it must not stay the current pool of a location.
void forgetPool(const std::shared_ptr<Pool>& pool);
// Called after the host has waited for a stream, an event or a context.
void trimPoolsAfterWaiting();
// Releases unused memory of all pools of a device that is short of memory.
void trimPoolsOf(const Device* device);

}  // namespace shoal
