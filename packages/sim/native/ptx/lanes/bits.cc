// Logic, shifts, bit fields, and logic on predicates.
#include "lanes.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

struct And {
  template <class T> static T of(T a, T b) { return a & b; }
};
struct Or {
  template <class T> static T of(T a, T b) { return a | b; }
};
struct Xor {
  template <class T> static T of(T a, T b) { return a ^ b; }
};
struct Not {
  template <class T> static T of(T a) { return static_cast<T>(~a); }
};
struct LogicalNot {
  template <class T> static T of(T a) { return a == 0; }
};

struct Popc {
  static uint32_t of(uint32_t a) { return static_cast<uint32_t>(__builtin_popcount(a)); }
  static uint32_t of(uint64_t a) { return static_cast<uint32_t>(__builtin_popcountll(a)); }
};
struct Clz {
  static uint32_t of(uint32_t a) { return a == 0 ? 32 : static_cast<uint32_t>(__builtin_clz(a)); }
  static uint32_t of(uint64_t a) { return a == 0 ? 64 : static_cast<uint32_t>(__builtin_clzll(a)); }
};
template <bool isShift>
struct Bfind {
  static uint32_t of(uint32_t a) {
    return a == 0    ? ~0u
           : isShift ? static_cast<uint32_t>(__builtin_clz(a))
                     : 31 - static_cast<uint32_t>(__builtin_clz(a));
  }
  static uint32_t of(uint64_t a) {
    return a == 0    ? ~0u
           : isShift ? static_cast<uint32_t>(__builtin_clzll(a))
                     : 63 - static_cast<uint32_t>(__builtin_clzll(a));
  }
  static uint32_t of(int32_t a) { return of(static_cast<uint32_t>(a < 0 ? ~a : a)); }
  static uint32_t of(int64_t a) { return of(static_cast<uint64_t>(a < 0 ? ~a : a)); }
};
struct Brev {
  static uint32_t of(uint32_t a) {
    a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(a);
  }
  static uint64_t of(uint64_t a) {
    return uint64_t{of(static_cast<uint32_t>(a))} << 32 | of(static_cast<uint32_t>(a >> 32));
  }
};

// Shift counts have 32 bits. Counts above the width are clamped.
template <class T, bool isLeft>
void shift(Warp& warp, const Instr& instr, uint32_t mask) {
  const T* a = input<T>(warp, instr.a);
  const uint32_t* b = input<uint32_t>(warp, instr.b);
  constexpr uint32_t bits = 8 * sizeof(T);
  each<T>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA -> T {
    const uint32_t count = b[lane];
    if (isLeft) return count >= bits ? T{0} : static_cast<T>(a[lane] << (count & (bits - 1)));
    const bool isArithmetic = static_cast<T>(-1) < T{0};
    if (isArithmetic) return static_cast<T>(a[lane] >> (count >= bits ? bits - 1 : count));
    return count >= bits ? T{0} : static_cast<T>(a[lane] >> (count & (bits - 1)));
  });
}

template <bool isLeft, bool isWrapped>
struct Funnel {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = isWrapped ? c & 31 : c > 32 ? 32 : c;
    const uint64_t both = uint64_t{b} << 32 | a;
    return isLeft ? static_cast<uint32_t>((both << n) >> 32) : static_cast<uint32_t>(both >> n);
  }
};

// The position and length of a field: 32-bit instructions use the lowest 8 bits, 64-bit instructions use all bits.
template <class T>
SHOAL_INLINE uint32_t placeOf(uint32_t value) {
  if (sizeof(T) == 4) return value & 0xff;
  return value < 0xff ? value : 0xff;
}

template <class T>
void extract(Warp& warp, const Instr& instr, uint32_t mask) {
  const T* a = input<T>(warp, instr.a);
  const uint32_t *b = input<uint32_t>(warp, instr.b), *c = input<uint32_t>(warp, instr.c);
  constexpr uint32_t bits = 8 * sizeof(T);
  constexpr bool hasSign = static_cast<T>(-1) < T{0};
  each<T>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA -> T {
    const uint32_t position = placeOf<T>(b[lane]), length = placeOf<T>(c[lane]);
    if (length == 0) return 0;
    const uint32_t top = position + length - 1 < bits - 1 ? position + length - 1 : bits - 1;
    if (position >= bits) return hasSign && a[lane] < 0 ? static_cast<T>(-1) : T{0};
    const T raised = static_cast<T>(a[lane] << (bits - 1 - top));
    // Bits beyond the end are copies of the sign, or zero.
    return static_cast<T>(raised >> (bits - 1 - top + position));
  });
}

template <class T>
void insert(Warp& warp, const Instr& instr, uint32_t mask) {
  const T *a = input<T>(warp, instr.a), *b = input<T>(warp, instr.b);
  const uint32_t *c = input<uint32_t>(warp, instr.c), *d = input<uint32_t>(warp, instr.d);
  constexpr uint32_t bits = 8 * sizeof(T);
  each<T>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA -> T {
    const uint32_t position = placeOf<T>(c[lane]), length = placeOf<T>(d[lane]);
    if (position >= bits || length == 0) return b[lane];
    const T field = (length >= bits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1)) << position;
    return static_cast<T>((b[lane] & ~field) | ((a[lane] << position) & field));
  });
}

