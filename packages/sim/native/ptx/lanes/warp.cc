// Warp-wide operations: shuffles, votes, matches, reductions.
#include "lanes.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

constexpr uint32_t kNoOperand = ~0u;

// to = d, a = a, b = b, c = c, d = p or none.
template <ShuffleMode mode>
void shuffle(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t *a = input<uint32_t>(warp, instr.a), *b = input<uint32_t>(warp, instr.b),
                 *c = input<uint32_t>(warp, instr.c);
  uint32_t values[kLanes];
  uint32_t inRange = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int by = static_cast<int>(b[lane] & 31), clamp = static_cast<int>(c[lane] & 31),
              segment = static_cast<int>(c[lane] >> 8 & 31);
    const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    int from;
    bool is;
    if (mode == ShuffleMode::up) from = lane - by, is = from >= last;
    else if (mode == ShuffleMode::down) from = lane + by, is = from <= last;
    else if (mode == ShuffleMode::butterfly) from = lane ^ by, is = from <= last;
    else from = first | (by & ~segment), is = from <= last;
    values[lane] = a[is ? from : lane];
    inRange |= static_cast<uint32_t>(is) << lane;
  }
  if (instr.to != kNoOperand) {
    uint32_t* to = output<uint32_t>(warp, instr.to);
    eachSet(mask, [&](int lane) { to[lane] = values[lane]; });
  }
  if (instr.d != kNoOperand) setPredicate(warp, instr.d, mask, inRange);
}

// to = d, a = the predicate, b = members or none; bit 0 of extra: the predicate is negated.
template <VoteMode mode>
void vote(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t is = inputPredicate(warp, instr.a) ^ ((instr.negated & 1) != 0 ? ~0u : 0);
  const uint32_t* members = instr.b == kNoOperand ? nullptr : input<uint32_t>(warp, instr.b);
  uint32_t result = 0;
  uint32_t ballots[kLanes];
  eachSet(mask, [&](int lane) {
    const uint32_t group = (members == nullptr ? ~0u : members[lane]) & mask;
    const uint32_t votes = is & group;
    if (mode == VoteMode::ballot) ballots[lane] = votes;
    const bool yes = mode == VoteMode::all   ? votes == group
                     : mode == VoteMode::any ? votes != 0
                                             : votes == 0 || votes == group;
    result |= static_cast<uint32_t>(yes) << lane;
  });
  if (mode == VoteMode::ballot) {
    uint32_t* to = output<uint32_t>(warp, instr.to);
    eachSet(mask, [&](int lane) { to[lane] = ballots[lane]; });
  } else {
    setPredicate(warp, instr.to, mask, result);
  }
}

// to = d, a = a, b = members, c = p or none.
template <class T, bool isAll>
void match(Warp& warp, const Instr& instr, uint32_t mask) {
  const T* a = input<T>(warp, instr.a);
  const uint32_t* members = input<uint32_t>(warp, instr.b);
  uint32_t equal[kLanes], all = 0;
  eachSet(mask, [&](int lane) {
    const uint32_t group = members[lane] & mask;
    uint32_t same = 0;
    eachSet(group, [&](int other) { same |= static_cast<uint32_t>(a[other] == a[lane]) << other; });
    equal[lane] = isAll ? (same == group ? group : 0) : same;
    all |= static_cast<uint32_t>(same == group) << lane;
  });
  uint32_t* to = output<uint32_t>(warp, instr.to);
  eachSet(mask, [&](int lane) { to[lane] = equal[lane]; });
  if (instr.c != kNoOperand) setPredicate(warp, instr.c, mask, all);
}

// to = d, a = a, b = members.
template <class T, AtomicOp op>
void redux(Warp& warp, const Instr& instr, uint32_t mask) {
  const T* a = input<T>(warp, instr.a);
  const uint32_t* members = input<uint32_t>(warp, instr.b);
  T results[kLanes];
  eachSet(mask, [&](int lane) {
    const uint32_t group = members[lane] & mask;
    T total = a[lane];
    if (op == AtomicOp::add || op == AtomicOp::exclusive) total = 0;
    eachSet(group, [&](int other) {
      const T value = a[other];
      if (op == AtomicOp::add) total += value;
      else if (op == AtomicOp::minimum) total = value < total ? value : total;
      else if (op == AtomicOp::maximum) total = value > total ? value : total;
      else if (op == AtomicOp::conjunction) total &= value;
      else if (op == AtomicOp::disjunction) total |= value;
      else total ^= value;
    });
    results[lane] = total;
  });
  T* to = output<T>(warp, instr.to);
  eachSet(mask, [&](int lane) { to[lane] = results[lane]; });
}

