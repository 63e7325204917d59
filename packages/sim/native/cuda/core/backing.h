// What an allocation stands on. It gives the memory back when the allocation and the last operation on it have let go.
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

// Counts the operations that are at work on memory, for those who are about to take it away from its address.
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
  // Rights that the memory keeps for each device; without, it follows the context that owns it and its peers.
  virtual std::optional<unsigned> rightsOf(int /*device*/) const { return std::nullopt; }
  // Whether even copies need a right; they reach all other memory.
  virtual bool isStrict() const { return false; }
  // Null for memory that cannot be taken away while it is used.
  virtual UseCount* uses() { return nullptr; }
  // False when it is about to go: nothing new may touch it.
  virtual bool isUsable() const { return true; }
  // The file that the memory lies in and where; null for memory that cannot be bound to a multicast object.
  virtual std::shared_ptr<SharedFile> locate(uint64_t /*address*/, size_t& /*offset*/) const { return nullptr; }
  // What to hold so that this memory stays when its address goes.
  virtual std::shared_ptr<const void> memory() const { return nullptr; }
  virtual bool isReadable() const { return true; }
  // False while nobody has any right to it: the address leads nowhere then.
  virtual bool isReachable() const { return true; }
  // Called after an operation wrote there; false when what was written could not be passed on.
  virtual bool wrote(uint64_t /*address*/, size_t /*length*/) { return true; }

  virtual unsigned handleTypes() const { return 0; }
  virtual bool isManaged() const { return false; }
  virtual bool isRdmaCapable() const { return false; }
  virtual bool isLegacyIpcCapable() const { return false; }
  virtual CUmemoryPool pool() const { return nullptr; }
  // The mapping that the memory is a part of; zeros: its own.
  virtual uint64_t mappingBase() const { return 0; }
  virtual size_t mappingSize() const { return 0; }
  // The addresses that it was mapped into; zeros: its own.
  virtual uint64_t rangeBase() const { return 0; }
  virtual size_t rangeSize() const { return 0; }
};

}  // namespace shoal
