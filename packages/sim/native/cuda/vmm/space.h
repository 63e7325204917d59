// Reserved addresses and what is mapped into them.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/allocation.h"
#include "core/handles.h"
#include "physical.h"

namespace shoal {

constexpr size_t kDeviceSlots = 64;

// A piece of a reservation with memory behind it. Each device has its own right to it; at first none has any.
class Mapping : public Backing {
 public:
  struct Range {
    uint64_t base;
    size_t size;
  };
  Mapping(Range reserved, uint64_t base, size_t size, std::shared_ptr<MemoryHandle> handle);

  std::optional<unsigned> rightsOf(int device) const override;
  bool isStrict() const override { return true; }
  UseCount* uses() override { return &uses_; }
  bool isUsable() const override { return isMapped_; }
  bool isReadable() const override { return handle->physical != nullptr; }
  bool isReachable() const override { return together() != 0; }
  bool wrote(uint64_t address, size_t length) override;
  std::shared_ptr<SharedFile> locate(uint64_t address, size_t& offset) const override;
  std::shared_ptr<const void> memory() const override { return handle->physical; }
  unsigned handleTypes() const override { return handle->types; }
  uint64_t rangeBase() const override { return reserved_.base; }
  size_t rangeSize() const override { return reserved_.size; }
  bool isRdmaCapable() const override;

  unsigned hostRights() const { return hostRights_; }
  // Gives each its right, and the pages the protection that allows what all may do together.
  struct Grant {
    int device;  // kHost: the host
    unsigned rights;
  };
  static constexpr int kHost = -1;
  // False: others may still use more than is allowed now, so `waitUntilUnused` and then `settle` have to follow.
  bool grant(const std::vector<Grant>& grants);
  void settle();
  // Nothing new may touch it from now on.
  void leave() { isMapped_ = false; }
  // Calls that wait do it without the mutex: what they wait for may need calls of other threads.
  void waitUntilUnused() { uses_.waitUntilUnused(); }

  const uint64_t base;
  const size_t size;
  const std::shared_ptr<MemoryHandle> handle;

 private:
  const Range reserved_;
  unsigned together() const;
  void protect(unsigned rights) const;
  UseCount uses_;
  std::atomic<bool> isMapped_{true};
  std::array<std::atomic<unsigned>, kDeviceSlots> rights_{};
  std::atomic<unsigned> hostRights_{0};
};

struct Reservation {
  uint64_t base;
  size_t size;
  std::map<uint64_t, std::shared_ptr<Mapping>> mappings;
};

// All calls that look at or change reservations and mappings hold the mutex.
struct AddressSpace final : CountedTable {
  AddressSpace() : CountedTable("address ranges") {}
  size_t count() const override {
    std::lock_guard lock(mutex);
    return reservations.size();
  }

  mutable std::mutex mutex;
  std::map<uint64_t, Reservation> reservations;

  // The reservation that holds the whole range, or null.
  Reservation* around(uint64_t address, size_t size);
  // Null also while it is being taken away.
  std::shared_ptr<Mapping> mappingAt(uint64_t address);
  // The mappings that fill the range, one behind the other; empty unless they do.
  std::vector<std::shared_ptr<Mapping>> mappingsOf(uint64_t address, size_t size);
  // Those that lie in the range; false when the range cuts one, or starts where nothing is reserved.
  bool mappingsIn(uint64_t address, size_t size, std::vector<std::shared_ptr<Mapping>>& inside);
};

AddressSpace& addressSpace();

}  // namespace shoal