// For floats; c: 1 = absolute values, 2 = pass a NaN.
template <bool isMaximum>
void reduxFloat(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t *a = input<uint32_t>(warp, instr.a), *members = input<uint32_t>(warp, instr.b);
  uint32_t results[kLanes];
  eachSet(mask, [&](int lane) {
    bool hasNan = false, hasNumber = false;
    float best = 0;
    uint32_t bits = 0;
    eachSet(members[lane] & mask, [&](int other) {
      const uint32_t each = (instr.c & 1) != 0 ? a[other] & 0x7fffffff : a[other];
      float value;
      memcpy(&value, &each, 4);
      if (value != value) {
        hasNan = true;
        return;
      }
      const bool isLess = value < best || (value == best && (each >> 31) > (bits >> 31));
      if (!hasNumber || isLess != isMaximum) best = value, bits = each;
      hasNumber = true;
    });
    results[lane] = !hasNumber || (hasNan && (instr.c & 2) != 0) ? 0x7fffffff : bits;
  });
  uint32_t* to = output<uint32_t>(warp, instr.to);
  eachSet(mask, [&](int lane) { to[lane] = results[lane]; });
}

void activeMask(Warp& warp, const Instr& instr, uint32_t mask) {
  each<uint32_t>(warp, instr.to, mask, [=](int) SHOAL_LAMBDA { return mask; });
}

// to = d or none, a = members, b = p.
void elect(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* members = input<uint32_t>(warp, instr.a);
  uint32_t leaders = 0, firsts[kLanes];
  eachSet(mask, [&](int lane) {
    const uint32_t group = members[lane] & mask;
    const int first = group == 0 ? lane : __builtin_ctz(group);
    firsts[lane] = static_cast<uint32_t>(first);
    leaders |= static_cast<uint32_t>(first == lane) << lane;
  });
  if (instr.to != kNoOperand) {
    uint32_t* to = output<uint32_t>(warp, instr.to);
    eachSet(mask, [&](int lane) { to[lane] = firsts[lane]; });
  }
  setPredicate(warp, instr.b, mask, leaders);
}

}  // namespace

Handler findWarp(const Key& key) {
  const bool isWide = bytesOf(key.type) == 8;
  switch (key.op) {
    case Op::shuffle:
      switch (static_cast<ShuffleMode>(key.extra)) {
        case ShuffleMode::up: return shuffle<ShuffleMode::up>;
        case ShuffleMode::down: return shuffle<ShuffleMode::down>;
        case ShuffleMode::butterfly: return shuffle<ShuffleMode::butterfly>;
        case ShuffleMode::index: return shuffle<ShuffleMode::index>;
      }
      return nullptr;
    case Op::vote:
      switch (static_cast<VoteMode>(key.extra)) {
        case VoteMode::all: return vote<VoteMode::all>;
        case VoteMode::any: return vote<VoteMode::any>;
        case VoteMode::uniform: return vote<VoteMode::uniform>;
        case VoteMode::ballot: return vote<VoteMode::ballot>;
      }
      return nullptr;
    case Op::match:
      if (key.extra != 0) return isWide ? match<uint64_t, true> : match<uint32_t, true>;
      return isWide ? match<uint64_t, false> : match<uint32_t, false>;
    case Op::redux:
      if (key.type == Type::f32)
        return static_cast<AtomicOp>(key.extra) == AtomicOp::maximum ? reduxFloat<true> : reduxFloat<false>;
      switch (static_cast<AtomicOp>(key.extra)) {
        case AtomicOp::add: return redux<uint32_t, AtomicOp::add>;
        case AtomicOp::minimum:
          return key.type == Type::s32 ? redux<int32_t, AtomicOp::minimum> : redux<uint32_t, AtomicOp::minimum>;
        case AtomicOp::maximum:
          return key.type == Type::s32 ? redux<int32_t, AtomicOp::maximum> : redux<uint32_t, AtomicOp::maximum>;
        case AtomicOp::conjunction: return redux<uint32_t, AtomicOp::conjunction>;
        case AtomicOp::disjunction: return redux<uint32_t, AtomicOp::disjunction>;
        case AtomicOp::exclusive: return redux<uint32_t, AtomicOp::exclusive>;
        default: return nullptr;
      }
    case Op::activeMask: return activeMask;
    case Op::elect: return elect;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
