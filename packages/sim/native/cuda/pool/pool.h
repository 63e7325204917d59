// A memory pool: memory reserved in segments, handed out in stream order, kept for the next who asks.
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

// What one allocation of a pool stands on.
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
  size_t used = 0;  // what was asked for, guarded by the pool's mutex; 0 once it was freed in a stream
};

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  static std::shared_ptr<Pool> create(const CUmemPoolProps& properties, Device* device, bool isDefault);
  // A pool of another process; memory comes from it by imported pointers only.
  static CUresult open(std::shared_ptr<SharedFile> file, std::shared_ptr<Pool>& pool);
  Pool(const CUmemPoolProps& properties, Device* device, bool isDefault, bool isImported);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  CUmemoryPool handle() const { return reinterpret_cast<CUmemoryPool>(handle_); }
  // Memory for work of the stream; CUDA_ERROR_OUT_OF_MEMORY when neither the pool nor the device has so much.
  CUresult allocate(size_t bytes, const std::shared_ptr<Stream>& stream, std::shared_ptr<Allocation>& allocation);
  // The memory may be used again by what the stream does later, and by all when the stream has come by, which calls
  // `afterwards`.
  void free(const std::shared_ptr<PoolBlock>& block, const std::shared_ptr<Stream>& stream,
            std::function<void()> afterwards);
  // Memory of an imported pool.
  CUresult import(size_t offset, size_t bytes, const std::shared_ptr<Context>& context, CUdeviceptr& address);

  // Gives unused segments back as long as so much stays reserved.
  void trimTo(size_t bytesToKeep);
  // The same, as after a synchronisation.
  void trimToThreshold();

  CUresult getAttribute(CUmemPool_attribute attribute, void* value);
  CUresult setAttribute(CUmemPool_attribute attribute, const void* value);
  unsigned rightsOf(int device) const;
  unsigned hostRights() const { return hostRights_; }
  void setRights(int device, unsigned rights) { rights_[static_cast<size_t>(device)] = rights; }

  bool isManaged() const { return properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED; }
  Place place() const { return device == nullptr && !isManaged() ? Place::host : Place::device; }

  const CUmemPoolProps properties;
  Device* const device;  // null: the host's, or managed memory that prefers no device
  const bool isDefault;
  const bool isImported;
  // Drivers give no pointer of a pool out before they gave out the pool.
  std::atomic<bool> isExported{false};

  // The file and the addresses are taken from the system when memory is first asked for.
  std::shared_ptr<SharedFile> file();
  uint64_t base();

 private:
  friend class PoolBlock;
  struct Segment {
    size_t size;
    std::map<size_t, size_t> free;  // offset to length, adjacent ones merged
  };
  struct PendingFree {
    std::shared_ptr<PoolBlock> block;
    std::shared_ptr<Stream> stream;
    uint64_t sequence;
  };

  // All of these are called with the mutex held.
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
  size_t extent_ = 0;  // of addresses
  std::map<size_t, Segment> segments_;
  std::list<PendingFree> pending_;
  size_t reserved_ = 0, reservedHigh_ = 0, used_ = 0, usedHigh_ = 0;
  uint64_t threshold_ = 0;
  std::array<int, 3> reuse_{1, 1, 1};
  std::array<std::atomic<unsigned>, 64> rights_{};
  std::atomic<unsigned> hostRights_{0};
};

CUresult findPool(CUmemoryPool handle, std::shared_ptr<Pool>& pool);
// What cuMemAllocAsync takes memory from.
std::shared_ptr<Pool> currentPool(Device& device);
// A destroyed pool is nobody's current one any more.
void forgetPool(const std::shared_ptr<Pool>& pool);
// Called where the host has waited for a stream, an event or a context.
void trimPoolsAfterWaiting();
// Unused memory of every pool of the device, when it is short of memory.
void trimPoolsOf(const Device* device);

}  // namespace shoal
