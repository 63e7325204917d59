// Integer arithmetic.
#include "lanes.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

struct Add {
  template <class T> static T of(T a, T b) { return a + b; }
};
struct Sub {
  template <class T> static T of(T a, T b) { return a - b; }
};
struct MulLow {
  template <class T> static T of(T a, T b) { return a * b; }
};
struct AddSaturated {
  static int32_t of(int32_t a, int32_t b) {
    const int64_t sum = int64_t{a} + b;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : static_cast<int32_t>(sum);
  }
};
struct SubSaturated {
  static int32_t of(int32_t a, int32_t b) {
    const int64_t sum = int64_t{a} - b;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : static_cast<int32_t>(sum);
  }
};
struct MulHigh {
  static uint16_t of(uint16_t a, uint16_t b) { return static_cast<uint16_t>(uint32_t{a} * b >> 16); }
  static int16_t of(int16_t a, int16_t b) { return static_cast<int16_t>(int32_t{a} * b >> 16); }
  static uint32_t of(uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }
  static int32_t of(int32_t a, int32_t b) { return static_cast<int32_t>(int64_t{a} * b >> 32); }
  static uint64_t of(uint64_t a, uint64_t b) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
  }
  static int64_t of(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<__int128>(a) * b >> 64); }
};
struct MadHigh {
  template <class T> static T of(T a, T b, T c) { return MulHigh::of(a, b) + c; }
};
struct MadLow {
  template <class T> static T of(T a, T b, T c) { return a * b + c; }
};
struct MadHighSaturated {
  static int32_t of(int32_t a, int32_t b, int32_t c) { return AddSaturated::of(MulHigh::of(a, b), c); }
};
template <class W>
struct Wide {
  template <class T> static W of(T a, T b) { return static_cast<W>(a) * static_cast<W>(b); }
  template <class T> static W of(T a, T b, W c) { return static_cast<W>(a) * static_cast<W>(b) + c; }
};
template <bool isHigh, bool isSaturated>
struct Mul24 {
  template <class T> static int64_t product(T a, T b) {
    if (static_cast<T>(-1) < T{0})
      return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8) *
             (static_cast<int32_t>(static_cast<uint32_t>(b) << 8) >> 8);
    return static_cast<int64_t>(static_cast<uint64_t>(a & 0xffffff) * static_cast<uint64_t>(b & 0xffffff));
  }
  template <class T> static T of(T a, T b) { return static_cast<T>(product(a, b) >> (isHigh ? 16 : 0)); }
  template <class T> static T of(T a, T b, T c) {
    if (isSaturated) return static_cast<T>(AddSaturated::of(static_cast<int32_t>(of(a, b)), static_cast<int32_t>(c)));
    return of(a, b) + c;
  }
};
struct Sad {
  template <class T> static T of(T a, T b, T c) { return c + (a < b ? b - a : a - b); }
};
// Returns hardware's result for a division by zero.
struct Divide {
  template <class T> static T of(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (static_cast<T>(-1) < T{0} && b == static_cast<T>(-1)) return static_cast<T>(0 - a);
    return a / b;
  }
};
struct Remainder {
  template <class T> static T of(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (static_cast<T>(-1) < T{0} && b == static_cast<T>(-1)) return 0;
    return a % b;
  }
};
struct Absolute {
  template <class T> static T of(T a) { return a < 0 ? static_cast<T>(0 - a) : a; }
};
struct Negate {
  template <class T> static T of(T a) { return static_cast<T>(0 - a); }
};
struct Minimum {
  template <class T> static T of(T a, T b) { return a < b ? a : b; }
};
struct Maximum {
  template <class T> static T of(T a, T b) { return a > b ? a : b; }
};
template <class B> struct Relu {
  template <class T> static T of(T a, T b) {
    const T r = B::of(a, b);
    return r < 0 ? T{0} : r;
  }
};
template <class B, class H, bool isRelu>
struct Both {
  static uint32_t of(uint32_t a, uint32_t b) {
    H low = B::of(static_cast<H>(a), static_cast<H>(b)), high = B::of(static_cast<H>(a >> 16), static_cast<H>(b >> 16));
    if (isRelu && static_cast<int16_t>(low) < 0) low = 0;
    if (isRelu && static_cast<int16_t>(high) < 0) high = 0;
    return static_cast<uint32_t>(static_cast<uint16_t>(low)) | static_cast<uint32_t>(static_cast<uint16_t>(high)) << 16;
  }
};
template <bool isSignedA, bool isSignedB>
struct Dot4 {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    for (int byte = 0; byte < 4; ++byte) {
      const int32_t x = isSignedA ? static_cast<int8_t>(a >> 8 * byte) : static_cast<uint8_t>(a >> 8 * byte);
      const int32_t y = isSignedB ? static_cast<int8_t>(b >> 8 * byte) : static_cast<uint8_t>(b >> 8 * byte);
      c += static_cast<uint32_t>(x * y);
    }
    return c;
  }
};
template <bool isSignedA, bool isSignedB, int from>
struct Dot2 {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    for (int index = 0; index < 2; ++index) {
      const int32_t x = isSignedA ? static_cast<int16_t>(a >> 16 * index) : static_cast<uint16_t>(a >> 16 * index);
      const int32_t y =
          isSignedB ? static_cast<int8_t>(b >> 8 * (index + from)) : static_cast<uint8_t>(b >> 8 * (index + from));
      c += static_cast<uint32_t>(x * y);
    }
    return c;
  }
};

