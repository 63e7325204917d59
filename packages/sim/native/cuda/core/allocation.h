// Memory that the software device knows: its own, and host memory that was allocated or registered through it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "backing.h"
#include "forengine.h"
#include "shoal/cuda.h"

namespace shoal {

class Context;
class Device;

// `pooled` comes from cuMemAllocAsync, `mapped` from cuMemMap, `imported` from another process through a legacy IPC
// handle, and `external` from another library.
enum class MemoryKind { device, managed, pinned, registered, pooled, mapped, imported, external };
enum class Place { device, host };

constexpr size_t kMaxPitch = 2147483647;

struct Allocation {
  struct Description {
    MemoryKind kind;
    uint64_t base = 0;
    size_t size = 0;
    Place place = Place::device;
    std::shared_ptr<Context> context;  // null if it belongs to no context
    Device* device = nullptr;          // null for host memory, or memory of several devices
    unsigned flags = 0;
    std::shared_ptr<Backing> backing;  // null if the memory has another owner
    uint64_t id = 0;                   // 0 requests a new id
  };
  explicit Allocation(Description description);
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  bool isHost() const { return place == Place::host; }
  bool holds(uint64_t address, size_t length) const { return length <= size - (address - base); }
  SHOAL_FOR_ENGINE bool allows(Context& user, Access access, bool isCopy) const;

  const MemoryKind kind;
  const uint64_t base;
  const size_t size;
  const Place place;
  const std::shared_ptr<Context> context;
  Device* const device;
  const unsigned flags;
  const std::shared_ptr<Backing> backing;
  const uint64_t id;
  std::atomic<bool> syncMemoryOperations;
};

class AllocationTable {
 public:
  bool put(std::shared_ptr<Allocation> allocation);  // returns false if it overlaps a known allocation
  SHOAL_FOR_ENGINE std::shared_ptr<Allocation> covering(
      uint64_t address) const;  // the allocation that contains the address
  std::shared_ptr<Allocation> startingAt(uint64_t address) const;
  bool overlaps(uint64_t address, size_t size) const;
  bool remove(const std::shared_ptr<Allocation>& allocation);  // returns false if another thread removed it first
  std::vector<std::shared_ptr<Allocation>> removeAllOf(const Context* context);
  std::vector<std::shared_ptr<Allocation>> all() const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Allocation>> byBase_;
};

// Allocations whose stream-ordered free is still queued. New work cannot use them, but kernels queued earlier may.
class LeavingAllocations {
 public:
  void add(std::shared_ptr<Allocation> allocation);
  void remove(const Allocation* allocation);
  SHOAL_FOR_ENGINE std::shared_ptr<Allocation> covering(uint64_t address, size_t length) const;

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<Allocation>> list_;
};

// Addresses that were reserved for devices, in use or not. They are never host memory.
class AddressTable {
 public:
  void add(uint64_t base, size_t size);
  void remove(uint64_t base);
  bool overlaps(uint64_t address, size_t size) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, size_t> ranges_;
};

// The access that an operation is about to make.
struct Use {
  Context& context;
  Access access;
  bool isCopy = false;
};

// A checked range of memory for one operation. It keeps the memory alive until the operation has completed. Mapped
// memory can still be unmapped or mapped again before the operation runs, so the operation uses Held while it runs.
struct MemoryRange {
  char* data = nullptr;
  size_t length = 0;
  std::shared_ptr<Allocation> allocation;  // the first of adjacent mappings; null: pageable host memory
  Context* user = nullptr;
  Access access = Access::read;
  bool isCopy = false;
  std::shared_ptr<const void> array;  // set for memory of an array, which has no address in the tables
  bool isPageable() const { return allocation == nullptr && array == nullptr; }
  bool isHost() const { return allocation != nullptr && allocation->isHost(); }
};

// While this object lives, its mapped memory is neither unmapped nor loses its access rights.
class Held {
 public:
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held();
  // Holds the mappings that are at the range's addresses now. Returns CUDA_ERROR_ILLEGAL_ADDRESS if there is no mapping
  // or if access is no longer allowed.
  CUresult add(const MemoryRange& range);
  // Must be called after a write, because some memory forwards writes. Returns the operation's result.
  CUresult wrote(const MemoryRange& range, size_t offset, size_t length) const;

 private:
  std::vector<std::shared_ptr<Allocation>> mappings_;
};

// For memory that CUDA knows. Returns CUDA_ERROR_INVALID_VALUE unless the whole range is live and the use is allowed.
CUresult checkKnownRange(const Use& use, CUdeviceptr address, size_t length, MemoryRange& range);
// For any memory: memory that CUDA knows, and host memory of this process.
CUresult checkRange(const Use& use, uint64_t address, size_t length, MemoryRange& range);
// True if the whole range is host memory of this process that CUDA does not know, and if the access is possible.
bool isPlainHostMemory(uint64_t address, size_t length, Access access);

}  // namespace shoal
