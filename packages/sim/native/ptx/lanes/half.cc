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

// The exact result, or one that rounds like it: to odd, in a double.
SHOAL_INLINE double addToOdd(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  if (error == 0 || !__builtin_isfinite(sum) || (bitsOf(sum) & 1) != 0) return sum;
  return asDouble(bitsOf(sum) + ((error > 0) == (sum > 0) ? 1 : -1));
}

template <class H> struct Add { SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b) { return H::to(addToOdd(static_cast<double>(H::from(a)), static_cast<double>(H::from(b)))); } };
template <class H> struct Sub { SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b) { return H::to(addToOdd(static_cast<double>(H::from(a)), -static_cast<double>(H::from(b)))); } };
template <class H> struct Mul { SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b) { return H::to(static_cast<double>(H::from(a)) * static_cast<double>(H::from(b))); } };
template <class H> struct Fused {
  SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b, uint16_t c) {
    return H::to(addToOdd(static_cast<double>(H::from(a)) * static_cast<double>(H::from(b)), static_cast<double>(H::from(c))));
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
template <class H> struct Absolute { SHOAL_INLINE static uint16_t of(uint16_t a) { return a & 0x7fff; } };
template <class H> struct Negate { SHOAL_INLINE static uint16_t of(uint16_t a) { return a ^ 0x8000; } };
template <class H> struct Exp2 { static uint16_t of(uint16_t a) { return H::to(static_cast<double>(exp2f(H::from(a)))); } };
template <class H> struct Tanh { static uint16_t of(uint16_t a) { return H::to(static_cast<double>(tanhf(H::from(a)))); } };

// f16 alone has subnormal numbers that can be flushed: bf16 has the exponents of f32.
template <class H, class F, bool isFlushed, bool isClamped, bool isRelu>
struct One {
  SHOAL_INLINE static uint16_t before(uint16_t a) { return isFlushed && (a & H::infinity) == 0 ? a & 0x8000 : a; }
  SHOAL_INLINE static uint16_t after(uint16_t r) {
    r = before(r);
    const bool isNan = (r & 0x7fff) > H::infinity;
    if (isClamped) return isNan || (r & 0x8000) != 0 ? 0 : r > H::one ? H::one : r;
    if (isRelu && !isNan && (r & 0x8000) != 0) return 0;
    return isNan ? 0x7fff : r;
  }
  SHOAL_INLINE static uint16_t of(uint16_t a) { return after(F::of(before(a))); }
  SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b) { return after(F::of(before(a), before(b))); }
  SHOAL_INLINE static uint16_t of(uint16_t a, uint16_t b, uint16_t c) { return after(F::of(before(a), before(b), before(c))); }
};
// The sign of a NaN stays.
template <class F>
struct Plain { SHOAL_INLINE static uint16_t of(uint16_t a) { return F::of(a); } };
template <class F>
struct Pair {
  SHOAL_INLINE static uint16_t high(uint32_t a) { return static_cast<uint16_t>(a >> 16); }
  SHOAL_INLINE static uint16_t low(uint32_t a) { return static_cast<uint16_t>(a); }
  SHOAL_INLINE static uint32_t both(uint16_t l, uint16_t h) { return l | static_cast<uint32_t>(h) << 16; }
  SHOAL_INLINE static uint32_t of(uint32_t a) { return both(F::of(low(a)), F::of(high(a))); }
  SHOAL_INLINE static uint32_t of(uint32_t a, uint32_t b) { return both(F::of(low(a), low(b)), F::of(high(a), high(b))); }
  SHOAL_INLINE static uint32_t of(uint32_t a, uint32_t b, uint32_t c) { return both(F::of(low(a), low(b), low(c)), F::of(high(a), high(b), high(c))); }
};

enum Arity { one, two, three };
template <class G, Arity arity>
Handler loop(bool isPair) {
  if constexpr (arity == one) return isPair ? unary<uint32_t, uint32_t, Pair<G>> : unary<uint16_t, uint16_t, G>;
  else if constexpr (arity == two) return isPair ? binary<uint32_t, uint32_t, Pair<G>> : binary<uint16_t, uint16_t, G>;
  else return isPair ? ternary<uint32_t, uint32_t, Pair<G>> : ternary<uint16_t, uint16_t, G>;
}

template <template <class> class F, Arity arity>
Handler arithmetic(const Key& key) {
  const bool isPair = key.type == Type::f16x2 || key.type == Type::bf16x2;
  if (key.type == Type::bf16 || key.type == Type::bf16x2) {
    return key.isRelu ? loop<One<Bf16, F<Bf16>, false, false, true>, arity>(isPair) : loop<One<Bf16, F<Bf16>, false, false, false>, arity>(isPair);
  }
  if (key.isRelu) return key.ftz ? loop<One<Half, F<Half>, true, false, true>, arity>(isPair) : loop<One<Half, F<Half>, false, false, true>, arity>(isPair);
  if (key.saturate) return key.ftz ? loop<One<Half, F<Half>, true, true, false>, arity>(isPair) : loop<One<Half, F<Half>, false, true, false>, arity>(isPair);
  return key.ftz ? loop<One<Half, F<Half>, true, false, false>, arity>(isPair) : loop<One<Half, F<Half>, false, false, false>, arity>(isPair);
}
template <class H> using Minimum = Extreme<H, false, false>;
template <class H> using Maximum = Extreme<H, true, false>;
template <class H> using MinimumNan = Extreme<H, false, true>;
template <class H> using MaximumNan = Extreme<H, true, true>;

template <template <class> class F>
Handler sign(const Key& key) {
  const bool isPair = key.type == Type::f16x2 || key.type == Type::bf16x2;
  if (key.ftz) return loop<One<Half, F<Half>, true, false, false>, one>(isPair);
  return loop<Plain<F<Half>>, one>(isPair);
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
