// Slow paths of address translation, and special registers.
#include <time.h>

#include <cstring>
#include <mutex>

#include "graph/devicelaunch.h"
#include "decoder.h"
#include "launch.h"

namespace shoal::ptx {

void failMisaligned(uint64_t address, unsigned size) {
  char text[96];
  snprintf(text, sizeof text, "a misaligned access of %u bytes at 0x%llx", size,
           static_cast<unsigned long long>(address));
  throw Fault{CUDA_ERROR_MISALIGNED_ADDRESS, text};
}

void failOutOfRange(const char* space, uint64_t address, unsigned size) {
  char text[128];
  snprintf(text, sizeof text, "an access of %u bytes at 0x%llx, outside of %s", size,
           static_cast<unsigned long long>(address), space);
  throw Fault{CUDA_ERROR_ILLEGAL_ADDRESS, text};
}

uint8_t* resolveGlobal(Warp& warp, Range& cached, uint64_t address, unsigned size, bool isWrite) {
  warp.block->launch->findRange(address, size, isWrite, cached);
  return reinterpret_cast<uint8_t*>(address);
}

uint8_t* resolveWindow(Warp& warp, int lane, uint64_t address, unsigned size, bool isWrite) {
  const uint64_t window = address & kWindowMask, offset = address & ~kWindowMask;
  if (window == kSharedWindow) {
    const uint64_t rank = offset >> kRankShift, at = offset & ((uint64_t{1} << kRankShift) - 1);
    if (at + size > warp.sharedBytes) failOutOfRange("shared memory", offset, size);
    if (rank == 0) return warp.shared + at;
    auto& blocks = warp.block->cluster->blocks;
    if (rank > blocks.size()) failOutOfRange("the shared memory of the cluster", offset, size);
    return blocks[rank - 1].shared + at;
  }
  if (window == kLocalWindow) {
    if (offset + size > warp.localStride) failOutOfRange("local memory", offset, size);
    return warp.local + static_cast<size_t>(lane) * warp.localStride + offset;
  }
  if (window == kParamWindow) {
    if (isWrite || offset + size > warp.parameterBytes) failOutOfRange("the parameters", offset, size);
    return const_cast<uint8_t*>(warp.parameters) + offset;
  }
  failOutOfRange("all memory", address, size);
}

namespace {

uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t component(const Dimensions& of, unsigned index) {
  return index == 0 ? of.x : index == 1 ? of.y : index == 2 ? of.z : 0;
}

}  // namespace

void readSpecial(Warp& warp, const Instr& instr, uint32_t mask) {
  const Block& block = *warp.block;
  const LaunchShape& shape = block.launch->shape;
  const Cluster& cluster = *block.cluster;
  const unsigned part = instr.count;
  const auto which = static_cast<Special>(instr.special);
  const auto bytes = static_cast<unsigned>(instr.imm);
  uint8_t* to = warp.registers + instr.to;
  auto each = [&](auto&& of) {
    for (; mask != 0; mask &= mask - 1) {
      const int lane = __builtin_ctz(mask);
      const uint64_t value[2] = {static_cast<uint64_t>(of(lane)), 0};
      memcpy(to + static_cast<size_t>(lane) * bytes, value, bytes);
    }
  };
  auto all = [&](uint64_t value) { each([value](int) { return value; }); };
  const uint32_t index[3] = {cluster.x, cluster.y, cluster.z};
  const uint32_t place[3] = {block.x % shape.cluster.x, block.y % shape.cluster.y, block.z % shape.cluster.z};
  const uint64_t total = uint64_t{block.launch->kernel.sharedBytes} + shape.dynamicSharedBytes;
  switch (which) {
    case Special::tid: {
      const uint32_t* from = part == 0 ? warp.threadX : part == 1 ? warp.threadY : warp.threadZ;
      if (bytes == 4 && part < 3) {
        memcpy(to, from, mask == warp.live ? sizeof warp.threadX : 0);
        if (mask == warp.live) return;
      }
      return each([&](int lane) { return part < 3 ? from[lane] : 0; });
    }
    case Special::ntid: return all(component(shape.block, part));
    case Special::ctaid: return all(part == 0 ? block.x : part == 1 ? block.y : part == 2 ? block.z : 0);
    case Special::nctaid: return all(component(shape.grid, part));
    case Special::laneid: return each([](int lane) { return static_cast<uint64_t>(lane); });
    case Special::warpid: return all(warp.index);
    case Special::nwarpid: return all(64);
    case Special::smid: return all(shape.multiprocessorOf(block.number));
    case Special::nsmid: return all(multiprocessorCount());
    case Special::gridid: return all(block.launch->id);
    case Special::clock:
    case Special::clock64: return all(nanoseconds());
    case Special::clockHigh: return all(nanoseconds() >> 32);
    case Special::globaltimer:
    case Special::globaltimerLow: return all(nanoseconds());
    case Special::globaltimerHigh: return all(nanoseconds() >> 32);
    case Special::maskEq: return each([](int lane) { return uint64_t{1} << lane; });
    case Special::maskLe: return each([](int lane) { return (uint64_t{2} << lane) - 1; });
    case Special::maskLt: return each([](int lane) { return (uint64_t{1} << lane) - 1; });
    case Special::maskGe: return each([](int lane) { return ~((uint64_t{1} << lane) - 1) & 0xffffffff; });
    case Special::maskGt: return each([](int lane) { return ~((uint64_t{2} << lane) - 1) & 0xffffffff; });
    case Special::dynamicShared: return all(shape.dynamicSharedBytes);
    case Special::totalShared:
    case Special::aggregateShared: return all(total);
    case Special::clusterid: return all(part < 3 ? index[part] : 0);
    case Special::nclusterid: return all(part < 3 ? component(shape.grid, part) / component(shape.cluster, part) : 0);
    case Special::clusterCtaid: return all(part < 3 ? place[part] : 0);
    case Special::clusterNctaid: return all(component(shape.cluster, part));
    case Special::clusterCtarank: return all(block.rank);
    case Special::clusterNctarank: return all(shape.cluster.count());
    case Special::isExplicitCluster: return all(shape.cluster.count() > 1 ? 1 : 0);
    // The system's part is at the end of shared memory. Cooperative groups keep barriers at the second offset.
    case Special::reservedBegin:
    case Special::reserved0: return all(warp.sharedBytes - kReservedSharedBytes);
    case Special::reserved1: return all(warp.sharedBytes - kReservedSharedBytes / 2);
    case Special::reservedEnd: return all(warp.sharedBytes);
    case Special::reservedCap: return all(kReservedSharedBytes);
    case Special::warpSize: return all(kLanes);
    case Special::graphExec: return all(block.launch->graphRun == nullptr ? 0 : block.launch->graphRun->handle());
    case Special::dynamicSharedBase: return all(block.launch->kernel.dynamicBase);
    default: {
      const auto number = static_cast<unsigned>(which) - static_cast<unsigned>(Special::envreg0);
      const auto workspace = reinterpret_cast<uint64_t>(
          block.launch->gridWorkspace.empty() ? nullptr : block.launch->gridWorkspace.data());
      if (which >= Special::envreg0 && number == 1) return all(workspace >> 32);
      if (which >= Special::envreg0 && number == 2) return all(workspace & 0xffffffff);
      return all(0);
    }
  }
}

void runTrap(Warp&, const Instr&, uint32_t) { throw Fault{CUDA_ERROR_LAUNCH_FAILED, "a trap"}; }

// Uses one lock per process, because few CPUs have a 128-bit atomic instruction that needs no library.
void swapWide(Warp& warp, const Instr& instr, uint32_t mask) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<size_t>(__builtin_ctz(mask));
    auto from = [&](uint32_t operand, size_t bytes) {
      return ((operand & kConstant) != 0 ? warp.constants : warp.registers) + (operand & ~kConstant) + bytes * lane;
    };
    uint64_t address = 0;
    memcpy(&address, from(instr.a, instr.isWide ? 8 : 4), instr.isWide ? 8 : 4);
    address += static_cast<uint64_t>(instr.imm);
    if (static_cast<Space>(instr.space) == Space::shared) address = kSharedWindow + (address & 0xffffffff);
    if (address % 16 != 0) failMisaligned(address, 16);
    Range& range = warp.ranges[instr.slot];
    uint8_t* at = (address & kWindowMask) != 0 ? resolveWindow(warp, static_cast<int>(lane), address, 16, true)
                                               : resolveGlobal(warp, range, address, 16, true);
    if (isChecking()) {
      warp.checkedLane = static_cast<int>(lane);
      checkAccess(warp, instr, warp.checkedLane, at, 16, true);
      warp.checkedLane = -1;
    }
    uint8_t old[16], given[16];
    memcpy(old, at, 16);
    memcpy(given, from(instr.b, 16), 16);
    if (instr.count == 1) memcpy(at, given, 16);
    else if (memcmp(old, given, 16) == 0) memcpy(at, from(instr.c, 16), 16);
    if (instr.keepsOld) memcpy(warp.registers + instr.to + 16 * lane, old, 16);
  }
}

}  // namespace shoal::ptx
