// Physical memory without an address, and the handles by which callers name it and multicast objects.
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

// What a location means here.
struct Location {
  static bool isHost(CUmemLocationType type) {
    return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  }
  // CUDA_ERROR_INVALID_DEVICE for a device that is not there; `device` is null for the host.
  static CUresult resolve(const CUmemLocation& location, Device*& device);
};

constexpr unsigned kKnownHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_WIN32 |
                                       CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC;

// A bit mask of handle types that memory and multicast objects may be created with.
CUresult checkHandleTypes(unsigned types);
// Whether what allows `allowed` may be exported as exactly this type.
CUresult checkExport(unsigned allowed, CUmemAllocationHandleType type);
CUresult checkImport(CUmemAllocationHandleType type);

class Physical {
 public:
  // Null when the device has not so much left.
  static std::shared_ptr<Physical> create(size_t size, const CUmemAllocationProp& properties, Device* device);
  // The same object for memory that this process knows already.
  static CUresult open(std::shared_ptr<SharedFile> file, std::shared_ptr<Physical>& physical);
  ~Physical();

  Device* const device;  // null: the host's
  const size_t size;
  const CUmemAllocationProp properties;
  const std::shared_ptr<SharedFile> file;

  Physical(Device* device, size_t size, const CUmemAllocationProp& properties, std::shared_ptr<SharedFile> file,
           bool isCounted);

 private:
  const bool isCounted_;  // memory of another process is on that one's account
};

class MulticastObject;

// A handle: counted by the calls that gave it out; one of the two is set.
struct MemoryHandle {
  uint64_t number = 0;
  std::shared_ptr<Physical> physical;
  std::shared_ptr<MulticastObject> multicast;
  unsigned types = 0;  // that it may be exported as; an import as none
  int references = 0;  // guarded by the table's mutex below
};

// Handles are valid while somebody holds a reference; one that is only mapped comes back when its mapping is asked for
// it.
class MemoryHandles {
 public:
  uint64_t add(std::shared_ptr<Physical> physical, unsigned types);
  uint64_t add(std::shared_ptr<MulticastObject> multicast);
  std::shared_ptr<MemoryHandle> find(uint64_t number);
  bool release(uint64_t number);
  // Makes the handle (valid again and) one reference stronger.
  void retain(const std::shared_ptr<MemoryHandle>& handle);

 private:
  uint64_t put(std::shared_ptr<MemoryHandle> handle);
  std::mutex mutex_;
  HandleTable<MemoryHandle> table_{4, "physical allocations"};
};

MemoryHandles& memoryHandles();

}  // namespace shoal
