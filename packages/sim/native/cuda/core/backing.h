// The memory behind an allocation. It is freed when the allocation and the last operation on it have released it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "forengine.h"
#include "sharedfile.h"
#include "shoal/cuda.h"

namespace shoal {

enum class Access { read, write };

// Counts running operations on memory. Code that unmaps the memory waits until the count is zero.
class UseCount {
 public:
  void enter() { count_.fetch_add(1); }
  SHOAL_FOR_ENGINE void leave();
  void waitUntilUnused();

 private:
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

class Backing {
 public:
  virtual ~Backing() = default;
  // Access rights that the memory stores per device. Without them, the owning context and its peers have access.
  virtual std::optional<unsigned> rightsOf(int /*device*/) const { return std::nullopt; }
  // True if even copies need the access right. Copies reach all other memory without it.
  virtual bool isStrict() const { return false; }
  // Null for memory that cannot be unmapped while it is in use.
  virtual UseCount* uses() { return nullptr; }
  // False while the memory is being removed: new work must not use it.
  virtual bool isUsable() const { return true; }
  // The file that holds the memory, and the offset in it. Null if the memory cannot be bound to a multicast object.
  virtual std::shared_ptr<SharedFile> locate(uint64_t /*address*/, size_t& /*offset*/) const { return nullptr; }
  // Holding the result keeps the memory alive after it was unmapped.
  virtual std::shared_ptr<const void> memory() const { return nullptr; }
  virtual bool isReadable() const { return true; }
  // False while no device has any access right. The address then behaves as if nothing were mapped.
  virtual bool isReachable() const { return true; }
  // Called after an operation wrote to the memory. Returns false if the write could not be forwarded.
  virtual bool wrote(uint64_t /*address*/, size_t /*length*/) { return true; }

  virtual unsigned handleTypes() const { return 0; }
  virtual bool isManaged() const { return false; }
  virtual bool isRdmaCapable() const { return false; }
  virtual bool isLegacyIpcCapable() const { return false; }
  virtual CUmemoryPool pool() const { return nullptr; }
  // The mapping that the memory belongs to; zeros if the allocation is the mapping.
  virtual uint64_t mappingBase() const { return 0; }
  virtual size_t mappingSize() const { return 0; }
  // The reserved range that the memory is mapped into; zeros if the allocation is the range.
  virtual uint64_t rangeBase() const { return 0; }
  virtual size_t rangeSize() const { return 0; }
};

}  // namespace shoal
