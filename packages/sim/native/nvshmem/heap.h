// The symmetric heap. Every process reserves an address range for each PE's part, with equal layout. Memory is mapped
// into all ranges when it is first needed.
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

  // Reserves addresses for all PEs. Both numbers must be equal on all PEs. The heap grows in multiples of `step`; 0
  // uses a default.
  bool open(uint64_t limit, uint64_t step, std::string& problem);

  // All PEs must call both, with equal arguments.
  void* allocate(const char* function, size_t size, size_t alignment);
  void free(void* pointer);
  // Adds a PE's own mapped memory to the heap. Returns null and reports the reason if one of the PEs cannot.
  void* add(void* own, size_t size);
  int remove(void* added, size_t size);

  // The offset of an address of this PE in the heap, or kNoOffset if not all bytes are in the heap.
  uint64_t offsetOf(const void* address, size_t bytes) const;
  // The offset of any reserved address, with or without memory.
  uint64_t reservedOffsetOf(const void* address) const;
  char* at(int pe, uint64_t offset) const { return reinterpret_cast<char*>(bases_[static_cast<size_t>(pe)] + offset); }
  bool isMapped(uint64_t offset, size_t bytes) const;
  // Finds the part of the heap, mapped as one piece, that contains an address of this PE.
  bool findPart(const void* address, uint64_t& offset, uint64_t& start, uint64_t& size) const;
  // The length of each PE's address range.
  uint64_t reserved() const { return 2 * limit_; }

 private:
  struct Part {
    uint64_t size;
    bool isAdded;
  };
  uint64_t take(uint64_t size, uint64_t alignment);
  void addFree(uint64_t offset, uint64_t size);
  bool grow(uint64_t bytes);
  // Maps each PE's memory at the offset of its part. Maps all or none.
  bool share(CUmemGenericAllocationHandle own, bool isOwnMade, uint64_t offset, uint64_t size, const char* what);
  bool mapAt(int pe, uint64_t offset, uint64_t size, CUmemGenericAllocationHandle handle);

  Job& job_;
  const CUdevice device_;
  uint64_t limit_ = 0;
  uint64_t step_ = 0;
  uint64_t grown_ = 0;
  std::vector<CUdeviceptr> bases_;
  mutable std::mutex mutex_;           // guards the members below
  std::map<uint64_t, Part> parts_;     // by offset
  std::map<uint64_t, uint64_t> free_;  // offset and size
  std::map<uint64_t, uint64_t> taken_;
};

}  // namespace shoal::nvshmem
