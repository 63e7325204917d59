// Physical memory without an address, and the handles of physical memory and multicast objects.
#pragma once

#include <memory>
#include <mutex>

#include "core/device.h"
#include "core/handles.h"
#include "core/sharedfile.h"
#include "shoal/cuda.h"

namespace shoal {

constexpr size_t kGranularity = size_t{2} << 20;

inline bool isGranular(uint64_t value) { return value % kGranularity == 0; }

// Interprets a CUmemLocation.
struct Location {
  static bool isHost(CUmemLocationType type) {
    return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  }
  // Returns CUDA_ERROR_INVALID_DEVICE if the device does not exist. `device` is null for the host.
  static CUresult resolve(const CUmemLocation& location, Device*& device);
};

constexpr unsigned kKnownHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_WIN32 |
                                       CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC;

// Checks a bit mask of handle types for new memory or a new multicast object.
CUresult checkHandleTypes(unsigned types);
// Checks whether memory created with the types `allowed` may be exported as this one type.
CUresult checkExport(unsigned allowed, CUmemAllocationHandleType type);
CUresult checkImport(CUmemAllocationHandleType type);

class Physical {
 public:
  // Returns null if the device has too little memory left.
  static std::shared_ptr<Physical> create(size_t size, const CUmemAllocationProp& properties, Device* device);
  // Returns the existing object if this process knows the memory already.
  static CUresult open(std::shared_ptr<SharedFile> file, std::shared_ptr<Physical>& physical);
  ~Physical();

  Device* const device;  // null: host memory
  const size_t size;
  const CUmemAllocationProp properties;
  const std::shared_ptr<SharedFile> file;

  Physical(Device* device, size_t size, const CUmemAllocationProp& properties, std::shared_ptr<SharedFile> file,
           bool isCounted);

 private:
  const bool isCounted_;  // false for memory of another process, which counts it
};

class MulticastObject;

// A handle, with a reference count. Either `physical` or `multicast` is set.
struct MemoryHandle {
  uint64_t number = 0;
  std::shared_ptr<Physical> physical;
  std::shared_ptr<MulticastObject> multicast;
  unsigned types = 0;  // types it may be exported as; none for an import
  int references = 0;  // guarded by the table's mutex below
};

// Handles are valid while they have references. A handle that only a mapping keeps becomes valid again when it is
// retained through the mapping.
class MemoryHandles {
 public:
  uint64_t add(std::shared_ptr<Physical> physical, unsigned types);
  uint64_t add(std::shared_ptr<MulticastObject> multicast);
  std::shared_ptr<MemoryHandle> find(uint64_t number);
  bool release(uint64_t number);
  // Adds a reference, and makes the handle valid again if necessary.
  void retain(const std::shared_ptr<MemoryHandle>& handle);

 private:
  uint64_t put(std::shared_ptr<MemoryHandle> handle);
  std::mutex mutex_;
  HandleTable<MemoryHandle> table_{4, "physical allocations"};
};

MemoryHandles& memoryHandles();

}  // namespace shoal
