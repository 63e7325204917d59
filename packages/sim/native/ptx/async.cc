// mbarrier and asynchronous copies. Here, a copy completes at the instruction that starts it.
#include "async.h"

#include <cstring>

#include "decoder.h"
#include "launch.h"

// The same 16-bit float arithmetic as in the lane loops.
#define SHOAL_LANES plain
#include "lanes/real.h"

namespace shoal::ptx {

namespace {

uint64_t laneOf(const Warp& warp, uint32_t operand, unsigned bytes, int lane) {
  const uint8_t* base = (operand & kConstant) != 0 ? warp.constants : warp.registers;
  uint64_t value = 0;
  memcpy(&value, base + (operand & ~kConstant) + bytes * static_cast<unsigned>(lane), bytes);
  return value;
}

void setLane(Warp& warp, uint32_t operand, unsigned bytes, int lane, uint64_t value) {
  if (operand != kNoneGiven) memcpy(warp.registers + operand + bytes * static_cast<unsigned>(lane), &value, bytes);
}

template <class F>
void eachLane(uint32_t mask, F&& of) {
  for (; mask != 0; mask &= mask - 1) of(__builtin_ctz(mask));
}

// Finds the memory behind a generic address.
uint8_t* memoryAt(Warp& warp, const Instr& instr, int lane, uint64_t address, unsigned size, unsigned alignment,
                  bool isWrite) {
  if (address % alignment != 0) failMisaligned(address, alignment);
  if ((address & kWindowMask) != 0) return resolveWindow(warp, lane, address, size, isWrite);
  Range& range = warp.ranges[instr.slot];
  if (address < range.base || address > range.end || size > range.end - address || (isWrite && !range.isWritable))
    return resolveGlobal(warp, range, address, size, isWrite);
  return reinterpret_cast<uint8_t*>(address);
}
uint8_t* sharedAt(Warp& warp, int lane, uint64_t address, unsigned size, unsigned alignment) {
  if ((address & kWindowMask) != kSharedWindow) failOutOfRange("shared memory", address, size);
  if (address % alignment != 0) failMisaligned(address, alignment);
  return resolveWindow(warp, lane, address, size, true);
}

// Reports the access to the checker, if it is on.
void note(Warp& warp, const Instr& instr, int lane, const uint8_t* at, unsigned size, bool isWrite) {
  if (warp.block->cluster->checker == nullptr) return;
  warp.checkedLane = lane;
  checkAccess(warp, instr, lane, at, size, isWrite);
  warp.checkedLane = -1;
}

uint64_t addressFrom(const Warp& warp, const uint32_t* words, int lane) {
  const uint64_t base = laneOf(warp, words[addressOperand], words[addressIsWide] != 0 ? 8 : 4, lane) +
                        static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(words[addressOffset])));
  if (words[addressIsFrame] != 0) return kLocalWindow + base + warp.localBase;
  return words[addressIsShared] != 0 ? kSharedWindow + (base & 0xffffffff) : base;
}

constexpr uint64_t kMostCount = (1 << 20) - 1;

// The 64 bits of a barrier. A phase ends when no arrival is pending and all expected bytes have come.
struct Phase {
  uint64_t bits;
  uint64_t pending, expected;
  int64_t bytes;
  bool isOdd;

  explicit Phase(uint64_t from)
      : bits(from),
        pending(from & kMostCount),
        expected(from >> 20 & kMostCount),
        bytes(static_cast<int64_t>(from << 2) >> 42),
        isOdd(from >> 62 != 0) {}
  uint64_t packed() const {
    return pending | expected << 20 | (static_cast<uint64_t>(bytes) & 0x3fffff) << 40 | uint64_t{isOdd} << 62;
  }
};

// Writes the barrier back. If the phase has ended, wakes the splits that wait for it.
void finish(Warp& warp, uint8_t* at, Phase& phase) {
  const bool hasEnded = phase.pending == 0 && phase.bytes == 0;
  if (hasEnded) {
    phase.pending = phase.expected;
    phase.isOdd = !phase.isOdd;
  }
  const uint64_t bits = phase.packed();
  memcpy(at, &bits, 8);
  if (!hasEnded) return;
  for (Block& block : warp.block->cluster->blocks) {
    for (Warp& each : block.warps) {
      for (Split& split : each.splits) {
        if (split.wait == Wait::phase) split.wait = Wait::ready;
      }
    }
  }
}

