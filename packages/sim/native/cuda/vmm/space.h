// Reserved addresses and their mappings.
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

// A mapped piece of a reservation. Each device has its own access right, initially none.
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
  // Sets the rights. The pages get the protection that allows what all devices together may do.
  struct Grant {
    int device;  // kHost for the host
    unsigned rights;
  };
  static constexpr int kHost = -1;
  // Returns false if running operations may still use old rights. The caller must then call `waitUntilUnused` and
  // `settle`.
  bool grant(const std::vector<Grant>& grants);
  void settle();
  // No new operation may use the mapping from now on.
  void leave() { isMapped_ = false; }
  // The caller must not hold the mutex: the operations may depend on calls of other threads.
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

// Every call that reads or changes reservations or mappings holds the mutex.
struct AddressSpace final : CountedTable {
  AddressSpace() : CountedTable("address ranges") {}
  size_t count() const override {
    std::lock_guard lock(mutex);
    return reservations.size();
  }

  mutable std::mutex mutex;
  std::map<uint64_t, Reservation> reservations;

  // The reservation that contains the whole range, or null.
  Reservation* around(uint64_t address, size_t size);
  // Also null while the mapping is being removed.
  std::shared_ptr<Mapping> mappingAt(uint64_t address);
  // The adjacent mappings that fill exactly this range; empty if there are none.
  std::vector<std::shared_ptr<Mapping>> mappingsOf(uint64_t address, size_t size);
  // The mappings inside the range. Returns false if the range cuts a mapping, or if its start is not reserved.
  bool mappingsIn(uint64_t address, size_t size, std::vector<std::shared_ptr<Mapping>>& inside);
};

AddressSpace& addressSpace();

}  // namespace shoal
