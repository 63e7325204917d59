// Memory the software device knows: its own, and host memory that was allocated or registered through it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "shoal/cuda.h"

namespace shoal {

class Context;
class Device;

enum class MemoryKind { device, managed, pinned, registered };

struct Allocation {
  Allocation(MemoryKind kind, uint64_t base, size_t size, std::shared_ptr<Context> context, unsigned flags);
  ~Allocation();  // gives the memory back; runs when the last queued operation on it has ended
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  bool isHost() const { return kind == MemoryKind::pinned || kind == MemoryKind::registered; }

  const MemoryKind kind;
  const uint64_t base;
  const size_t size;
  const std::shared_ptr<Context> context;
  const unsigned flags;
  const uint64_t id;
  std::atomic<bool> syncMemoryOperations;
};

class AllocationTable {
 public:
  bool put(std::shared_ptr<Allocation> allocation);                  // false when it overlaps a known one
  std::shared_ptr<Allocation> covering(uint64_t address) const;      // the allocation that holds the address
  std::shared_ptr<Allocation> startingAt(uint64_t address) const;
  bool overlaps(uint64_t address, size_t size) const;
  bool remove(const std::shared_ptr<Allocation>& allocation);        // false when somebody else did
  std::vector<std::shared_ptr<Allocation>> removeAllOf(const Context* context);

 private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Allocation>> byBase_;
};

// A checked piece of memory that an operation works on; keeps it alive until the operation has ended.
struct MemoryRange {
  char* data = nullptr;
  std::shared_ptr<Allocation> allocation;  // null: pageable host memory
  bool isPageable() const { return allocation == nullptr; }
};

// Memory that the device may touch: CUDA_ERROR_INVALID_VALUE unless the whole range lies in one live allocation.
CUresult checkDeviceRange(CUdeviceptr address, size_t length, MemoryRange& range);
// The same, and the context's device can reach it: its own memory, host or managed memory, or a peer's that was enabled.
CUresult checkAccessibleRange(Context& context, CUdeviceptr address, size_t length, MemoryRange& range);
// Any memory: known, or mapped in this process.
CUresult checkRange(uint64_t address, size_t length, MemoryRange& range);

}  // namespace shoal