Phase phaseAt(const uint8_t* at) {
  uint64_t bits;
  memcpy(&bits, at, 8);
  return Phase(bits);
}

void expectBytes(Phase& phase, int64_t bytes) {
  phase.bytes += bytes;
  if (phase.bytes > static_cast<int64_t>(kMostCount) || phase.bytes < -static_cast<int64_t>(kMostCount))
    throw Fault{CUDA_ERROR_ILLEGAL_INSTRUCTION, "an mbarrier that awaits too many bytes"};
}

void completeBytes(Warp& warp, int lane, uint64_t address, uint64_t bytes) {
  uint8_t* at = sharedAt(warp, lane, address, 8, 8);
  if (warp.block->cluster->checker != nullptr) warp.block->cluster->checker->arrive(warp, lane, at);
  Phase phase = phaseAt(at);
  expectBytes(phase, -static_cast<int64_t>(bytes));
  finish(warp, at, phase);
}

uint64_t barrierAddress(const Warp& warp, const Instr& instr, int lane) {
  const uint64_t address = laneOf(warp, instr.a, instr.isWide ? 8 : 4, lane) + static_cast<uint64_t>(instr.imm);
  if (instr.isShared) return kSharedWindow + (address & 0xffffffff);
  if ((address & kWindowMask) != kSharedWindow)
    throw Fault{CUDA_ERROR_ILLEGAL_INSTRUCTION, "an mbarrier outside of shared memory"};
  return address;
}

}  // namespace

void runBarrier(Warp& warp, const Instr& instr, uint32_t mask) {
  const auto op = static_cast<BarrierOp>(instr.asyncOp);
  eachLane(mask, [&](int lane) {
    if (op == BarrierOp::pendingCount)
      return setLane(warp, instr.to, 4, lane, Phase(laneOf(warp, instr.b, 8, lane)).pending);
    uint8_t* at = sharedAt(warp, lane, barrierAddress(warp, instr, lane), 8, 8);
    Phase phase = phaseAt(at);
    const uint64_t number = instr.b == kNoneGiven ? 1 : laneOf(warp, instr.b, 4, lane);
    const bool isExpecting = op == BarrierOp::arriveExpect || op == BarrierOp::arriveDropExpect;
    switch (op) {
      case BarrierOp::init:
        if (number == 0 || number > kMostCount)
          throw Fault{CUDA_ERROR_ILLEGAL_INSTRUCTION, "an mbarrier for no threads, or too many"};
        phase = Phase(number | number << 20);
        break;
      case BarrierOp::invalidate: phase = Phase(0); break;
      case BarrierOp::expect: expectBytes(phase, static_cast<int64_t>(number)); break;
      case BarrierOp::complete: expectBytes(phase, -static_cast<int64_t>(number)); break;
      case BarrierOp::check: return;
      default: {
        const uint64_t count = isExpecting ? 1 : number;
        if (isExpecting) expectBytes(phase, static_cast<int64_t>(number));
        if (count > phase.pending)
          throw Fault{CUDA_ERROR_ILLEGAL_INSTRUCTION, "more arrivals at an mbarrier than it awaits"};
        setLane(warp, instr.to, 8, lane, phase.bits);
        phase.pending -= count;
        if (op == BarrierOp::arriveDrop || op == BarrierOp::arriveDropExpect) phase.expected -= count;
      }
    }
    if (warp.block->cluster->checker != nullptr) warp.block->cluster->checker->arrive(warp, lane, at);
    if (op != BarrierOp::init && op != BarrierOp::invalidate) return finish(warp, at, phase);
    const uint64_t bits = phase.packed();
    memcpy(at, &bits, 8);
  });
}

