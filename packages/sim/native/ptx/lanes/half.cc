// Arithmetic of f16, bf16 and pairs of them.
#include <math.h>

#include "real.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

struct Half {
  static constexpr uint16_t one = 0x3c00, infinity = 0x7c00;
  SHOAL_INLINE static float from(uint16_t bits) { return fromHalf(bits); }
  SHOAL_INLINE static uint16_t to(double value) { return toHalf(value); }
};
struct Bf16 {
  static constexpr uint16_t one = 0x3f80, infinity = 0x7f80;
  SHOAL_INLINE static float from(uint16_t bits) { return fromBf16(bits); }
  SHOAL_INLINE static uint16_t to(double value) { return toBf16(value); }
};

// Returns the exact sum, or a double rounded to odd, which later rounds like the exact sum.
SHOAL_INLINE double addToOdd(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  if (error == 0 || !__builtin_isfinite(sum) || (bitsOf(sum) & 1) != 0) return sum;
  return asDouble(bitsOf(sum) + ((error > 0) == (sum > 0) ? 1 : -1));
}

template <class H> struct Add {
  SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b) {
    return H::to(addToOdd(static_cast<double>(H::from(a)), static_cast<double>(H::from(b))));
  }
};
template <class H> struct Sub {
  SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b) {
    return H::to(addToOdd(static_cast<double>(H::from(a)), -static_cast<double>(H::from(b))));
  }
};
template <class H> struct Mul {
  SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b) {
    return H::to(static_cast<double>(H::from(a)) * static_cast<double>(H::from(b)));
  }
};
template <class H> struct Fused {
  SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b, uint16_t c) {
    return H::to(
        addToOdd(static_cast<double>(H::from(a)) * static_cast<double>(H::from(b)), static_cast<double>(H::from(c))));
  }
};
template <class H, bool isMaximum, bool isNanPassed> struct Extreme {
  SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b) {
    const float x = H::from(a), y = H::from(b);
    if (x != x) return y != y || isNanPassed ? 0x7fff : b;
    if (y != y) return isNanPassed ? 0x7fff : a;
    const bool isALess = x < y || (x == y && (a & 0x8000) != 0);
    return isALess != isMaximum ? a : b;
  }
};
template <class H> struct Absolute {
  SHOAL_INLINE static uint16_t of(uint16_t a) { return a & 0x7fff; }
};
template <class H> struct Negate {
  SHOAL_INLINE static uint16_t of(uint16_t a) { return a ^ 0x8000; }
};
template <class H> struct Exp2 {
  static uint16_t of(uint16_t a) { return H::to(static_cast<double>(exp2f(H::from(a)))); }
};
template <class H> struct Tanh {
  static uint16_t of(uint16_t a) { return H::to(static_cast<double>(tanhf(H::from(a)))); }
};

// The handling of operands before and of the result after the operation. Only subnormals of f16 can be flushed, because
// bf16 has the exponents of f32.
struct Around {
  uint16_t subnormal;  // mask for the bits of a subnormal number
  uint16_t nan;
  uint16_t negative;  // mask for the bits of a negative number
  uint16_t most;
};
template <class H>
constexpr Around around(bool isFlushed, bool isClamped, bool isRelu) {
  return {static_cast<uint16_t>(isFlushed ? 0x8000 : 0xffff), static_cast<uint16_t>(isClamped ? 0 : 0x7fff),
          static_cast<uint16_t>(isClamped || isRelu ? 0 : 0xffff), isClamped ? H::one : H::infinity};
}
template <class H>
SHOAL_INLINE uint16_t before(uint16_t a, const Around& with) {
  return (a & H::infinity) == 0 ? a & with.subnormal : a;
}
template <class H>
SHOAL_INLINE uint16_t after(uint16_t r, const Around& with) {
  r = before<H>(r, with);
  if ((r & 0x7fff) > H::infinity) return with.nan;
  if ((r & 0x8000) != 0) return r & with.negative;
  return r > with.most ? with.most : r;
}

enum Arity { one, two, three };

