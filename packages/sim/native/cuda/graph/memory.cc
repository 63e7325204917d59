#include "memory.h"

#include <map>

#include "core/arena.h"
#include "core/context.h"
#include "core/device.h"
#include "pool/pool.h"

namespace shoal {

namespace {

// The graph memory of a device, in use and reserved.
struct Usage {
  uint64_t used = 0, usedHigh = 0, reserved = 0, reservedHigh = 0;
};

struct Table {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<GraphMemory>> memory;
  std::map<int, Usage> usage;
};

Table& graphMemories() {
  static auto* one = new Table;
  return *one;
}

}  // namespace

CUresult GraphMemory::create(const CUDA_MEM_ALLOC_NODE_PARAMS& parameters, std::shared_ptr<GraphMemory>& memory,
                             std::shared_ptr<Context> context) {
  const CUmemPoolProps& pool = parameters.poolProps;
  if (parameters.bytesize == 0 || pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Graph memory cannot be shared with other processes.
  if (pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
  Device* device = nullptr;
  if (const CUresult status = findDevice(pool.location.id, device)) return status;
  if (parameters.accessDescCount != 0 && parameters.accessDescs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Like memory of cuMemAllocAsync, the memory belongs to a context: the stream's, the current one, or another context
  // of the device.
  if (!context && (currentContext(context) != CUDA_SUCCESS || &context->device != device)) {
    context.reset();
    for (auto& other : state().contexts.all()) {
      if (&other->device == device && other->alive && (!context || other->isPrimary)) context = other;
    }
  }
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  uint64_t base = device->arena.allocate(parameters.bytesize);
  if (base == 0) {
    trimPoolsOf(device);
    base = device->arena.allocate(parameters.bytesize);
  }
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  auto block = std::make_shared<ArenaBlock>(device->arena, base, parameters.bytesize, false);
  auto allocation = std::make_shared<Allocation>(Allocation::Description{
      MemoryKind::pooled, base, parameters.bytesize, Place::device, context, device, 0, std::move(block)});
  memory = std::make_shared<GraphMemory>(*device, base, parameters.bytesize, allocation);
  state().allocations.put(std::move(allocation));
  std::lock_guard lock(graphMemories().mutex);
  graphMemories().memory[base] = memory;
  return CUDA_SUCCESS;
}

GraphMemory::~GraphMemory() {
  if (auto allocation = allocation_.lock()) state().allocations.remove(allocation);
  std::lock_guard lock(graphMemories().mutex);
  // If the context ended before, another allocation may have this address now.
  const auto found = graphMemories().memory.find(address);
  if (found != graphMemories().memory.end() && found->second.expired()) graphMemories().memory.erase(found);
  // Memory stays reserved for other graphs until a trim.
  if (isUsed) graphMemories().usage[device.ordinal].used -= size;
}

void GraphMemory::open() {
  if (isOpen()) return;
  self_ = shared_from_this();
  std::lock_guard lock(graphMemories().mutex);
  if (isUsed) return;
  isUsed = true;
  Usage& usage = graphMemories().usage[device.ordinal];
  usage.used += size;
  usage.usedHigh = std::max(usage.usedHigh, usage.used);
  usage.reserved = std::max(usage.reserved, usage.used);
  usage.reservedHigh = std::max(usage.reservedHigh, usage.reserved);
}

AllocWork::AllocWork(std::shared_ptr<GraphMemory> memory, const CUDA_MEM_ALLOC_NODE_PARAMS& given)
    : memory(std::move(memory)),
      access(given.accessDescs, given.accessDescs + given.accessDescCount),
      parameters(given) {
  parameters.accessDescs = access.data();
  parameters.dptr = this->memory->address;
}

CUresult AllocWork::prepare(const std::shared_ptr<Stream>&, Operation& operation) const {
  operation.run = [memory = memory] { return CUDA_SUCCESS; };
  return CUDA_SUCCESS;
}

CUresult FreeWork::prepare(const std::shared_ptr<Stream>&, Operation& operation) const {
  const auto memory = findGraphMemory(address);
  if (!memory) return CUDA_ERROR_INVALID_VALUE;
  operation.run = [memory] { return CUDA_SUCCESS; };
  return CUDA_SUCCESS;
}

GraphMemory* allocatedBy(const Work& work) {
  const auto* alloc = dynamic_cast<const AllocWork*>(&work);
  return alloc == nullptr ? nullptr : alloc->memory.get();
}

std::shared_ptr<GraphMemory> freedBy(const Work& work) {
  const auto* free = dynamic_cast<const FreeWork*>(&work);
  return free == nullptr ? nullptr : findGraphMemory(free->address);
}

std::shared_ptr<GraphMemory> findGraphMemory(CUdeviceptr address) {
  std::lock_guard lock(graphMemories().mutex);
  const auto found = graphMemories().memory.find(address);
  const auto memory = found == graphMemories().memory.end() ? nullptr : found->second.lock();
  return memory && memory->isThere() ? memory : nullptr;
}

std::shared_ptr<GraphMemory> graphMemoryAround(CUdeviceptr address) {
  std::lock_guard lock(graphMemories().mutex);
  auto found = graphMemories().memory.upper_bound(address);
  const auto memory = found == graphMemories().memory.begin() ? nullptr : (--found)->second.lock();
  return memory && address - memory->address < memory->size ? memory : nullptr;
}

bool freeGraphMemory(CUdeviceptr address, CUresult& status) {
  const auto memory = findGraphMemory(address);
  if (!memory) return false;
  std::lock_guard lock(graphMutex());
  status = memory->isOpen() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  memory->close();
  return true;
}

CUDA_MEM_ALLOC_NODE_PARAMS describeMemory(int device, size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  wanted.bytesize = bytes;
  return wanted;
}

}  // namespace shoal

using namespace shoal;

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return initialised([&]() -> CUresult {
    Device* device = nullptr;
    if (const CUresult status = findDevice(ordinal, device)) return status;
    std::scoped_lock lock(graphMutex(), graphMemories().mutex);
    Usage& usage = graphMemories().usage[ordinal];
    for (auto& [address, weak] : graphMemories().memory) {
      const auto memory = weak.lock();
      if (!memory || &memory->device != device || memory->isOpen() || !memory->isUsed) continue;
      memory->isUsed = false;
      usage.used -= memory->size;
    }
    usage.reserved = usage.used;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attr, void* value) {
  return initialised([&]() -> CUresult {
    Device* device = nullptr;
    if (const CUresult status = findDevice(ordinal, device)) return status;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(graphMemories().mutex);
    const Usage& usage = graphMemories().usage[ordinal];
    auto& out = *static_cast<cuuint64_t*>(value);
    switch (attr) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: out = usage.used; return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: out = usage.usedHigh; return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: out = usage.reserved; return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: out = usage.reservedHigh; return CUDA_SUCCESS;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attr, void* value) {
  return initialised([&]() -> CUresult {
    Device* device = nullptr;
    if (const CUresult status = findDevice(ordinal, device)) return status;
    // A high-water mark can only be reset, to the current value.
    if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(graphMemories().mutex);
    Usage& usage = graphMemories().usage[ordinal];
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) usage.usedHigh = usage.used;
    else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) usage.reservedHigh = usage.reserved;
    else return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}