uint32_t testPhase(Warp& warp, const Instr& instr, uint32_t mask) {
  const bool isParity = static_cast<BarrierOp>(instr.asyncOp) == BarrierOp::testParity;
  uint32_t ended = 0;
  eachLane(mask, [&](int lane) {
    const bool wanted =
        isParity ? (laneOf(warp, instr.b, 4, lane) & 1) != 0 : Phase(laneOf(warp, instr.b, 8, lane)).isOdd;
    const uint8_t* at = sharedAt(warp, lane, barrierAddress(warp, instr, lane), 8, 8);
    if (phaseAt(at).isOdd == wanted) return;
    ended |= 1u << lane;
    if (warp.block->cluster->checker != nullptr) warp.block->cluster->checker->await(warp, lane, at);
  });
  if (instr.to != kNoneGiven) {
    const uint32_t bits = (predicateOf(warp, instr.to) & ~mask) | ended;
    memcpy(warp.registers + instr.to, &bits, 4);
  }
  return ended;
}

void copySmall(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* words = warp.operands + instr.target;
  const unsigned bytes = words[copyBytes];
  const uint32_t ignored = words[copyIgnored] == kNoneGiven
                               ? 0
                               : predicateOf(warp, words[copyIgnored]) ^ (words[copyIsIgnoredNegated] != 0 ? ~0u : 0);
  eachLane(mask, [&](int lane) {
    uint8_t value[16] = {};
    uint64_t given = words[copySourceBytes] == kNoneGiven ? bytes : laneOf(warp, words[copySourceBytes], 4, lane);
    if ((ignored >> lane & 1) != 0) given = 0;
    if (given > bytes) given = bytes;
    const uint64_t from = addressFrom(warp, words + copyFrom, lane);
    if (from % bytes != 0) failMisaligned(from, bytes);
    if (given != 0) {
      const uint8_t* source = memoryAt(warp, instr, lane, from, static_cast<unsigned>(given), 1, false);
      note(warp, instr, lane, source, static_cast<unsigned>(given), false);
      memcpy(value, source, given);
    }
    uint8_t* to = sharedAt(warp, lane, addressFrom(warp, words + copyTo, lane), bytes, bytes);
    note(warp, instr, lane, to, bytes, true);
    memcpy(to, value, bytes);
  });
}

