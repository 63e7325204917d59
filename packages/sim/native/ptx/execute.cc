// Executes instructions. A split is a group of lanes at the same instruction. The split that is furthest behind runs,
// so that it meets the others where their paths join. A split that spins lets the others run, whatever their position.
// So nothing hangs that would not hang on hardware with independent thread scheduling.
#include <algorithm>
#include <cstring>

#include "async.h"
#include "decoder.h"
#include "launch.h"

namespace shoal::ptx {

namespace {

constexpr int kSpins = 64;  // backward branches of a split while other splits of its warp wait

uint32_t laneOf(const Warp& warp, uint32_t operand, int lane) {
  const uint8_t* base = (operand & kConstant) != 0 ? warp.constants : warp.registers;
  uint32_t value;
  memcpy(&value, base + (operand & ~kConstant) + 4 * lane, 4);
  return value;
}

// The lanes that the lanes of the mask want to synchronize with.
uint32_t membersOf(const Warp& warp, uint32_t operand, uint32_t mask) {
  uint32_t all = 0;
  for (; mask != 0; mask &= mask - 1) all |= laneOf(warp, operand, __builtin_ctz(mask));
  return all;
}

}  // namespace

void Worker::branchAway(Warp& warp, uint32_t mask, uint32_t pc, const Split& like) {
  Split other;
  other.mask = mask;
  other.pc = pc;
  other.frame = like.frame;
  other.turn = like.turn;
  ++other.frame->users;
  warp.splits.push_back(other);
}

// Merges splits that are at the same instruction of the same call.
void Worker::merge(Warp& warp) {
  auto& splits = warp.splits;
  for (size_t a = 0; a < splits.size(); ++a) {
    for (size_t b = a + 1; b < splits.size();) {
      Split &one = splits[a], &other = splits[b];
      if (one.pc == other.pc && one.frame == other.frame && one.wait == other.wait &&
          one.isReleased == other.isReleased && one.barrier == other.barrier) {
        one.mask |= other.mask;
        one.awaited |= other.awaited;
        one.turn = std::min(one.turn, other.turn);
        --other.frame->users;
        splits.erase(splits.begin() + static_cast<ptrdiff_t>(b));
      } else {
        ++b;
      }
    }
  }
}

// Chooses the split to run, or returns -1 if all wait.
int Worker::choose(Warp& warp) {
  auto& splits = warp.splits;
  if (splits.size() == 1 && splits[0].wait == Wait::ready) return 0;
  merge(warp);
  if (splits.size() == 1) splits[0].turn = 0;
  for (Split& each : splits) {
    if (each.wait == Wait::warp && (each.awaited & warp.live & ~each.mask) == 0) each.wait = Wait::ready;
  }
  int best = -1;
  for (size_t index = 0; index < splits.size(); ++index) {
    const Split& each = splits[index];
    if (each.wait != Wait::ready) continue;
    if (best < 0) {
      best = static_cast<int>(index);
      continue;
    }
    const Split& other = splits[static_cast<size_t>(best)];
    const auto rank = [](const Split& split) { return std::make_tuple(split.turn, ~split.frame->depth, split.pc); };
    if (rank(each) < rank(other)) best = static_cast<int>(index);
  }
  if (best >= 0) return best;
  // The awaited lanes all wait at such an instruction, but not at the same one. Let each continue with the lanes it
  // has.
  uint32_t waiting = 0;
  for (const Split& each : splits) waiting |= each.wait == Wait::warp ? each.mask : 0;
  for (size_t index = 0; index < splits.size(); ++index) {
    Split& each = splits[index];
    if (each.wait != Wait::warp || (each.awaited & warp.live & ~waiting) != 0) continue;
    each.wait = Wait::ready;
    each.isReleased = true;
    if (best < 0) best = static_cast<int>(index);
  }
  return best;
}

Outcome Worker::run(Warp& warp, int budget) {
  warp.ranges = ranges_.data();
  warp.worker = this;
  for (;;) {
    if (warp.splits.empty()) return Outcome::finished;
    const int chosen = choose(warp);
    if (chosen < 0) return Outcome::blocked;
    if (!runSplit(warp, static_cast<size_t>(chosen), budget))
      return warp.splits.empty() ? Outcome::finished : Outcome::yielded;
  }
}

#define SHOAL_FLOW inline __attribute__((always_inline))

// A running split. Its lanes and position are kept here, and saved to the split before other code reads them.
struct Worker::Turn {
  // `again`: the warp's turn continues with a newly chosen split.
  enum class Next : uint8_t { goOn, again, over };

