// Physical memory: granularity, creation, release, properties.
#include "physical.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include "core/entry.h"
#include "core/state.h"
#include "ipc/exchange.h"
#include "multicast/object.h"
#include "pool/pool.h"

using namespace shoal;

namespace shoal {

namespace {

struct Label {
  uint64_t size;
  CUmemAllocationProp properties;
};
static_assert(sizeof(Label) <= SharedFile::kLabelBytes);

// Physical memory by its file. Importing memory of this process returns the same object, which is counted once.
struct Known {
  std::mutex mutex;
  std::map<SharedFile::Identity, std::weak_ptr<Physical>> byFile;
};

Known& known() {
  static Known* all = new Known;
  return *all;
}

bool hasNode(int node) {
  if (node == 0) return true;
  const std::string path = "/sys/devices/system/node/node" + std::to_string(node);
  return node > 0 && access(path.c_str(), F_OK) == 0;
}

}  // namespace

CUresult Location::resolve(const CUmemLocation& location, Device*& device) {
  device = nullptr;
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return findDevice(location.id, device);
    case CU_MEM_LOCATION_TYPE_HOST: return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: return hasNode(location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult checkHandleTypes(unsigned types) {
  if ((types & (CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT)) != 0) return CUDA_ERROR_INVALID_VALUE;
  // A driver without an IMEX channel returns this code.
  return (types & CU_MEM_HANDLE_TYPE_FABRIC) != 0 && !state().hasFabric ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult checkExport(unsigned allowed, CUmemAllocationHandleType type) {
  const auto bits = static_cast<unsigned>(type);
  if (bits == 0 || (bits & (bits - 1)) != 0 || (allowed & bits) == 0) return CUDA_ERROR_INVALID_VALUE;
  return checkHandleTypes(bits);
}

CUresult checkImport(CUmemAllocationHandleType type) {
  switch (type) {
    case CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: return CUDA_SUCCESS;
    case CU_MEM_HANDLE_TYPE_FABRIC: return state().hasFabric ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_HANDLE_TYPE_WIN32:
    case CU_MEM_HANDLE_TYPE_WIN32_KMT: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

Physical::Physical(Device* device, size_t size, const CUmemAllocationProp& properties, std::shared_ptr<SharedFile> file,
                   bool isCounted)
    : device(device), size(size), properties(properties), file(std::move(file)), isCounted_(isCounted) {}

std::shared_ptr<Physical> Physical::create(size_t size, const CUmemAllocationProp& properties, Device* device) {
  if (device != nullptr && !device->arena.count(size)) {
    // Pools may hold unused memory.
    trimPoolsOf(device);
    if (!device->arena.count(size)) return nullptr;
  }
  try {
    const Label label = {size, properties};
    auto file = SharedFile::create(Content::physical, size, &label, sizeof label);
    auto physical = std::make_shared<Physical>(device, size, properties, std::move(file), device != nullptr);
    std::lock_guard lock(known().mutex);
    known().byFile[physical->file->identity()] = physical;
    return physical;
  } catch (...) {
    if (device != nullptr) device->arena.discount(size);
    throw;
  }
}

CUresult Physical::open(std::shared_ptr<SharedFile> file, std::shared_ptr<Physical>& physical) {
  if (file->content() != Content::physical) return CUDA_ERROR_NOT_SUPPORTED;
  Label label;
  memcpy(&label, file->label(), sizeof label);
  // The creator did not allow sharing, so the caller has guessed a descriptor.
  if (label.properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_UNKNOWN;
  if (label.size == 0 || label.size != file->size() || !isGranular(label.size)) return CUDA_ERROR_INVALID_VALUE;
  Device* device = nullptr;
  if (const CUresult status = Location::resolve(label.properties.location, device)) return status;
  std::lock_guard lock(known().mutex);
  auto& slot = known().byFile[file->identity()];
  physical = slot.lock();
  if (!physical) {
    physical = std::make_shared<Physical>(device, label.size, label.properties, std::move(file), false);
    slot = physical;
  }
  return CUDA_SUCCESS;
}

Physical::~Physical() {
  withdraw(TicketKind::fabric, file->identity().inode);
  {
    std::lock_guard lock(known().mutex);
    auto found = known().byFile.find(file->identity());
    if (found != known().byFile.end() && found->second.expired()) known().byFile.erase(found);
  }
  if (isCounted_) device->arena.discount(size);
}

uint64_t MemoryHandles::put(std::shared_ptr<MemoryHandle> handle) {
  handle->number = table_.reserve();
  handle->references = 1;
  table_.put(handle->number, handle);
  return handle->number;
}

uint64_t MemoryHandles::add(std::shared_ptr<Physical> physical, unsigned types) {
  auto handle = std::make_shared<MemoryHandle>();
  handle->physical = std::move(physical);
  handle->types = types;
  return put(std::move(handle));
}

uint64_t MemoryHandles::add(std::shared_ptr<MulticastObject> multicast) {
  auto handle = std::make_shared<MemoryHandle>();
  handle->types = multicast->handleTypes();
  handle->multicast = std::move(multicast);
  return put(std::move(handle));
}

std::shared_ptr<MemoryHandle> MemoryHandles::find(uint64_t number) { return table_.find(number); }

bool MemoryHandles::release(uint64_t number) {
  std::lock_guard lock(mutex_);
  auto handle = table_.find(number);
  if (!handle) return false;
  if (--handle->references == 0) table_.take(number);
  return true;
}

void MemoryHandles::retain(const std::shared_ptr<MemoryHandle>& handle) {
  std::lock_guard lock(mutex_);
  if (handle->references++ == 0) table_.put(handle->number, handle);
}

MemoryHandles& memoryHandles() {
  static MemoryHandles* all = new MemoryHandles;
  return *all;
}

}  // namespace shoal

namespace {

CUresult checkProperties(const CUmemAllocationProp& properties, Device*& device) {
  if (properties.type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = Location::resolve(properties.location, device)) return status;
  const auto types = static_cast<unsigned>(properties.requestedHandleTypes);
  if (properties.location.type == CU_MEM_LOCATION_TYPE_HOST && types != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = checkHandleTypes(types)) return status;
  if (properties.win32HandleMetaData != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (properties.allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC) return CUDA_ERROR_INVALID_VALUE;
  const auto& reserved = properties.allocFlags.reserved;
  const bool isClear = std::all_of(std::begin(reserved), std::end(reserved), [](auto byte) { return byte == 0; });
  return isClear ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  return initialised([&]() -> CUresult {
    if (granularity == nullptr || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
      return CUDA_ERROR_INVALID_VALUE;
    // As on hardware, the properties do not matter here.
    *granularity = kGranularity;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return initialised([&]() -> CUresult {
    if (handle == nullptr || prop == nullptr || flags != 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult status = checkProperties(*prop, device)) return status;
    if (!isGranular(size)) return CUDA_ERROR_INVALID_VALUE;
    if (size > (size_t{1} << 47)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUmemAllocationProp properties = *prop;
    // Compression is only a hint. The software device does not compress, and reports that.
    properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
    properties.allocFlags.gpuDirectRDMACapable = prop->allocFlags.gpuDirectRDMACapable != 0;
    const unsigned types = static_cast<unsigned>(prop->requestedHandleTypes) & kKnownHandleTypes;
    properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(types);
    // Host memory is always on one NUMA node.
    if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST) properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    auto physical = Physical::create(size, properties, device);
    if (!physical) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = memoryHandles().add(std::move(physical), types);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return initialised([&] { return memoryHandles().release(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  return initialised([&]() -> CUresult {
    if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto found = memoryHandles().find(handle);
    if (!found || !found->physical) return CUDA_ERROR_INVALID_VALUE;
    *prop = found->physical->properties;
    prop->requestedHandleTypes = static_cast<CUmemAllocationHandleType>(found->types);
    return CUDA_SUCCESS;
  });
}