// Not inlined, so that all kinds of Around share one copy. Pairs use it too, as twice as many values.
template <class H, class F, Arity arity>
__attribute__((noinline)) void compute(const Warp& warp, const Instr& instr, const Around& with, uint16_t* to,
                                       int warps) {
  const uint16_t* a = input<uint16_t>(warp, instr.a);
  const uint16_t* b = arity == one ? a : input<uint16_t>(warp, instr.b);
  const uint16_t* c = arity == three ? input<uint16_t>(warp, instr.c) : a;
  for (; warps > 0; --warps, a += kLanes, b += kLanes, c += kLanes, to += kLanes) {
    SHOAL_IVDEP
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint16_t x = before<H>(a[lane], with);
      uint16_t result;
      if constexpr (arity == one) result = F::of(x);
      else if constexpr (arity == two) result = F::of(x, before<H>(b[lane], with));
      else result = F::of(x, before<H>(b[lane], with), before<H>(c[lane], with));
      to[lane] = after<H>(result, with);
    }
  }
}

template <class D>
__attribute__((noinline)) void put(Warp& warp, const Instr& instr, uint32_t mask, const D* from) {
  each<D>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return from[lane]; });
}

// D is the type of one value or of a pair.
template <class D, class H, class F, Arity arity, bool isFlushed, bool isClamped, bool isRelu>
void run(Warp& warp, const Instr& instr, uint32_t mask) {
  static constexpr Around with = around<H>(isFlushed, isClamped, isRelu);
  D results[kLanes];
  compute<H, F, arity>(warp, instr, with, reinterpret_cast<uint16_t*>(results), sizeof(D) / 2);
  put<D>(warp, instr, mask, results);
}

template <class F>
struct Pair {
  SHOAL_INLINE static uint32_t of(uint32_t a) {
    return F::of(static_cast<uint16_t>(a)) | static_cast<uint32_t>(F::of(static_cast<uint16_t>(a >> 16))) << 16;
  }
};

template <class H, class F, Arity arity, bool isFlushed, bool isClamped, bool isRelu>
Handler form(bool isPair) {
  return isPair ? run<uint32_t, H, F, arity, isFlushed, isClamped, isRelu>
                : run<uint16_t, H, F, arity, isFlushed, isClamped, isRelu>;
}

template <template <class> class F, Arity arity>
Handler arithmetic(const Key& key) {
  const bool isPair = key.type == Type::f16x2 || key.type == Type::bf16x2;
  if (key.type == Type::bf16 || key.type == Type::bf16x2) {
    return key.isRelu ? form<Bf16, F<Bf16>, arity, false, false, true>(isPair)
                      : form<Bf16, F<Bf16>, arity, false, false, false>(isPair);
  }
  if (key.isRelu)
    return key.ftz ? form<Half, F<Half>, arity, true, false, true>(isPair)
                   : form<Half, F<Half>, arity, false, false, true>(isPair);
  if (key.saturate)
    return key.ftz ? form<Half, F<Half>, arity, true, true, false>(isPair)
                   : form<Half, F<Half>, arity, false, true, false>(isPair);
  return key.ftz ? form<Half, F<Half>, arity, true, false, false>(isPair)
                 : form<Half, F<Half>, arity, false, false, false>(isPair);
}
template <class H> using Minimum = Extreme<H, false, false>;
template <class H> using Maximum = Extreme<H, true, false>;
template <class H> using MinimumNan = Extreme<H, false, true>;
template <class H> using MaximumNan = Extreme<H, true, true>;

template <template <class> class F>
Handler sign(const Key& key) {
  const bool isPair = key.type == Type::f16x2 || key.type == Type::bf16x2;
  if (key.ftz) return form<Half, F<Half>, one, true, false, false>(isPair);
  // A NaN keeps its sign.
  return isPair ? unary<uint32_t, uint32_t, Pair<F<Half>>> : unary<uint16_t, uint16_t, F<Half>>;
}

}  // namespace

Handler findHalf(const Key& key) {
  switch (key.op) {
    case Op::add: return arithmetic<Add, two>(key);
    case Op::sub: return arithmetic<Sub, two>(key);
    case Op::multiply: return arithmetic<Mul, two>(key);
    case Op::fused: return arithmetic<Fused, three>(key);
    case Op::minimum: return key.isNanPassed ? arithmetic<MinimumNan, two>(key) : arithmetic<Minimum, two>(key);
    case Op::maximum: return key.isNanPassed ? arithmetic<MaximumNan, two>(key) : arithmetic<Maximum, two>(key);
    case Op::absolute: return sign<Absolute>(key);
    case Op::negate: return sign<Negate>(key);
    case Op::exp2: return arithmetic<Exp2, one>(key);
    case Op::tanh: return arithmetic<Tanh, one>(key);
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
