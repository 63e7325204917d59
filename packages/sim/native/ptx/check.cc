#include "check.h"

#include <algorithm>
#include <cstring>

#include "launch.h"
#include "unwritten.h"

namespace shoal::ptx {

namespace {

// With more released addresses than this, the checker treats all accesses as ordered until the block's threads meet
// again.
constexpr size_t kMostReleased = 4096;

uint32_t threadOf(const Warp& warp, int lane) { return warp.index * kLanes + static_cast<uint32_t>(lane); }

}  // namespace

Checker::Checker(Launch& launch, Cluster& cluster)
    : launch_(launch),
      cluster_(cluster),
      threads_(static_cast<uint32_t>(launch.shape.block.count())),
      blocks_(cluster.blocks.size()) {}

void Checker::start() {
  rewritten_.clear();
  for (OfBlock& block : blocks_) block = OfBlock();
  now_ = 1;
  met_ = 0;
}

void Checker::join(Times& to, const Times& from) {
  for (size_t index = 0; index < from.size(); ++index) to[index] = std::max(to[index], from[index]);
}

Checker::Times& Checker::timesOf(OfBlock& block, uint32_t thread) {
  if (block.known.empty()) block.known.resize(threads_);
  Times& times = block.known[thread];
  if (times.empty()) times.resize(threads_);
  return times;
}

std::string Checker::placeOf(const Access& access) const {
  const Block& block = cluster_.blocks[access.thread >> 10];
  const uint32_t thread = access.thread & 1023;
  return describePlace(launch_, block.warps[thread / kLanes], static_cast<int>(thread % kLanes), access.pc, true);
}

bool Checker::isOrdered(const Access& before, uint16_t thread) const {
  if (before.thread == thread || before.time < met_) return true;
  const OfBlock& block = blocks_[thread >> 10];
  // Between blocks, the checker only tracks cluster barriers. An acquire by the block counts as ordering.
  if ((before.thread >> 10) != (thread >> 10)) return block.hasAcquired;
  if (before.time < block.met || block.released.size() > kMostReleased) return true;
  if (block.known.empty()) return false;
  const Times& times = block.known[thread & 1023];
  return !times.empty() && before.time <= times[before.thread & 1023];
}

bool Checker::isRace(const Access& before, uint16_t thread, bool isStrong) const {
  return before.thread != kNobody && !(before.isStrong && isStrong) && !isOrdered(before, thread);
}

std::string Checker::raceOf(const Access& before, const char* how, size_t at, bool isWrite) const {
  return "a race: byte " + std::to_string(at) + " of shared memory is " + (isWrite ? "written" : "read") +
         " here and was " + how + " by " + placeOf(before) + ", with no barrier between";
}

void Checker::settle() {
  for (const Rewritten& each : rewritten_) {
    if (*each.at != each.before) throw Fault{CUDA_ERROR_LAUNCH_FAILED, rewriting_, true};
  }
  rewritten_.clear();
}

void Checker::access(Warp& warp, const Instr& instr, int lane, const uint8_t* at, unsigned size, bool isWrite) {
  settle();
  const bool isAtomic = (instr.order & kAtomic) != 0, isStrong = (instr.order & kStrong) != 0;
  const Block& own = *warp.block;
  OfBlock& ownState = blocks_[own.rank];
  const Block* target = nullptr;
  // The system's part starts as zeroes, and only code that knows its layout uses it.
  const uint32_t shared = warp.sharedBytes - (launch_.module->program.usesReservedShared ? kReservedSharedBytes : 0);
  for (const Block& each : cluster_.blocks) {
    if (at >= each.shared && at < each.shared + shared) target = &each;
  }
  if (isStrong) synchronise(ownState, threadOf(warp, lane), at, instr.order, isWrite);
  if (target == nullptr) {
    if (isWrite && !isAtomic) return;
    const auto localBytes = own.warps.size() * kLanes * warp.localStride;
    if (own.local != nullptr && at >= own.local && at < own.local + localBytes) return;
    if (at >= warp.parameters && at < warp.parameters + warp.parameterBytes) return;
    const auto first = reinterpret_cast<uint64_t>(at) & ~uint64_t{7};
    for (uint64_t word = first; word < reinterpret_cast<uint64_t>(at) + size; word += 8) {
      uint64_t value;
      memcpy(&value, reinterpret_cast<const void*>(word), 8);
      if (value != kUnwritten) continue;
      char text[96];
      snprintf(text, sizeof text, "a read of %u bytes of global memory at 0x%llx, which nobody wrote", size,
               static_cast<unsigned long long>(reinterpret_cast<uint64_t>(at)));
      throw Fault{CUDA_ERROR_LAUNCH_FAILED, text};
    }
    return;
  }
  OfBlock& state = blocks_[target->rank];
  if (state.bytes.empty()) state.bytes.resize(warp.sharedBytes);
  const auto thread = static_cast<uint16_t>(own.rank << 10 | threadOf(warp, lane));
  const auto pc = static_cast<uint32_t>(&instr - launch_.module->program.code.data());
  const auto start = static_cast<size_t>(at - target->shared);
  for (size_t index = start; index < start + size; ++index) {
    Byte& byte = state.bytes[index];
    if ((!isWrite || isAtomic) && !byte.isWritten) {
      throw Fault{CUDA_ERROR_LAUNCH_FAILED, "a read of " + std::to_string(size) + " bytes of shared memory at " +
                                                std::to_string(start) + ", which nobody wrote"};
    }
    const Access now{now_, pc, thread, isStrong};
    if (isRace(byte.write, thread, isStrong)) {
      if (!isWrite || isAtomic) throw Fault{CUDA_ERROR_LAUNCH_FAILED, raceOf(byte.write, "written", index, isWrite)};
      if (rewritten_.empty())
        rewriting_ = describePlace(launch_, warp, lane, pc, false) + ": " + raceOf(byte.write, "written", index, true);
      rewritten_.push_back({target->shared + index, target->shared[index]});
    }
    if (isWrite) {
      for (const Access* read : {&byte.read, &byte.otherRead}) {
        if (isRace(*read, thread, isStrong)) throw Fault{CUDA_ERROR_LAUNCH_FAILED, raceOf(*read, "read", index, true)};
      }
      byte.write = now;
      byte.read = byte.otherRead = Access();
      byte.isWritten = true;
    } else {
      if (byte.read.thread != thread) byte.otherRead = byte.read;
      byte.read = now;
    }
  }
}

// Strong operations pass on ordering. A write releases the accesses before its thread's last fence, or all earlier
// accesses with .release. A read acquires them at the next fence, or at once with .acquire.
void Checker::synchronise(OfBlock& block, uint32_t thread, const uint8_t* at, uint8_t order, bool isWrite) {
  if (!isWrite || (order & kAtomic) != 0) {
    auto found = block.released.find(at);
    if (found != block.released.end()) {
      if ((order & kAcquire) != 0) {
        join(timesOf(block, thread), found->second);
        block.hasAcquired = true;
      } else {
        if (block.seen.empty()) block.seen.resize(threads_);
        Times& seen = block.seen[thread];
        if (seen.empty()) seen.resize(threads_);
        join(seen, found->second);
      }
    }
  }
  if (!isWrite) return;
  const uint32_t until = (order & kRelease) != 0 ? now_++ : block.fenced.empty() ? 0 : block.fenced[thread];
  if (until == 0 || block.released.size() > kMostReleased) return;
  Times& released = block.released[at];
  if (released.empty()) released.resize(threads_);
  join(released, timesOf(block, thread));
  released[thread] = std::max(released[thread], until);
}

void Checker::arrive(Warp& warp, int lane, const uint8_t* at) {
  synchronise(blocks_[warp.block->rank], threadOf(warp, lane), at, kRelease, true);
}

void Checker::await(Warp& warp, int lane, const uint8_t* at) {
  OfBlock& block = blocks_[warp.block->rank];
  synchronise(block, threadOf(warp, lane), at, kAcquire, false);
  block.hasAcquired = true;
}

void Checker::fence(Warp& warp, uint32_t mask) {
  settle();
  OfBlock& block = blocks_[warp.block->rank];
  if (block.fenced.empty()) block.fenced.resize(threads_);
  for (; mask != 0; mask &= mask - 1) {
    const uint32_t thread = threadOf(warp, __builtin_ctz(mask));
    block.fenced[thread] = now_;
    if (!block.seen.empty() && !block.seen[thread].empty()) join(timesOf(block, thread), block.seen[thread]);
  }
  block.hasAcquired = true;
  ++now_;
}

void Checker::meetInWarp(Warp& warp, uint32_t members, uint32_t mask) {
  settle();
  OfBlock& block = blocks_[warp.block->rank];
  if (block.bytes.empty()) return;
  Times all(threads_);
  members &= warp.live;
  for (uint32_t rest = members; rest != 0; rest &= rest - 1) {
    const uint32_t thread = threadOf(warp, __builtin_ctz(rest));
    if (!block.known.empty() && !block.known[thread].empty()) join(all, block.known[thread]);
  }
  for (uint32_t rest = members; rest != 0; rest &= rest - 1) all[threadOf(warp, __builtin_ctz(rest))] = now_;
  for (; mask != 0; mask &= mask - 1) timesOf(block, threadOf(warp, __builtin_ctz(mask))) = all;
  ++now_;
}

void Checker::meetInBlock(Block& block, unsigned number) {
  settle();
  OfBlock& state = blocks_[block.rank];
  const bool isWhole = block.barriers[number].expectedWarps == 0;
  const auto& code = launch_.module->program.code;
  const Warp* waiting = nullptr;
  const Split* waitingSplit = nullptr;
  bool haveAllCome = true;
  for (Warp& warp : block.warps) {
    haveAllCome = haveAllCome && (warp.live & ~warp.arrived[number]) == 0;
    const Split* first = nullptr;
    for (const Split& split : warp.splits) {
      if (split.wait != Wait::barrier || split.barrier != number) continue;
      if (first != nullptr && first->pc != split.pc && code[split.pc].order != 0) {
        const std::string other = describePlace(launch_, warp, __builtin_ctz(split.mask), split.pc, true);
        throw Fault{CUDA_ERROR_LAUNCH_FAILED,
                    describePlace(launch_, warp, __builtin_ctz(first->mask), first->pc, false) +
                        ": a barrier that not all threads reach: " + other + " waits at another one",
                    true};
      }
      first = &split;
      if (waiting == nullptr) waiting = &warp, waitingSplit = &split;
    }
  }
  if (isWhole && waiting != nullptr) {
    for (const Warp& warp : block.warps) {
      const uint32_t left = threads_ - warp.index * kLanes, lanes = left >= kLanes ? ~0u : (1u << left) - 1;
      const uint32_t ended = lanes & ~warp.live & ~warp.arrived[number];
      if (ended == 0) continue;
      char text[64];
      const int lane = __builtin_ctz(ended);
      snprintf(text, sizeof text, "thread (%u, %u, %u)", warp.threadX[lane], warp.threadY[lane], warp.threadZ[lane]);
      throw Fault{CUDA_ERROR_LAUNCH_FAILED,
                  describePlace(launch_, *waiting, __builtin_ctz(waitingSplit->mask), waitingSplit->pc, false) +
                      ": a barrier that not all threads reach: " + text + " ended before it",
                  true};
    }
  }
  if (state.bytes.empty()) return;
  if (haveAllCome) {
    state.met = ++now_;
    state.released.clear();
    state.fenced.clear();
    state.seen.clear();
    return;
  }
  Times all(threads_);
  auto eachCome = [&](auto&& of) {
    for (Warp& warp : block.warps) {
      for (uint32_t rest = warp.arrived[number]; rest != 0; rest &= rest - 1) of(threadOf(warp, __builtin_ctz(rest)));
    }
  };
  eachCome([&](uint32_t thread) {
    if (!state.known.empty() && !state.known[thread].empty()) join(all, state.known[thread]);
  });
  eachCome([&](uint32_t thread) { all[thread] = now_; });
  for (Warp& warp : block.warps) {
    for (const Split& split : warp.splits) {
      if (split.wait != Wait::barrier || split.barrier != number) continue;
      for (uint32_t rest = split.mask; rest != 0; rest &= rest - 1)
        join(timesOf(state, threadOf(warp, __builtin_ctz(rest))), all);
    }
  }
  ++now_;
}

void Checker::meetInCluster() { met_ = ++now_; }

void checkAccess(Warp& warp, const Instr& instr, int lane, const uint8_t* at, unsigned size, bool isWrite) {
  warp.block->cluster->checker->access(warp, instr, lane, at, size, isWrite);
}

void runCheckedFence(Warp& warp, const Instr&, uint32_t mask) { warp.block->cluster->checker->fence(warp, mask); }

}  // namespace shoal::ptx
