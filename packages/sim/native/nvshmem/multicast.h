// Multicast addresses, at which a write reaches a whole team. Each process creates its own on first use.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "heap.h"
#include "team.h"

namespace shoal::nvshmem {

class Multicast {
 public:
  Multicast(Heap& heap, CUdevice device) : heap_(heap), device_(device) {}
  ~Multicast();
  Multicast(const Multicast&) = delete;
  Multicast& operator=(const Multicast&) = delete;

  // `devices` is indexed by PE. Returns null if two PEs of the team share a device, or if multicast is off.
  void* find(const Team& team, const std::vector<int>& devices, const void* symmetric);
  // For a team that ends, and for a part of the heap that is removed.
  void forget(nvshmem_team_t team);
  void forgetPart(uint64_t offset);

 private:
  struct Range {
    CUdeviceptr base = 0;
    std::map<uint64_t, uint64_t> parts;  // offset and size of the mapped parts
  };
  bool map(const Team& team, const std::vector<int>& devices, CUdeviceptr address, uint64_t offset, uint64_t size);
  void release(Range& range);

  Heap& heap_;
  const CUdevice device_;
  std::mutex mutex_;
  std::map<nvshmem_team_t, Range> ranges_;
};

}  // namespace shoal::nvshmem