template <bool hasSign, bool isWrapped>
struct SignExtend {
  static uint32_t of(uint32_t a, uint32_t n) {
    if (isWrapped) n &= 31;
    if (n >= 32) return a;
    if (n == 0) return 0;
    return hasSign ? static_cast<uint32_t>(static_cast<int32_t>(a << (32 - n)) >> (32 - n)) : a << (32 - n) >> (32 - n);
  }
};
template <bool isWrapped>
struct BitMask {
  static uint32_t of(uint32_t a, uint32_t b) {
    if (isWrapped) a &= 31, b &= 31;
    if (a >= 32 || b == 0) return 0;
    return (b >= 32 ? ~0u : (1u << b) - 1) << a;
  }
};

void findNthSet(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t *a = input<uint32_t>(warp, instr.a), *b = input<uint32_t>(warp, instr.b);
  const int32_t* c = input<int32_t>(warp, instr.c);
  uint32_t* to = output<uint32_t>(warp, instr.to);
  eachSet(mask, [&](int lane) {
    const uint32_t bits = a[lane], base = b[lane];
    const int32_t offset = c[lane];
    uint32_t found = ~0u;
    if (base < 32) {
      if (offset == 0) {
        if (bits >> base & 1) found = base;
      } else {
        int64_t left = offset < 0 ? -int64_t{offset} : offset;
        const int step = offset > 0 ? 1 : -1;
        for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
          if ((bits >> at & 1) && --left == 0) {
            found = static_cast<uint32_t>(at);
            break;
          }
        }
      }
    }
    to[lane] = found;
  });
}

void lop3(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t *a = input<uint32_t>(warp, instr.a), *b = input<uint32_t>(warp, instr.b),
                 *c = input<uint32_t>(warp, instr.c);
  const auto table = static_cast<uint32_t>(instr.imm);
  uint32_t terms[8];
  for (int index = 0; index < 8; ++index) terms[index] = (table >> index & 1) ? ~0u : 0;
  const uint32_t t0 = terms[0], t1 = terms[1], t2 = terms[2], t3 = terms[3], t4 = terms[4], t5 = terms[5],
                 t6 = terms[6], t7 = terms[7];
  each<uint32_t>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA {
    const uint32_t x = a[lane], y = b[lane], z = c[lane];
    const uint32_t low = (~y & ((~z & t0) | (z & t1))) | (y & ((~z & t2) | (z & t3)));
    const uint32_t high = (~y & ((~z & t4) | (z & t5))) | (y & ((~z & t6) | (z & t7)));
    return (~x & low) | (x & high);
  });
}

template <PermuteMode mode>
void permute(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t *a = input<uint32_t>(warp, instr.a), *b = input<uint32_t>(warp, instr.b),
                 *c = input<uint32_t>(warp, instr.c);
  each<uint32_t>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA {
    const uint64_t both = uint64_t{b[lane]} << 32 | a[lane];
    uint32_t result = 0;
    const uint32_t selector = c[lane];
    for (uint32_t byte = 0; byte < 4; ++byte) {
      uint32_t from = 0;
      const uint32_t s = selector & 3;
      if (mode == PermuteMode::none) from = selector >> 4 * byte & 7;
      else if (mode == PermuteMode::f4e) from = (s + byte) & 7;
      else if (mode == PermuteMode::b4e) from = (s - byte) & 7;
      else if (mode == PermuteMode::rc8) from = s;
      else if (mode == PermuteMode::ecl) from = byte < s ? s : byte;
      else if (mode == PermuteMode::ecr) from = byte > s ? s : byte;
      else from = (s & 1) * 2 + (byte & 1);
      uint32_t value = static_cast<uint32_t>(both >> 8 * from) & 0xff;
      if (mode == PermuteMode::none && (selector >> 4 * byte & 8)) value = (value & 0x80) ? 0xff : 0;
      result |= value << 8 * byte;
    }
    return result;
  });
}

template <class F>
Handler bySize(Type type) {
  switch (bytesOf(type)) {
    case 2: return binary<uint16_t, uint16_t, F>;
    case 4: return binary<uint32_t, uint32_t, F>;
    default: return binary<uint64_t, uint64_t, F>;
  }
}
template <class F>
Handler unaryBySize(Type type) {
  switch (bytesOf(type)) {
    case 2: return unary<uint16_t, uint16_t, F>;
    case 4: return unary<uint32_t, uint32_t, F>;
    default: return unary<uint64_t, uint64_t, F>;
  }
}