// For operations whose result does not depend on the sign: computed as unsigned.
template <class F>
Handler bitsBinary(Type type) {
  switch (bytesOf(type)) {
    case 2: return binary<uint16_t, uint16_t, F>;
    case 4: return binary<uint32_t, uint32_t, F>;
    default: return binary<uint64_t, uint64_t, F>;
  }
}
template <class F>
Handler bitsTernary(Type type) {
  switch (bytesOf(type)) {
    case 2: return ternary<uint16_t, uint16_t, F>;
    case 4: return ternary<uint32_t, uint32_t, F>;
    default: return ternary<uint64_t, uint64_t, F>;
  }
}
template <class F>
Handler signedBinary(Type type) {
  switch (type) {
    case Type::u16: return binary<uint16_t, uint16_t, F>;
    case Type::s16: return binary<int16_t, int16_t, F>;
    case Type::u32: return binary<uint32_t, uint32_t, F>;
    case Type::s32: return binary<int32_t, int32_t, F>;
    case Type::u64: return binary<uint64_t, uint64_t, F>;
    default: return binary<int64_t, int64_t, F>;
  }
}
template <class F>
Handler signedTernary(Type type) {
  switch (type) {
    case Type::u16: return ternary<uint16_t, uint16_t, F>;
    case Type::s16: return ternary<int16_t, int16_t, F>;
    case Type::u32: return ternary<uint32_t, uint32_t, F>;
    case Type::s32: return ternary<int32_t, int32_t, F>;
    case Type::u64: return ternary<uint64_t, uint64_t, F>;
    default: return ternary<int64_t, int64_t, F>;
  }
}
template <class F>
Handler signedUnary(Type type) {
  switch (type) {
    case Type::s16: return unary<int16_t, int16_t, F>;
    case Type::s32: return unary<int32_t, int32_t, F>;
    default: return unary<int64_t, int64_t, F>;
  }
}

Handler wide(Type type, bool isMad) {
  switch (type) {
    case Type::u16:
      return isMad ? ternary<uint32_t, uint16_t, Wide<uint32_t>> : binary<uint32_t, uint16_t, Wide<uint32_t>>;
    case Type::s16: return isMad ? ternary<int32_t, int16_t, Wide<int32_t>> : binary<int32_t, int16_t, Wide<int32_t>>;
    case Type::u32:
      return isMad ? ternary<uint64_t, uint32_t, Wide<uint64_t>> : binary<uint64_t, uint32_t, Wide<uint64_t>>;
    default: return isMad ? ternary<int64_t, int32_t, Wide<int64_t>> : binary<int64_t, int32_t, Wide<int64_t>>;
  }
}

