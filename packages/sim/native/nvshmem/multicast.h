// Addresses at which a write reaches a whole team. Each process makes its own, when they are first asked for.
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

  // `devices` by PE. Null where the team has no such addresses: two of its PEs are on one device, or multicast is off.
  void* find(const Team& team, const std::vector<int>& devices, const void* symmetric);
  // Of a team that ends, and of a part of the heap that goes.
  void forget(nvshmem_team_t team);
  void forgetPart(uint64_t offset);

 private:
  struct Range {
    CUdeviceptr base = 0;
    std::map<uint64_t, uint64_t> parts;  // offset and size of what is mapped
  };
  bool map(const Team& team, const std::vector<int>& devices, CUdeviceptr address, uint64_t offset, uint64_t size);
  void release(Range& range);

  Heap& heap_;
  const CUdevice device_;
  std::mutex mutex_;
  std::map<nvshmem_team_t, Range> ranges_;
};

}  // namespace shoal::nvshmem
