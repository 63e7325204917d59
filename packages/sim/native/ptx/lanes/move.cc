// mov and related instructions: copies, packing and unpacking, special registers, addresses of windows.
#include "lanes.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

template <class T>
void move(Warp& warp, const Instr& instr, uint32_t mask) {
  const T* a = input<T>(warp, instr.a);
  each<T>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return a[lane]; });
}
struct Wide {
  uint64_t low, high;
};

// warp.operands[target...] has `count` parts of type P; ~0 is a missing part. A one-byte part takes two bytes in a
// register.
template <class P> struct LaneOf {
  using Type = P;
};
template <> struct LaneOf<uint8_t> {
  using Type = uint16_t;
};
template <class D, class P>
void pack(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* parts = warp.operands + instr.target;
  D* to = output<D>(warp, instr.to);
  eachSet(mask, [&](int lane) {
    D value = 0;
    for (int index = instr.count - 1; index >= 0; --index)
      value = static_cast<D>(value << (8 * sizeof(P) % (8 * sizeof(D)))) |
              static_cast<P>(input<typename LaneOf<P>::Type>(warp, parts[index])[lane]);
    to[lane] = value;
  });
}
template <class D, class P>
void unpack(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* parts = warp.operands + instr.target;
  const D* from = input<D>(warp, instr.a);
  D values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = from[lane];
  for (int index = 0; index < instr.count; ++index) {
    if (parts[index] == ~0u) continue;
    const unsigned shift = 8 * static_cast<unsigned>(sizeof(P)) * static_cast<unsigned>(index);
    each<typename LaneOf<P>::Type>(warp, parts[index], mask,
                                   [&](int lane) SHOAL_LAMBDA { return static_cast<P>(values[lane] >> shift); });
  }
}

template <class P>
Handler packing(const Key& key) {
  const bool isPack = key.op == Op::pack;
  switch (bytesOf(key.type)) {
    case 2: return isPack ? pack<uint16_t, P> : unpack<uint16_t, P>;
    case 4: return isPack ? pack<uint32_t, P> : unpack<uint32_t, P>;
    case 8: return isPack ? pack<uint64_t, P> : unpack<uint64_t, P>;
    case 16: return isPack ? pack<unsigned __int128, P> : unpack<unsigned __int128, P>;
    default: return nullptr;
  }
}

template <class T>
void localAddress(Warp& warp, const Instr& instr, uint32_t mask) {
  const T address = static_cast<T>(static_cast<uint64_t>(instr.imm) + warp.localBase);
  each<T>(warp, instr.to, mask, [=](int) SHOAL_LAMBDA { return address; });
}

// cvta: imm is the window.
template <bool isToGeneric>
void window(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint64_t* a = input<uint64_t>(warp, instr.a);
  const auto base = static_cast<uint64_t>(instr.imm);
  each<uint64_t>(warp, instr.to, mask,
                 [=](int lane) SHOAL_LAMBDA { return isToGeneric ? a[lane] + base : a[lane] - base; });
}

void isSpace(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint64_t* a = input<uint64_t>(warp, instr.a);
  const auto space = static_cast<Space>(instr.space);
  uint32_t result = 0;
  eachSet(mask, [&](int lane) {
    const uint64_t window = a[lane] & kWindowMask;
    const bool isForeign = window == kSharedWindow && (a[lane] >> kRankShift & 0xff) != 0;
    bool is = false;
    if (space == Space::shared) is = window == kSharedWindow && !isForeign;
    else if (space == Space::cluster) is = window == kSharedWindow;
    else if (space == Space::local) is = window == kLocalWindow;
    else if (space == Space::param) is = window == kParamWindow;
    else if (space == Space::global) is = window == 0;
    result |= static_cast<uint32_t>(is) << lane;
  });
  setPredicate(warp, instr.to, mask, result);
}

template <class T>
void mapRank(Warp& warp, const Instr& instr, uint32_t mask) {
  const T* a = input<T>(warp, instr.a);
  const uint32_t* rank = input<uint32_t>(warp, instr.b);
  T* to = output<T>(warp, instr.to);
  eachSet(mask, [&](int lane) {
    to[lane] = (a[lane] & ~(T{0xff} << kRankShift)) | static_cast<T>(rank[lane] + 1) << kRankShift;
  });
}

// b is the rank of this block.
template <class T>
void rankOf(Warp& warp, const Instr& instr, uint32_t mask) {
  const T* a = input<T>(warp, instr.a);
  const uint32_t* own = input<uint32_t>(warp, instr.b);
  each<uint32_t>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA {
    const auto rank = static_cast<uint32_t>(a[lane] >> kRankShift & 0xff);
    return rank == 0 ? own[lane] : rank - 1;
  });
}

void nothing(Warp&, const Instr&, uint32_t) {}
void fence(Warp&, const Instr&, uint32_t) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

}  // namespace

Handler findMove(const Key& key) {
  switch (key.op) {
    case Op::move:
      switch (bytesOf(key.type)) {
        case 2: return move<uint16_t>;
        case 4: return move<uint32_t>;
        case 8: return move<uint64_t>;
        case 16: return move<Wide>;
        default: return nullptr;
      }
    case Op::pack:
    case Op::unpack:
      switch (bytesOf(key.from)) {
        case 1: return packing<uint8_t>(key);
        case 2: return packing<uint16_t>(key);
        case 4: return packing<uint32_t>(key);
        case 8: return packing<uint64_t>(key);
        default: return nullptr;
      }
    case Op::localAddress: return bytesOf(key.type) == 4 ? localAddress<uint32_t> : localAddress<uint64_t>;
    case Op::toSpace: return window<false>;
    case Op::fromSpace: return window<true>;
    case Op::isSpace: return isSpace;
    case Op::rankOf: return bytesOf(key.type) == 4 ? rankOf<uint32_t> : rankOf<uint64_t>;
    case Op::mapRank: return bytesOf(key.type) == 4 ? mapRank<uint32_t> : mapRank<uint64_t>;
    case Op::nothing: return nothing;
    case Op::fence: return fence;
    case Op::special: return readSpecial;
    case Op::trap: return runTrap;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