// The operands `to`, `a` and `b` are predicates. The bits of `negated` select the inputs that are inverted.
template <class F>
void predicates(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t a = inputPredicate(warp, instr.a) ^ ((instr.negated & 1) ? ~0u : 0);
  const uint32_t b = inputPredicate(warp, instr.b) ^ ((instr.negated & 2) ? ~0u : 0);
  setPredicate(warp, instr.to, mask, F::of(a, b));
}
void predicateNot(Warp& warp, const Instr& instr, uint32_t mask) {
  setPredicate(warp, instr.to, mask, ~(inputPredicate(warp, instr.a) ^ ((instr.negated & 1) ? ~0u : 0)));
}
void predicateMove(Warp& warp, const Instr& instr, uint32_t mask) {
  setPredicate(warp, instr.to, mask, inputPredicate(warp, instr.a) ^ ((instr.negated & 1) ? ~0u : 0));
}

}  // namespace

Handler findBits(const Key& key) {
  const Type type = key.type;
  const bool isWide = bytesOf(type) == 8;
  switch (key.op) {
    case Op::bitAnd: return bySize<And>(type);
    case Op::bitOr: return bySize<Or>(type);
    case Op::bitXor: return bySize<Xor>(type);
    case Op::bitNot: return unaryBySize<Not>(type);
    case Op::logicalNot: return unaryBySize<LogicalNot>(type);
    case Op::lop3: return lop3;
    case Op::popc: return isWide ? unary<uint32_t, uint64_t, Popc> : unary<uint32_t, uint32_t, Popc>;
    case Op::clz: return isWide ? unary<uint32_t, uint64_t, Clz> : unary<uint32_t, uint32_t, Clz>;
    case Op::brev: return isWide ? unary<uint64_t, uint64_t, Brev> : unary<uint32_t, uint32_t, Brev>;
    case Op::bfind:
      if (type == Type::u32) return unary<uint32_t, uint32_t, Bfind<false>>;
      if (type == Type::s32) return unary<uint32_t, int32_t, Bfind<false>>;
      return type == Type::u64 ? unary<uint32_t, uint64_t, Bfind<false>> : unary<uint32_t, int64_t, Bfind<false>>;
    case Op::bfindShift:
      if (type == Type::u32) return unary<uint32_t, uint32_t, Bfind<true>>;
      if (type == Type::s32) return unary<uint32_t, int32_t, Bfind<true>>;
      return type == Type::u64 ? unary<uint32_t, uint64_t, Bfind<true>> : unary<uint32_t, int64_t, Bfind<true>>;
    case Op::fns: return findNthSet;
    case Op::bfe:
      if (type == Type::u32) return extract<uint32_t>;
      if (type == Type::s32) return extract<int32_t>;
      return type == Type::u64 ? extract<uint64_t> : extract<int64_t>;
    case Op::bfi: return isWide ? insert<uint64_t> : insert<uint32_t>;
    case Op::szext:
      if (type == Type::u32)
        return key.extra ? binary<uint32_t, uint32_t, SignExtend<false, true>>
                         : binary<uint32_t, uint32_t, SignExtend<false, false>>;
      return key.extra ? binary<uint32_t, uint32_t, SignExtend<true, true>>
                       : binary<uint32_t, uint32_t, SignExtend<true, false>>;
    case Op::bmsk:
      return key.extra ? binary<uint32_t, uint32_t, BitMask<true>> : binary<uint32_t, uint32_t, BitMask<false>>;
    case Op::funnelLeft:
      return key.extra ? ternary<uint32_t, uint32_t, Funnel<true, true>>
                       : ternary<uint32_t, uint32_t, Funnel<true, false>>;
    case Op::funnelRight:
      return key.extra ? ternary<uint32_t, uint32_t, Funnel<false, true>>
                       : ternary<uint32_t, uint32_t, Funnel<false, false>>;
    case Op::shiftLeft:
      return bytesOf(type) == 2 ? shift<uint16_t, true> : isWide ? shift<uint64_t, true> : shift<uint32_t, true>;
    case Op::shiftRight:
      if (isSigned(type))
        return bytesOf(type) == 2 ? shift<int16_t, false> : isWide ? shift<int64_t, false> : shift<int32_t, false>;
      return bytesOf(type) == 2 ? shift<uint16_t, false> : isWide ? shift<uint64_t, false> : shift<uint32_t, false>;
    case Op::permute:
      switch (static_cast<PermuteMode>(key.extra)) {
        case PermuteMode::none: return permute<PermuteMode::none>;
        case PermuteMode::f4e: return permute<PermuteMode::f4e>;
        case PermuteMode::b4e: return permute<PermuteMode::b4e>;
        case PermuteMode::rc8: return permute<PermuteMode::rc8>;
        case PermuteMode::ecl: return permute<PermuteMode::ecl>;
        case PermuteMode::ecr: return permute<PermuteMode::ecr>;
        case PermuteMode::rc16: return permute<PermuteMode::rc16>;
      }
      return nullptr;
    case Op::predicateAnd: return predicates<And>;
    case Op::predicateOr: return predicates<Or>;
    case Op::predicateXor: return predicates<Xor>;
    case Op::predicateNot: return predicateNot;
    case Op::predicateMove: return predicateMove;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