namespace {

template <class T, class F>
void updateAll(uint8_t* to, const uint8_t* from, unsigned bytes, F&& of) {
  for (unsigned at = 0; at < bytes; at += sizeof(T)) {
    T *cell = reinterpret_cast<T*>(to + at), value;
    memcpy(&value, from + at, sizeof value);
    T old = __atomic_load_n(cell, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(cell, &old, of(old, value), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
  }
}

template <class T>
void combineAll(AtomicOp op, uint8_t* to, const uint8_t* from, unsigned bytes) {
  updateAll<T>(to, from, bytes, [op](T old, T value) -> T {
    switch (op) {
      case AtomicOp::add: return static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(value));
      case AtomicOp::inc: return old >= value ? T{0} : static_cast<T>(old + 1);
      case AtomicOp::dec: return old == 0 || old > value ? value : static_cast<T>(old - 1);
      case AtomicOp::minimum: return value < old ? value : old;
      case AtomicOp::maximum: return value > old ? value : old;
      case AtomicOp::conjunction: return old & value;
      case AtomicOp::disjunction: return old | value;
      default: return old ^ value;
    }
  });
}

// The sum of two 16-bit floats in float is precise enough that rounding it to 16 bits equals a single rounding.
template <class Widen, class Narrow>
void combineSmall(AtomicOp op, uint8_t* to, const uint8_t* from, unsigned bytes, Widen&& widen, Narrow&& narrow) {
  updateAll<uint16_t>(to, from, bytes, [&](uint16_t old, uint16_t value) -> uint16_t {
    const float x = widen(old), y = widen(value);
    if (op == AtomicOp::add) return narrow(static_cast<double>(x + y));
    if (x != x) return y != y ? 0x7fff : value;
    if (y != y) return old;
    const bool isLess = x < y || (x == y && (old & 0x8000) != 0);
    return isLess != (op == AtomicOp::maximum) ? old : value;
  });
}

void combine(AtomicOp op, Type type, uint8_t* to, const uint8_t* from, unsigned bytes) {
  switch (type) {
    case Type::s32: return combineAll<int32_t>(op, to, from, bytes);
    case Type::s64: return combineAll<int64_t>(op, to, from, bytes);
    case Type::f32:
      return updateAll<uint32_t>(to, from, bytes, [](uint32_t old, uint32_t value) {
        return plain::bitsOf(plain::oneNan(plain::asFloat(old) + plain::asFloat(value)));
      });
    case Type::f64:
      return updateAll<uint64_t>(to, from, bytes, [](uint64_t old, uint64_t value) {
        return plain::bitsOf(plain::asDouble(old) + plain::asDouble(value));
      });
    case Type::f16:
      return combineSmall(op, to, from, bytes, plain::fromHalf, [](double sum) { return plain::toHalf(sum); });
    case Type::bf16:
      return combineSmall(op, to, from, bytes, plain::fromBf16, [](double sum) { return plain::toBf16(sum); });
    default:
      return bytesOf(type) == 4 ? combineAll<uint32_t>(op, to, from, bytes) : combineAll<uint64_t>(op, to, from, bytes);
  }
}

}  // namespace

void copyBulk(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* words = warp.operands + instr.target;
  eachLane(mask, [&](int lane) {
    const uint64_t size = laneOf(warp, words[copyBytes], 4, lane);
    if (size % 16 != 0) failMisaligned(size, 16);
    if (size == 0) return;
    const auto bytes = static_cast<unsigned>(size);
    const uint64_t to = addressFrom(warp, words + copyTo, lane), from = addressFrom(warp, words + copyFrom, lane);
    const bool hasBarrier = words[copyBarrier + addressOperand] != kNoneGiven;
    const uint64_t barrier = hasBarrier ? addressFrom(warp, words + copyBarrier, lane) : 0;
    // The same address in each block of the mask.
    const auto blocks = words[copyBlocks] == kNoneGiven ? uint64_t{0} : laneOf(warp, words[copyBlocks], 2, lane);
    const size_t count = warp.block->cluster->blocks.size();
    for (size_t rank = 0; rank < (words[copyBlocks] == kNoneGiven ? 1 : count); ++rank) {
      if (words[copyBlocks] != kNoneGiven && (blocks >> rank & 1) == 0) continue;
      const auto inBlock = [&](uint64_t address) {
        if (words[copyBlocks] == kNoneGiven) return address;
        return (address & ~(uint64_t{0xff} << kRankShift)) | uint64_t{rank + 1} << kRankShift;
      };
      const uint8_t* source = memoryAt(warp, instr, lane, from, bytes, 16, false);
      uint8_t* target = (to & kWindowMask) != 0 ? sharedAt(warp, lane, inBlock(to), bytes, 16)
                                                : memoryAt(warp, instr, lane, to, bytes, 16, true);
      note(warp, instr, lane, source, bytes, false);
      if (words[copyOperation] == kNoneGiven) note(warp, instr, lane, target, bytes, true);
      if (words[copyOperation] != kNoneGiven) {
        combine(static_cast<AtomicOp>(words[copyOperation]), static_cast<Type>(words[copyType]), target, source, bytes);
      } else if (words[copyMask] != kNoneGiven) {
        const uint64_t chosen = laneOf(warp, words[copyMask], 2, lane);
        for (unsigned at = 0; at < bytes; ++at) {
          if ((chosen >> at % 16 & 1) != 0) target[at] = source[at];
        }
      } else {
        memmove(target, source, bytes);
      }
      if (hasBarrier) completeBytes(warp, lane, inBlock(barrier), bytes);
    }
  });
}

// The registers follow the words of a copy.
void storeRemote(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* words = warp.operands + instr.target;
  const auto type = static_cast<Type>(words[copyType]);
  const unsigned each = bytesOf(type), bytes = each * instr.count;
  eachLane(mask, [&](int lane) {
    uint8_t value[16];
    for (unsigned index = 0; index < instr.count; ++index) {
      const uint64_t part = laneOf(warp, words[copyWords + index], each, lane);
      memcpy(value + each * index, &part, each);
    }
    uint8_t* to = sharedAt(warp, lane, addressFrom(warp, words + copyTo, lane), bytes, bytes);
    if (words[copyOperation] == kNoneGiven) note(warp, instr, lane, to, bytes, true), memcpy(to, value, bytes);
    else combine(static_cast<AtomicOp>(words[copyOperation]), type, to, value, bytes);
    completeBytes(warp, lane, addressFrom(warp, words + copyBarrier, lane), bytes);
  });
}

}  // namespace shoal::ptx