template <bool isHigh, bool isSaturated>
Handler mul24(Type type, bool isMad) {
  if (type == Type::s32)
    return isMad ? ternary<int32_t, int32_t, Mul24<isHigh, isSaturated>>
                 : binary<int32_t, int32_t, Mul24<isHigh, isSaturated>>;
  return isMad ? ternary<uint32_t, uint32_t, Mul24<isHigh, isSaturated>>
               : binary<uint32_t, uint32_t, Mul24<isHigh, isSaturated>>;
}

// Arithmetic with the carry flag, in the predicate d. For 32 and 64 bits.
template <class T, class D, Op op, bool takes, bool gives>
void withCarry(Warp& warp, const Instr& instr, uint32_t mask) {
  const T *a = input<T>(warp, instr.a), *b = input<T>(warp, instr.b);
  const T* c = op == Op::madLowCarry || op == Op::madHighCarry ? input<T>(warp, instr.c) : nullptr;
  T* to = output<T>(warp, instr.to);
  const uint32_t carries = takes ? inputPredicate(warp, instr.d) : 0;
  uint32_t out = 0;
  eachSet(mask, [&](int lane) {
    const T carry = carries >> lane & 1;
    D sum;
    if (op == Op::addCarry) sum = static_cast<D>(a[lane]) + b[lane] + carry;
    else if (op == Op::subBorrow) sum = static_cast<D>(a[lane]) - b[lane] - carry;
    else if (op == Op::madLowCarry) sum = static_cast<D>(static_cast<T>(a[lane] * b[lane])) + c[lane] + carry;
    else sum = static_cast<D>(static_cast<T>(static_cast<D>(a[lane]) * b[lane] >> 8 * sizeof(T))) + c[lane] + carry;
    to[lane] = static_cast<T>(sum);
    out |= static_cast<uint32_t>(sum >> 8 * sizeof(T) & 1) << lane;
  });
  if (gives) setPredicate(warp, instr.d, mask, out);
}

template <class T, class D, Op op>
Handler carry(uint8_t extra) {
  return extra == 3   ? withCarry<T, D, op, true, true>
         : extra == 1 ? withCarry<T, D, op, true, false>
                      : withCarry<T, D, op, false, true>;
}

// The high half of a signed product needs signed arithmetic.
template <bool takes, bool gives>
void signedMadHighCarry(Warp& warp, const Instr& instr, uint32_t mask) {
  const int32_t *a = input<int32_t>(warp, instr.a), *b = input<int32_t>(warp, instr.b),
                *c = input<int32_t>(warp, instr.c);
  const uint32_t carries = takes ? inputPredicate(warp, instr.d) : 0;
  uint32_t out = 0;
  uint32_t* to = output<uint32_t>(warp, instr.to);
  eachSet(mask, [&](int lane) {
    const uint64_t sum = uint64_t{static_cast<uint32_t>(int64_t{a[lane]} * b[lane] >> 32)} +
                         static_cast<uint32_t>(c[lane]) + (carries >> lane & 1);
    to[lane] = static_cast<uint32_t>(sum);
    out |= static_cast<uint32_t>(sum >> 32 & 1) << lane;
  });
  if (gives) setPredicate(warp, instr.d, mask, out);
}

template <Op op>
Handler carryBySize(const Key& key) {
  return bytesOf(key.type) == 8 ? carry<uint64_t, unsigned __int128, op>(key.extra)
                                : carry<uint32_t, uint64_t, op>(key.extra);
}

