// Memory the software device knows: its own, and host memory that was allocated or registered through it.
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

// `pooled` comes from cuMemAllocAsync, `mapped` from cuMemMap, `imported` from another process by a legacy handle,
// `external` from another library.
enum class MemoryKind { device, managed, pinned, registered, pooled, mapped, imported, external };
enum class Place { device, host };

constexpr size_t kMaxPitch = 2147483647;

struct Allocation {
  struct Description {
    MemoryKind kind;
    uint64_t base = 0;
    size_t size = 0;
    Place place = Place::device;
    std::shared_ptr<Context> context;  // null: it belongs to no context
    Device* device = nullptr;          // null: the host's, or several devices'
    unsigned flags = 0;
    std::shared_ptr<Backing> backing;  // null: the memory is somebody else's
    uint64_t id = 0;                   // 0: a new one
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
  bool put(std::shared_ptr<Allocation> allocation);  // false when it overlaps a known one
  SHOAL_FOR_ENGINE std::shared_ptr<Allocation> covering(
      uint64_t address) const;  // the allocation that holds the address
  std::shared_ptr<Allocation> startingAt(uint64_t address) const;
  bool overlaps(uint64_t address, size_t size) const;
  bool remove(const std::shared_ptr<Allocation>& allocation);  // false when somebody else did
  std::vector<std::shared_ptr<Allocation>> removeAllOf(const Context* context);
  std::vector<std::shared_ptr<Allocation>> all() const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Allocation>> byBase_;
};

// What was freed in a stream that has not come by yet: unknown to new work, but kernels queued before may still use it.
class LeavingAllocations {
 public:
  void add(std::shared_ptr<Allocation> allocation);
  void remove(const Allocation* allocation);
  SHOAL_FOR_ENGINE std::shared_ptr<Allocation> covering(uint64_t address, size_t length) const;

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<Allocation>> list_;
};

// Addresses that were taken from the system for devices, in use or not: they are never host memory.
class AddressTable {
 public:
  void add(uint64_t base, size_t size);
  void remove(uint64_t base);
  bool overlaps(uint64_t address, size_t size) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, size_t> ranges_;
};

// What an operation is about to do.
struct Use {
  Context& context;
  Access access;
  bool isCopy = false;
};

// A checked piece of memory that an operation will work on; keeps it alive until the operation has ended. Mapped memory
// can go, change or become somebody else's before: the operation holds it while it works.
struct MemoryRange {
  char* data = nullptr;
  size_t length = 0;
  std::shared_ptr<Allocation> allocation;  // the first of mappings that lie side by side; null: pageable host memory
  Context* user = nullptr;
  Access access = Access::read;
  bool isCopy = false;
  std::shared_ptr<const void> array;  // of an array, which is in no table of addresses
  bool isPageable() const { return allocation == nullptr && array == nullptr; }
  bool isHost() const { return allocation != nullptr && allocation->isHost(); }
};

// Mapped memory that stays in its place, with its rights, while this lives.
class Held {
 public:
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held();
  // What is at the range's addresses now; CUDA_ERROR_ILLEGAL_ADDRESS when that is nothing, or may not be touched any
  // more.
  CUresult add(const MemoryRange& range);
  // To be called after writing: some memory has to pass on what was written. The operation's result.
  CUresult wrote(const MemoryRange& range, size_t offset, size_t length) const;

 private:
  std::vector<std::shared_ptr<Allocation>> mappings_;
};

// Memory that CUDA knows: CUDA_ERROR_INVALID_VALUE unless the whole range lies in live memory that the use is allowed.
CUresult checkKnownRange(const Use& use, CUdeviceptr address, size_t length, MemoryRange& range);
// Any memory: known, or mapped in this process.
CUresult checkRange(const Use& use, uint64_t address, size_t length, MemoryRange& range);
// Whether the range is host memory of this process that CUDA does not know and that can be touched so, all of it.
bool isPlainHostMemory(uint64_t address, size_t length, Access access);

}  // namespace shoal
