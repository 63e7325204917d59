// Translates lane addresses to host memory.
#pragma once

#include "lanes.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

SHOAL_INLINE uint64_t addressOf(const Warp& warp, const Instr& instr, uint32_t operand, int lane) {
  const uint64_t base = instr.isWide ? input<uint64_t>(warp, operand)[lane] : input<uint32_t>(warp, operand)[lane];
  return base + static_cast<uint64_t>(instr.imm) + (instr.isFrameRelative ? warp.localBase : 0);
}

// The memory of one lane. The address must be a multiple of `size`.
template <Space space>
SHOAL_INLINE uint8_t* foundMemory(Warp& warp, const Instr& instr, Range& range, int lane, uint64_t address,
                                  unsigned size, bool isWrite) {
  if (__builtin_expect((address & (size - 1)) != 0, 0)) failMisaligned(address, size);
  if (space == Space::shared) {
    if (__builtin_expect(address + size > warp.sharedBytes || address > warp.sharedBytes, 0))
      return resolveWindow(warp, lane, kSharedWindow + (address & 0xffffffff), size, isWrite);
    return warp.shared + address;
  }
  if (space == Space::local) {
    if (__builtin_expect(address + size > warp.localStride || address > warp.localStride, 0))
      failOutOfRange("local", address, size);
    return warp.local + static_cast<size_t>(lane) * warp.localStride + address;
  }
  if (__builtin_expect(address >= range.base && address <= range.end && size <= range.end - address &&
                           (!isWrite || range.isWritable),
                       1))
    return reinterpret_cast<uint8_t*>(address);
  (void)instr;
  if ((address & kWindowMask) != 0) return resolveWindow(warp, lane, address, size, isWrite);
  return resolveGlobal(warp, range, address, size, isWrite);
}

template <Space space>
SHOAL_INLINE uint8_t* memoryOf(Warp& warp, const Instr& instr, Range& range, int lane, uint64_t address, unsigned size,
                               bool isWrite) {
#ifdef SHOAL_CHECK
  warp.checkedLane = lane;
  uint8_t* at = foundMemory<space>(warp, instr, range, lane, address, size, isWrite);
  if (space != Space::local) checkAccess(warp, instr, lane, at, size, isWrite);
  warp.checkedLane = -1;
  return at;
#else
  return foundMemory<space>(warp, instr, range, lane, address, size, isWrite);
#endif
}

// The memory of all lanes if it is contiguous, which is the common case; null otherwise.
template <Space space>
SHOAL_INLINE uint8_t* contiguous(Warp& warp, const Instr& instr, uint32_t mask, uint32_t operand, unsigned size,
                                 bool isWrite) {
#ifdef SHOAL_CHECK
  return nullptr;
#endif
  if (mask != ~0u || space == Space::local) return nullptr;
  uint64_t first;
  bool is = true;
  if (instr.isWide) {
    const uint64_t* a = input<uint64_t>(warp, operand);
    first = a[0];
    uint64_t differs = 0;
    for (int lane = 0; lane < kLanes; ++lane) differs |= (a[lane] - first) ^ (static_cast<uint64_t>(lane) * size);
    is = differs == 0;
  } else {
    const uint32_t* a = input<uint32_t>(warp, operand);
    first = a[0];
    uint32_t differs = 0;
    for (int lane = 0; lane < kLanes; ++lane) differs |= (a[lane] - a[0]) ^ (static_cast<uint32_t>(lane) * size);
    is = differs == 0;
  }
  if (!is) return nullptr;
  const uint64_t address = first + static_cast<uint64_t>(instr.imm);
  if ((address & (size - 1)) != 0) return nullptr;
  if (space == Space::shared)
    return address + uint64_t{size} * kLanes <= warp.sharedBytes && address < warp.sharedBytes ? warp.shared + address
                                                                                               : nullptr;
  const Range& range = warp.ranges[instr.slot];
  if (address < range.base || address > range.end || uint64_t{size} * kLanes > range.end - address ||
      (isWrite && !range.isWritable))
    return nullptr;
  return reinterpret_cast<uint8_t*>(address);
}

template <Space space, class F>
SHOAL_INLINE void eachAddress(Warp& warp, const Instr& instr, uint32_t mask, uint32_t operand, unsigned size,
                              bool isWrite, F&& of) {
  Range& range = warp.ranges[instr.slot];
  eachSet(mask, [&](int lane) {
    of(lane, memoryOf<space>(warp, instr, range, lane, addressOf(warp, instr, operand, lane), size, isWrite));
  });
}

}  // namespace

}  // namespace shoal::ptx::SHOAL_LANES