template <class F>
Handler extreme(const Key& key) {
  if (key.type == Type::s16x2)
    return key.isRelu ? binary<uint32_t, uint32_t, Both<F, int16_t, true>>
                      : binary<uint32_t, uint32_t, Both<F, int16_t, false>>;
  if (key.type == Type::u16x2) return binary<uint32_t, uint32_t, Both<F, uint16_t, false>>;
  if (key.isRelu) return key.type == Type::s32 ? binary<int32_t, int32_t, Relu<F>> : nullptr;
  return signedBinary<F>(key.type);
}

}  // namespace

Handler findInteger(const Key& key) {
  const Type type = key.type;
  switch (key.op) {
    case Op::add:
      if (type == Type::u16x2 || type == Type::s16x2) return binary<uint32_t, uint32_t, Both<Add, uint16_t, false>>;
      return key.saturate ? binary<int32_t, int32_t, AddSaturated> : bitsBinary<Add>(type);
    case Op::sub: return key.saturate ? binary<int32_t, int32_t, SubSaturated> : bitsBinary<Sub>(type);
    case Op::mulLow: return bitsBinary<MulLow>(type);
    case Op::mulHigh: return signedBinary<MulHigh>(type);
    case Op::madLow: return bitsTernary<MadLow>(type);
    case Op::madHigh: return key.saturate ? ternary<int32_t, int32_t, MadHighSaturated> : signedTernary<MadHigh>(type);
    case Op::mulWide: return wide(type, false);
    case Op::madWide: return wide(type, true);
    case Op::mul24Low: return mul24<false, false>(type, false);
    case Op::mul24High: return mul24<true, false>(type, false);
    case Op::mad24Low: return mul24<false, false>(type, true);
    case Op::mad24High: return key.saturate ? mul24<true, true>(type, true) : mul24<true, false>(type, true);
    case Op::sad: return signedTernary<Sad>(type);
    case Op::divide: return signedBinary<Divide>(type);
    case Op::remainder: return signedBinary<Remainder>(type);
    case Op::absolute: return signedUnary<Absolute>(type);
    case Op::negate: return signedUnary<Negate>(type);
    case Op::minimum: return extreme<Minimum>(key);
    case Op::maximum: return extreme<Maximum>(key);
    case Op::addCarry: return carryBySize<Op::addCarry>(key);
    case Op::subBorrow: return carryBySize<Op::subBorrow>(key);
    case Op::madLowCarry: return carryBySize<Op::madLowCarry>(key);
    case Op::madHighCarry:
      if (type == Type::s64) return nullptr;
      if (type == Type::s32) {
        return key.extra == 3   ? signedMadHighCarry<true, true>
               : key.extra == 1 ? signedMadHighCarry<true, false>
                                : signedMadHighCarry<false, true>;
      }
      return carryBySize<Op::madHighCarry>(key);
    case Op::dp4a:
      if (type == Type::u32)
        return key.from == Type::u32 ? ternary<uint32_t, uint32_t, Dot4<false, false>>
                                     : ternary<uint32_t, uint32_t, Dot4<false, true>>;
      return key.from == Type::u32 ? ternary<uint32_t, uint32_t, Dot4<true, false>>
                                   : ternary<uint32_t, uint32_t, Dot4<true, true>>;
    case Op::dp2aLow:
      if (type == Type::u32)
        return key.from == Type::u32 ? ternary<uint32_t, uint32_t, Dot2<false, false, 0>>
                                     : ternary<uint32_t, uint32_t, Dot2<false, true, 0>>;
      return key.from == Type::u32 ? ternary<uint32_t, uint32_t, Dot2<true, false, 0>>
                                   : ternary<uint32_t, uint32_t, Dot2<true, true, 0>>;
    case Op::dp2aHigh:
      if (type == Type::u32)
        return key.from == Type::u32 ? ternary<uint32_t, uint32_t, Dot2<false, false, 2>>
                                     : ternary<uint32_t, uint32_t, Dot2<false, true, 2>>;
      return key.from == Type::u32 ? ternary<uint32_t, uint32_t, Dot2<true, false, 2>>
                                   : ternary<uint32_t, uint32_t, Dot2<true, true, 2>>;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
