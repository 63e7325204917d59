// The shape of a launch: its blocks, its threads, and the multiprocessors that blocks may use.
#pragma once

#include <cstdint>

#include "core/multiprocessors.h"

namespace shoal::ptx {

struct Dimensions {
  unsigned x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct LaunchShape {
  Dimensions grid, block, cluster;
  unsigned dynamicSharedBytes = 0;
  bool isCooperative = false;
  Multiprocessors multiprocessors;  // blocks may run on these; if empty, on all
  unsigned countOfMultiprocessors() const {
    return multiprocessors.none() ? multiprocessorCount() : static_cast<unsigned>(multiprocessors.count());
  }
  bool isWhole() const { return countOfMultiprocessors() == multiprocessorCount(); }
  // The multiprocessor of a block, assigned round-robin.
  unsigned multiprocessorOf(uint64_t block) const {
    auto skip = static_cast<unsigned>(block % countOfMultiprocessors());
    if (multiprocessors.none()) return skip;
    unsigned found = 0;
    while (!multiprocessors[found] || skip-- > 0) ++found;
    return found;
  }
};

}  // namespace shoal::ptx