  Worker& worker;
  Warp& warp;
  Split& split;
  const size_t index;
  const Instr* const code;
  int& budget;
  uint32_t mask, pc;
  uint32_t limit = ~0u;  // the next position of another split
  int spins = 0;

  void enter() {
    warp.registers = split.frame->registers;
    warp.localBase = split.frame->localBase;
    limit = ~0u;
    for (const Split& each : warp.splits) {
      if (&each != &split && each.frame == split.frame && each.pc > pc && each.pc < limit) limit = each.pc;
    }
  }
  void save() {
    split.pc = pc;
    split.mask = mask;
  }
  // The other lanes continue after the instruction in a new split.
  void keepOnly(uint32_t active) {
    if (active == mask) return;
    worker.branchAway(warp, mask & ~active, pc + 1, split);
    mask = active;
  }

  // All of these are inlined into one loop, so that their state stays in CPU registers.
  SHOAL_FLOW const Instr* runPlain(uint32_t& active);
  SHOAL_FLOW Next follow(const Instr& instr, uint32_t active);

  SHOAL_FLOW Next branch(const Instr& instr, uint32_t active);
  SHOAL_FLOW Next spin();
  SHOAL_FLOW Next branchIndexed(const Instr& instr, uint32_t active);
  SHOAL_FLOW Next call(const Instr& instr, uint32_t active);
  SHOAL_FLOW Next leaveFunction(uint32_t active);
  SHOAL_FLOW Next exit(uint32_t active);
  SHOAL_FLOW Next meetInWarp(const Instr& instr, uint32_t active);
  SHOAL_FLOW Next meetInBlock(const Instr& instr, uint32_t active);
  SHOAL_FLOW Next arriveAtCluster(uint32_t active);
  SHOAL_FLOW Next waitForCluster();
  SHOAL_FLOW Next lookAtPhase(const Instr& instr, uint32_t active);
  SHOAL_FLOW Next yield();
};

// Runs plain instructions. Returns the next instruction that is not plain, with its `active` lanes, or null at the
// position of another split.
const Instr* Worker::Turn::runPlain(uint32_t& active) {
  const uint32_t lanes = mask, end = limit;
  for (uint32_t at = pc; at < end; ++at) {
    const Instr& instr = code[at];
    active = lanes;
    if (instr.guard != 0) {
      uint32_t guard;
      memcpy(&guard, warp.registers + (instr.guard - 1), 4);
      active &= instr.isGuardNegated ? ~guard : guard;
    }
    if (active == 0) continue;
    split.pc = at;
    if (instr.flow != Flow::plain) {
      pc = at;
      return &instr;
    }
    instr.run(warp, instr, active);
  }
  pc = end;
  save();
  return nullptr;
}

Worker::Turn::Next Worker::Turn::follow(const Instr& instr, uint32_t active) {
  switch (instr.flow) {
    case Flow::plain: break;  // runPlain has already run it
    case Flow::branch: return branch(instr, active);
    case Flow::branchIndexed: return branchIndexed(instr, active);
    case Flow::call: return call(instr, active);
    case Flow::ret: return leaveFunction(active);
    case Flow::exit: return exit(active);
    case Flow::warpSync:
    case Flow::warpBarrier: return meetInWarp(instr, active);
    case Flow::barrier: return meetInBlock(instr, active);
    case Flow::clusterArrive: return arriveAtCluster(active);
    case Flow::clusterWait: return waitForCluster();
    case Flow::phaseWait:
    case Flow::phaseTest: return lookAtPhase(instr, active);
    case Flow::yield: return yield();
  }
  return Next::goOn;
}

Worker::Turn::Next Worker::Turn::branch(const Instr& instr, uint32_t active) {
  const uint32_t from = pc;
  if (active == mask) {
    pc = instr.target;
  } else {
    // Lanes with the lower target run first. They meet the others on the way, or wait where the paths join.
    const uint32_t fallen = mask & ~active;
    const bool isTakenFirst = instr.target <= pc + 1;
    worker.branchAway(warp, isTakenFirst ? fallen : active, isTakenFirst ? pc + 1 : instr.target, split);
    mask = isTakenFirst ? active : fallen;
    pc = isTakenFirst ? instr.target : pc + 1;
    warp.running = mask;
    save();
    enter();
  }
  if (pc <= from) return spin();
  if (limit == ~0u || pc <= limit) return Next::goOn;
  // The jump has skipped another split, so that split runs first.
  save();
  return Next::again;
}

// After a backward branch: gives other splits a turn, now or soon.
Worker::Turn::Next Worker::Turn::spin() {
  --budget;
  if (warp.splits.size() == 1) {
    if (budget > 0) return Next::goOn;
    save();
    return Next::over;
  }
  save();
  if (++spins >= kSpins) split.turn = ++warp.turn;
  if (spins >= kSpins || budget <= 0) return budget > 0 ? Next::again : Next::over;
  // Another split may have reached the same position in the meantime.
  for (const Split& each : warp.splits) {
    if (&each != &split && each.pc == pc && each.frame == split.frame && each.wait == Wait::ready) return Next::again;
  }
  enter();
  return Next::goOn;
}

Worker::Turn::Next Worker::Turn::branchIndexed(const Instr& instr, uint32_t active) {
  const auto& table = worker.launch.module->program.tables[instr.target];
  const uint32_t number = laneOf(warp, instr.to, __builtin_ctz(active));
  if (number >= table.size()) throw Fault{CUDA_ERROR_ILLEGAL_INSTRUCTION, "an indexed branch beyond its list"};
  uint32_t same = 0;
  for (uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    same |= static_cast<uint32_t>(laneOf(warp, instr.to, lane) == number) << lane;
  }
  // Lanes with another target run this instruction again.
  if ((active & ~same) != 0) worker.branchAway(warp, active & ~same, pc, split);
  if ((mask & ~active) != 0) worker.branchAway(warp, mask & ~active, pc + 1, split);
  mask = same;
  pc = table[number];
  --budget;
  save();
  if (budget <= 0) return Next::over;
  return warp.splits.size() > 1 ? Next::again : Next::goOn;
}

Worker::Turn::Next Worker::Turn::call(const Instr& instr, uint32_t active) {
  keepOnly(active);
  worker.call(warp, split, instr, mask, pc);
  warp.running = mask;
  save();
  if (--budget <= 0) return Next::over;
  enter();
  return Next::goOn;
}

Worker::Turn::Next Worker::Turn::leaveFunction(uint32_t active) {
  keepOnly(active);
  worker.returnFrom(warp, split, mask, pc);
  save();
  if (warp.splits.size() > 1) return Next::again;
  enter();
  return Next::goOn;
}

Worker::Turn::Next Worker::Turn::exit(uint32_t active) {
  mask &= ~active;
  save();
  if (mask == 0) {
    Frame* frame = split.frame;
    warp.splits.erase(warp.splits.begin() + static_cast<ptrdiff_t>(index));
    worker.release(frame);
    worker.exitLanes(warp, active);
    return Next::again;
  }
  worker.exitLanes(warp, active);
  warp.running = mask;
  ++pc;
  return Next::goOn;
}

Worker::Turn::Next Worker::Turn::meetInWarp(const Instr& instr, uint32_t active) {
  const uint32_t members = instr.flow == Flow::warpBarrier ? instr.b : instr.members;
  if (mask != warp.live && !split.isReleased) {
    const uint32_t awaited = membersOf(warp, members, active);
    if ((awaited & warp.live & ~mask) != 0) {
      save();
      split.wait = Wait::warp;
      split.awaited = awaited;
      return Next::again;
    }
  }
  split.isReleased = false;
  if (instr.flow == Flow::warpSync) instr.run(warp, instr, active);
  else if (warp.block->cluster->checker != nullptr)
    warp.block->cluster->checker->meetInWarp(warp, membersOf(warp, members, active), active);
  ++pc;
  return Next::goOn;
}

Worker::Turn::Next Worker::Turn::meetInBlock(const Instr& instr, uint32_t active) {
  if (split.isReleased) {
    split.isReleased = false;
    worker.finishBarrier(warp, instr, active);
    ++pc;
    return Next::goOn;
  }
  keepOnly(active);
  warp.running = mask;
  save();
  worker.arrive(warp, split, instr, mask);
  if (instr.barrierKind == 1) {
    ++pc;
    return Next::goOn;
  }
  return split.wait != Wait::ready || warp.splits.size() > 1 ? Next::again : Next::goOn;
}

Worker::Turn::Next Worker::Turn::arriveAtCluster(uint32_t active) {
  Cluster& cluster = *warp.block->cluster;
  cluster.arrived += static_cast<uint32_t>(__builtin_popcount(active));
  warp.clusterPhase = cluster.phase;
  ++pc;
  save();
  worker.checkClusterBarrier(cluster);
  return Next::goOn;
}

Worker::Turn::Next Worker::Turn::waitForCluster() {
  if (warp.block->cluster->phase > warp.clusterPhase) {
    ++pc;
    return Next::goOn;
  }
  save();
  split.wait = Wait::cluster;
  return Next::again;
}

Worker::Turn::Next Worker::Turn::lookAtPhase(const Instr& instr, uint32_t active) {
  const uint32_t ended = testPhase(warp, instr, active);
  const bool isTimeOver = split.isReleased;
  split.isReleased = false;
  // Sleep only if all lanes of the split wait for the phase. The others may be the ones that another split waits for.
  if (instr.flow == Flow::phaseWait && ended == 0 && active == mask && !isTimeOver) {
    save();
    split.wait = Wait::phase;
    return Next::again;
  }
  if (ended == 0) return yield();
  ++pc;
  return Next::goOn;
}

Worker::Turn::Next Worker::Turn::yield() {
  ++pc;
  save();
  split.turn = ++warp.turn;
  return Next::over;
}

// Returns false when the warp's turn is over.
bool Worker::runSplit(Warp& warp, size_t index, int& budget) {
  running_ = index;
  Split& split = warp.splits[index];
  Turn turn{*this, warp, split, index, launch.module->program.code.data(), budget, split.mask, split.pc};
  turn.enter();
  warp.running = turn.mask;
  for (;;) {
    uint32_t active;
    const Instr* instr = turn.runPlain(active);
    if (instr == nullptr) return true;
    const Turn::Next next = turn.follow(*instr, active);
    if (next != Turn::Next::goOn) return next == Turn::Next::again;
  }
}

void Worker::exitLanes(Warp& warp, uint32_t mask) {
  warp.live &= ~mask;
  Block& block = *warp.block;
  Cluster& cluster = *block.cluster;
  if (cluster.checker != nullptr) cluster.checker->settle();
  cluster.liveThreads -= static_cast<uint32_t>(__builtin_popcount(mask));
  if (warp.live == 0) --block.liveWarps;
  for (unsigned number = 0; number < 16; ++number) {
    if (block.barriers[number].isUsed) completeBarrier(block, number);
  }
  if (cluster.arrived != 0) checkClusterBarrier(cluster);
}

void Worker::arrive(Warp& warp, Split& split, const Instr& instr, uint32_t mask) {
  const int first = __builtin_ctz(mask);
  const uint32_t number = laneOf(warp, instr.a, first);
  if (number > 15) throw Fault{CUDA_ERROR_ILLEGAL_INSTRUCTION, "a barrier beyond the sixteenth"};
  Block& block = *warp.block;
  BlockBarrier& barrier = block.barriers[number];
  if (instr.b != kNoOperand) {
    const uint32_t threads = laneOf(warp, instr.b, first);
    if (threads == 0 || threads % kLanes != 0)
      throw Fault{CUDA_ERROR_ILLEGAL_INSTRUCTION, "a barrier for a number of threads that is no multiple of 32"};
    barrier.expectedWarps = threads / kLanes;
  }
  barrier.isUsed = true;
  if (instr.barrierKind >= 2) {
    const uint32_t is = (predicateOf(warp, instr.c) ^ (instr.isPredicateNegated ? ~0u : 0)) & mask;
    barrier.count += static_cast<uint32_t>(__builtin_popcount(is));
    barrier.isAll = barrier.isAll && is == mask;
    barrier.isAny = barrier.isAny || is != 0;
  }
  warp.arrived[number] |= mask;
  if (instr.barrierKind != 1) {
    split.wait = Wait::barrier;
    split.barrier = static_cast<uint8_t>(number);
  }
  completeBarrier(block, number);
}

void Worker::completeBarrier(Block& block, unsigned number) {
  BlockBarrier& barrier = block.barriers[number];
  uint32_t arrived = 0;
  for (Warp& each : block.warps) {
    if (each.arrived[number] == 0) continue;
    if ((each.live & ~each.arrived[number]) != 0) return;
    // A warp that has arrived and exited only counts if the barrier expects a number of threads.
    if (each.live != 0 || barrier.expectedWarps != 0) ++arrived;
  }
  if (arrived < (barrier.expectedWarps != 0 ? barrier.expectedWarps : block.liveWarps)) return;
  if (block.cluster->checker != nullptr) block.cluster->checker->meetInBlock(block, number);
  for (Warp& each : block.warps) {
    each.arrived[number] = 0;
    for (Split& split : each.splits) {
      if (split.wait != Wait::barrier || split.barrier != number) continue;
      split.wait = Wait::ready;
      split.isReleased = true;
      each.barrierCount = barrier.count;
      each.isBarrierAll = barrier.isAll;
      each.isBarrierAny = barrier.isAny;
    }
  }
  barrier = BlockBarrier();
}

void Worker::finishBarrier(Warp& warp, const Instr& instr, uint32_t mask) {
  if (instr.barrierKind < 2) return;
  uint8_t* at = warp.registers + instr.to;
  if (instr.barrierKind == 2) {
    for (; mask != 0; mask &= mask - 1) memcpy(at + 4 * __builtin_ctz(mask), &warp.barrierCount, 4);
    return;
  }
  uint32_t value;
  memcpy(&value, at, 4);
  const bool is = instr.barrierKind == 3 ? warp.isBarrierAll : warp.isBarrierAny;
  value = is ? value | mask : value & ~mask;
  memcpy(at, &value, 4);
}

void Worker::checkClusterBarrier(Cluster& cluster) {
  if (cluster.arrived < cluster.liveThreads || cluster.arrived == 0) return;
  cluster.arrived = 0;
  ++cluster.phase;
  if (cluster.checker != nullptr) cluster.checker->meetInCluster();
  for (Block& block : cluster.blocks) {
    for (Warp& warp : block.warps) {
      for (Split& split : warp.splits) {
        if (split.wait == Wait::cluster) split.wait = Wait::ready;
      }
    }
  }
}

}  // namespace shoal::ptx
