// The symmetric heap. Every PE's part has a range of addresses in every process, with the same layout; memory is
// mapped into all of them when it is first needed.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "job.h"
#include "shoal/cuda.h"

namespace shoal::nvshmem {

constexpr uint64_t kNoOffset = ~uint64_t{0};

class Heap {
 public:
  Heap(Job& job, CUdevice device) : job_(job), device_(device) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Reserves addresses for all PEs. Both numbers must be the same on all of them. `step`: what the heap grows by
  // multiples of; 0 leaves that to it.
  bool open(uint64_t limit, uint64_t step, std::string& problem);

  // Both are called by all PEs, with the same arguments.
  void* allocate(const char* function, size_t size, size_t alignment);
  void free(void* pointer);
  // Makes a PE's own mapped memory a part of the heap; null with a text when one of them cannot.
  void* add(void* own, size_t size);
  int remove(void* added, size_t size);

  // Where an address of this PE lies in the heap; kNoOffset when the bytes are not all in it.
  uint64_t offsetOf(const void* address, size_t bytes) const;
  // The offset of any reserved address, with memory or without.
  uint64_t reservedOffsetOf(const void* address) const;
  char* at(int pe, uint64_t offset) const { return reinterpret_cast<char*>(bases_[static_cast<size_t>(pe)] + offset); }
  bool isMapped(uint64_t offset, size_t bytes) const;
  // The part of the heap, mapped as one, in which an address of this PE lies.
  bool findPart(const void* address, uint64_t& offset, uint64_t& start, uint64_t& size) const;
  // The length of each PE's range of addresses.
  uint64_t reserved() const { return 2 * limit_; }

 private:
  struct Part {
    uint64_t size;
    bool isAdded;
  };
  uint64_t take(uint64_t size, uint64_t alignment);
  void addFree(uint64_t offset, uint64_t size);
  bool grow(uint64_t bytes);
  // Maps each PE's memory at the offset of its part. All or none.
  bool share(CUmemGenericAllocationHandle own, bool isOwnMade, uint64_t offset, uint64_t size, const char* what);
  bool mapAt(int pe, uint64_t offset, uint64_t size, CUmemGenericAllocationHandle handle);

  Job& job_;
  const CUdevice device_;
  uint64_t limit_ = 0;
  uint64_t step_ = 0;
  uint64_t grown_ = 0;
  std::vector<CUdeviceptr> bases_;
  mutable std::mutex mutex_;           // of what follows
  std::map<uint64_t, Part> parts_;     // by offset
  std::map<uint64_t, uint64_t> free_;  // offset and size
  std::map<uint64_t, uint64_t> taken_;
};

}  // namespace shoal::nvshmem
