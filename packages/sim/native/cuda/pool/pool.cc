#include "pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "core/addresses.h"
#include "core/context.h"
#include "core/state.h"
#include "ipc/exchange.h"

namespace shoal {

namespace {

constexpr size_t kGranule = 512;
// Pools take memory from the device in the same steps as hardware, and in smaller steps if memory is short.
constexpr size_t kSegment = size_t{32} << 20;
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kHostExtent = size_t{64} << 30;

size_t roundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Set if a pool may hold more than its threshold. Without it, a synchronisation does not look at the pools.
std::atomic<bool> mayTrim{false};

}  // namespace

PoolBlock::PoolBlock(std::shared_ptr<Pool> pool, size_t offset, size_t size, size_t segment, size_t segmentSize)
    : owner(std::move(pool)), offset(offset), size(size), segment(segment), segmentSize(segmentSize) {}
bool PoolBlock::isManaged() const { return owner->isManaged(); }

PoolBlock::~PoolBlock() { owner->release(*this); }
// Managed memory has no rights per device.
std::optional<unsigned> PoolBlock::rightsOf(int device) const {
  return owner->isManaged() ? std::nullopt : std::optional<unsigned>(owner->rightsOf(device));
}
bool PoolBlock::isStrict() const { return owner->device != nullptr && !owner->isManaged(); }
unsigned PoolBlock::handleTypes() const { return static_cast<unsigned>(owner->properties.handleTypes); }
CUmemoryPool PoolBlock::pool() const { return owner->handle(); }
uint64_t PoolBlock::mappingBase() const { return owner->base_ + segment; }

std::shared_ptr<SharedFile> PoolBlock::locate(uint64_t address, size_t& inFile) const {
  inFile = address - owner->base_;
  return owner->file_;
}

Pool::Pool(const CUmemPoolProps& properties, Device* device, bool isDefault, bool isImported)
    : properties(properties), device(device), isDefault(isDefault), isImported(isImported) {
  if (isManaged()) return;
  if (device != nullptr) rights_[static_cast<size_t>(device->ordinal)] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  else hostRights_ = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

std::shared_ptr<Pool> Pool::create(const CUmemPoolProps& properties, Device* device, bool isDefault) {
  auto pool = std::make_shared<Pool>(properties, device, isDefault, false);
  pool->handle_ = state().pools.reserve();
  state().pools.put(pool->handle_, pool);
  return pool;
}

CUresult Pool::open(std::shared_ptr<SharedFile> file, std::shared_ptr<Pool>& pool) {
  if (file->content() != Content::pool) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemPoolProps properties;
  memcpy(&properties, file->label(), sizeof properties);
  // The creator did not allow sharing, so the caller has guessed a descriptor.
  if (properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_UNKNOWN;
  Device* device = nullptr;
  if (properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    if (const CUresult status = findDevice(properties.location.id, device)) return status;
  }
  pool = std::make_shared<Pool>(properties, device, false, true);
  pool->file_ = std::move(file);
  pool->handle_ = state().pools.reserve();
  state().pools.put(pool->handle_, pool);
  return CUDA_SUCCESS;
}

Pool::~Pool() {
  if (file_) withdraw(TicketKind::fabric, file_->identity().inode);
  if (base_ != 0) releaseAddresses(base_, extent_);
  if (device != nullptr && reserved_ != 0) device->arena.discount(reserved_);
}

void Pool::prepare() {
  if (base_ != 0) return;
  if (!file_) {
    size_t extent = device != nullptr ? device->arena.capacity() * 2 : kHostExtent;
    if (properties.maxSize != 0) extent = std::min(extent, properties.maxSize);
    file_ = SharedFile::create(Content::pool, roundUp(extent, kSegment), &properties, sizeof properties);
  }
  extent_ = file_->size();
  const uint64_t start = reserveAddresses(extent_, kSmallSegment, 0);
  if (start == 0) throw std::bad_alloc();
  file_->map(0, extent_, PROT_READ | PROT_WRITE, reinterpret_cast<void*>(start));
  madvise(reinterpret_cast<void*>(start), extent_, MADV_DONTFORK);
  base_ = start;
}

std::shared_ptr<SharedFile> Pool::file() {
  std::lock_guard lock(mutex_);
  prepare();
  return file_;
}

uint64_t Pool::base() {
  std::lock_guard lock(mutex_);
  prepare();
  return base_;
}

unsigned Pool::rightsOf(int ordinal) const {
  return ordinal >= 0 && static_cast<size_t>(ordinal) < rights_.size() ? rights_[static_cast<size_t>(ordinal)].load()
                                                                       : 0;
}

void Pool::countUse(size_t bytes) {
  used_ += bytes;
  usedHigh_ = std::max(usedHigh_, used_);
}

std::shared_ptr<PoolBlock> Pool::cut(size_t need, size_t bytes) {
  for (auto& [start, segment] : segments_) {
    for (auto block = segment.free.begin(); block != segment.free.end(); ++block) {
      if (block->second < need) continue;
      const size_t offset = block->first, rest = block->second - need;
      segment.free.erase(block);
      if (rest != 0) segment.free[offset + need] = rest;
      countUse(bytes);
      auto cut = std::make_shared<PoolBlock>(shared_from_this(), offset, need, start, segment.size);
      cut->used = bytes;
      return cut;
    }
  }
  return nullptr;
}

bool Pool::reserveSegment(size_t need, size_t step) {
  const size_t size = roundUp(need, step);
  if (properties.maxSize != 0 && reserved_ + size > properties.maxSize) return false;
  size_t start = 0;
  for (auto& [offset, segment] : segments_) {
    if (offset - start >= size) break;
    start = offset + segment.size;
  }
  if (start > extent_ || extent_ - start < size) return false;
  if (device != nullptr && !device->arena.count(size)) return false;
  segments_[start] = Segment{size, {{start, size}}};
  reserved_ += size;
  reservedHigh_ = std::max(reservedHigh_, reserved_);
  return true;
}

// Memory with a queued free. The stream of the free may reuse it at once. Another stream must first wait for the free;
// it passes `after` to get that dependency.
std::shared_ptr<PoolBlock> Pool::reuse(size_t need, size_t bytes, const std::shared_ptr<Stream>& stream,
                                       Dependency* after) {
  auto best = pending_.end();
  for (auto each = pending_.begin(); each != pending_.end(); ++each) {
    if ((each->stream == stream) == (after != nullptr) || each->block->size < need) continue;
    // would waste a large block
    if (after == nullptr && each->block->size > std::max(need * 2, kSmallSegment)) continue;
    if (best == pending_.end() || each->block->size < best->block->size) best = each;
  }
  if (best == pending_.end()) return nullptr;
  auto block = std::move(best->block);
  if (after != nullptr) *after = {best->stream, best->sequence};
  pending_.erase(best);
  block->used = bytes;
  countUse(bytes);
  return block;
}

CUresult Pool::allocate(size_t bytes, const std::shared_ptr<Stream>& stream, std::shared_ptr<Allocation>& allocation) {
  if (bytes > (size_t{1} << 47)) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t need = roundUp(bytes, kGranule);
  std::shared_ptr<PoolBlock> block;
  Dependency after = {};
  for (int attempt = 0; attempt < 2 && !block; ++attempt) {
    // On the second attempt, first release unused memory of all pools of the device, including this one.
    if (attempt == 1) trimPoolsOf(device);
    std::lock_guard lock(mutex_);
    prepare();
    block = reuse(need, bytes, stream, nullptr);
    if (!block) block = cut(need, bytes);
    if (!block && (reserveSegment(need, kSegment) || reserveSegment(need, kSmallSegment))) block = cut(need, bytes);
    if (!block && attempt == 1 && reuse_[2] != 0) block = reuse(need, bytes, stream, &after);
  }
  if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
  if (after.stream != nullptr) {
    Operation wait;
    wait.run = [] { return CUDA_SUCCESS; };
    wait.after.push_back(after);
    stream->enqueue(std::move(wait));
  }
  const uint64_t address = base_ + block->offset;
  allocation = std::make_shared<Allocation>(Allocation::Description{MemoryKind::pooled, address, bytes, place(),
                                                                    stream->context, device, 0, std::move(block)});
  return CUDA_SUCCESS;
}

void Pool::free(const std::shared_ptr<PoolBlock>& block, const std::shared_ptr<Stream>& stream,
                std::function<void()> afterwards) {
  std::lock_guard lock(mutex_);
  used_ -= block->used;
  block->used = 0;
  pending_.push_back({block, stream, 0});
  auto entry = std::prev(pending_.end());
  Operation operation;
  operation.runsAfterErrors = true;
  operation.run = [self = shared_from_this(), which = block.get(), afterwards = std::move(afterwards)] {
    afterwards();
    self->finishFree(which);
    return CUDA_SUCCESS;
  };
  entry->sequence = stream->enqueue(std::move(operation));
}

void Pool::finishFree(const PoolBlock* block) {
  std::shared_ptr<PoolBlock> done;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  for (auto each = pending_.begin(); each != pending_.end(); ++each) {
    if (each->block.get() != block) continue;
    done = std::move(each->block);
    pending_.erase(each);
    return;
  }
}

void Pool::release(PoolBlock& block) {
  std::lock_guard lock(mutex_);
  if (isImported) return;
  used_ -= block.used;
  auto& free = segments_.at(block.segment).free;
  auto [at, isNew] = free.emplace(block.offset, block.size);
  auto after = std::next(at);
  if (after != free.end() && at->first + at->second == after->first) {
    at->second += after->second;
    free.erase(after);
  }
  if (at != free.begin()) {
    auto before = std::prev(at);
    if (before->first + before->second == at->first) {
      before->second += at->second;
      free.erase(at);
    }
  }
  if (reserved_ > threshold_) mayTrim = true;
}

CUresult Pool::import(size_t offset, size_t bytes, const std::shared_ptr<Context>& context, CUdeviceptr& address) {
  const uint64_t start = base();
  if (bytes == 0 || offset > extent_ || bytes > extent_ - offset) return CUDA_ERROR_INVALID_VALUE;
  auto block = std::make_shared<PoolBlock>(shared_from_this(), offset, bytes, 0, extent_);
  auto allocation = std::make_shared<Allocation>(Allocation::Description{
      MemoryKind::pooled, start + offset, bytes, place(), context, device, 0, std::move(block)});
  if (!state().allocations.put(std::move(allocation))) return CUDA_ERROR_ALREADY_MAPPED;
  address = start + offset;
  return CUDA_SUCCESS;
}

// Releases unused segments in reverse order of allocation.
void Pool::releaseWhile(const std::function<bool(size_t)>& mayRelease) {
  for (auto each = segments_.begin(); each != segments_.end();) {
    Segment& segment = each->second;
    const bool isUnused = segment.free.size() == 1 && segment.free.begin()->second == segment.size;
    const size_t step = segment.size % kSegment == 0 ? kSegment : kSmallSegment;
    while (isUnused && segment.size != 0 && mayRelease(step)) {
      segment.size -= step;
      segment.free = {{each->first, segment.size}};
      file_->discard(each->first + segment.size, step);
      reserved_ -= step;
      if (device != nullptr) device->arena.discount(step);
    }
    each = segment.size == 0 ? segments_.erase(each) : std::next(each);
  }
}

void Pool::trimTo(size_t bytesToKeep) {
  std::lock_guard lock(mutex_);
  releaseWhile([&](size_t step) { return reserved_ - step >= bytesToKeep; });
}

// Releases whole segments, so the size may end below the threshold.
void Pool::trimToThreshold() {
  std::lock_guard lock(mutex_);
  if (!isImported) releaseWhile([&](size_t) { return reserved_ > threshold_; });
}

CUresult Pool::getAttribute(CUmemPool_attribute attribute, void* value) {
  std::lock_guard lock(mutex_);
  auto put = [value](auto what) {
    memcpy(value, &what, sizeof what);
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return put(reuse_[static_cast<size_t>(attribute) - 1]);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return put(threshold_);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return put(uint64_t{reserved_});
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return put(uint64_t{reservedHigh_});
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return put(uint64_t{used_});
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return put(uint64_t{usedHigh_});
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult Pool::setAttribute(CUmemPool_attribute attribute, const void* value) {
  std::lock_guard lock(mutex_);
  int flag = 0;
  uint64_t wide = 0;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      memcpy(&flag, value, sizeof flag);
      reuse_[static_cast<size_t>(attribute) - 1] = flag != 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      memcpy(&threshold_, value, sizeof threshold_);
      if (reserved_ > threshold_) mayTrim = true;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      memcpy(&wide, value, sizeof wide);
      if (wide != 0) return CUDA_ERROR_INVALID_VALUE;
      (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? usedHigh_ : reservedHigh_) =
          attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? used_ : reserved_;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult findPool(CUmemoryPool handle, std::shared_ptr<Pool>& pool) {
  pool = state().pools.find(handle);
  return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void trimPoolsAfterWaiting() {
  if (!mayTrim.load(std::memory_order_relaxed) || !mayTrim.exchange(false)) return;
  for (auto& pool : state().pools.all()) pool->trimToThreshold();
}

void trimPoolsOf(const Device* device) {
  for (auto& pool : state().pools.all()) {
    if (pool->device == device && !pool->isImported) pool->trimTo(0);
  }
}

}  // namespace shoal
