// Arithmetic of f32 and f64.
#include <math.h>

#include "real.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

SHOAL_INLINE float fusedOf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SHOAL_INLINE double fusedOf(double a, double b, double c) { return __builtin_fma(a, b, c); }

struct Add {
  template <class T> SHOAL_INLINE static T of(T a, T b) { return a + b; }
};
struct Sub {
  template <class T> SHOAL_INLINE static T of(T a, T b) { return a - b; }
};
struct Mul {
  template <class T> SHOAL_INLINE static T of(T a, T b) { return a * b; }
};
struct Div {
  template <class T> SHOAL_INLINE static T of(T a, T b) { return a / b; }
};
struct Fused {
  template <class T> SHOAL_INLINE static T of(T a, T b, T c) { return fusedOf(a, b, c); }
};
struct DivApproximate {
  SHOAL_INLINE static float of(float a, float b) {
    const float size = __builtin_fabsf(b);
    const float quotient = a / b;
    const bool isHuge = size > 0x1p126f && size < __builtin_inff();
    return isHuge ? (__builtin_fabsf(a) == __builtin_inff() ? asFloat(0x7fffffff) : 0.0f * quotient) : quotient;
  }
};
// A number wins over a NaN unless `isNanPassed`. -0 is less than +0.
template <bool isMaximum, bool isNanPassed, class T>
SHOAL_INLINE T extremeOf(T a, T b) {
  const bool isALess = a < b || (a == b && __builtin_signbit(a));
  T result = isALess != isMaximum ? a : b;
  if (isNanPassed) return a != a ? a : b != b ? b : result;
  result = a != a ? b : result;
  return b != b ? a : result;
}
template <bool isMaximum, bool isNanPassed>
struct Extreme {
  template <class T> SHOAL_INLINE static T of(T a, T b) { return extremeOf<isMaximum, isNanPassed>(a, b); }
};

struct Reciprocal {
  template <class T> SHOAL_INLINE static T of(T a) { return T{1} / a; }
};
struct Root {
  SHOAL_INLINE static float of(float a) { return __builtin_sqrtf(a); }
  SHOAL_INLINE static double of(double a) { return __builtin_sqrt(a); }
};
struct ReciprocalRoot {
  SHOAL_INLINE static float of(float a) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a))); }
  SHOAL_INLINE static double of(double a) { return 1.0 / __builtin_sqrt(a); }
};
// The approximate double instructions only use the upper word of the value.
struct ReciprocalGross {
  SHOAL_INLINE static double of(double a) {
    return asDouble(bitsOf(1.0 / asDouble(bitsOf(a) >> 32 << 32)) >> 32 << 32);
  }
};
struct ReciprocalRootGross {
  SHOAL_INLINE static double of(double a) {
    return asDouble(bitsOf(1.0 / __builtin_sqrt(asDouble(bitsOf(a) >> 32 << 32))) >> 32 << 32);
  }
};
struct Sine {
  static float of(float a) { return sinf(a); }
};
struct Cosine {
  static float of(float a) { return cosf(a); }
};
struct Log2 {
  static float of(float a) { return log2f(a); }
};
struct Exp2 {
  static float of(float a) { return exp2f(a); }
};
struct Tanh {
  static float of(float a) { return tanhf(a); }
};

template <class F, bool isFlushed, bool isClamped>
struct Single {
  SHOAL_INLINE static float before(float a) { return isFlushed ? flushed(a) : a; }
  SHOAL_INLINE static float after(float r) {
    if (isFlushed) r = flushed(r);
    return isClamped ? clamped(r) : oneNan(r);
  }
  SHOAL_INLINE static float of(float a) { return after(F::of(before(a))); }
  SHOAL_INLINE static float of(float a, float b) { return after(F::of(before(a), before(b))); }
  SHOAL_INLINE static float of(float a, float b, float c) { return after(F::of(before(a), before(b), before(c))); }
};
template <class F, bool isClamped>
struct Twice {
  SHOAL_INLINE static double after(double r) { return isClamped ? clamped(r) : r; }
  SHOAL_INLINE static double of(double a) { return F::of(a); }
  SHOAL_INLINE static double of(double a, double b) { return after(F::of(a, b)); }
  SHOAL_INLINE static double of(double a, double b, double c) { return after(F::of(a, b, c)); }
};

template <class T, class G> struct Binary {
  static void run(Warp& w, const Instr& i, uint32_t m) { binary<T, T, G>(w, i, m); }
};
template <class T, class G> struct Ternary {
  static void run(Warp& w, const Instr& i, uint32_t m) { ternary<T, T, G>(w, i, m); }
};
template <class T, class G> struct Unary {
  static void run(Warp& w, const Instr& i, uint32_t m) { unary<T, T, G>(w, i, m); }
};

// For other rounding modes, the loop runs with the CPU's rounding mode changed.
template <class Loop, Rounding rounding>
void rounded(Warp& warp, const Instr& instr, uint32_t mask) {
  RoundingScope scope(rounding);
  Loop::run(warp, instr, mask);
}
template <class Loop>
Handler withRounding(Rounding rounding) {
  switch (rounding) {
    case Rounding::rz: return rounded<Loop, Rounding::rz>;
    case Rounding::rm: return rounded<Loop, Rounding::rm>;
    case Rounding::rp: return rounded<Loop, Rounding::rp>;
    default: return Loop::run;
  }
}

template <class F, template <class, class> class Loop>
Handler arithmetic(const Key& key) {
  if (key.type == Type::f64) return withRounding<Loop<double, Twice<F, false>>>(key.rounding);
  if (key.ftz)
    return key.saturate ? withRounding<Loop<float, Single<F, true, true>>>(key.rounding)
                        : withRounding<Loop<float, Single<F, true, false>>>(key.rounding);
  return key.saturate ? withRounding<Loop<float, Single<F, false, true>>>(key.rounding)
                      : withRounding<Loop<float, Single<F, false, false>>>(key.rounding);
}

template <class F>
Handler approximate(const Key& key) {
  return key.ftz ? unary<float, float, Single<F, true, false>> : unary<float, float, Single<F, false, false>>;
}

template <bool isMaximum>
Handler extreme(const Key& key) {
  if (key.type == Type::f64) return binary<double, double, Extreme<isMaximum, false>>;
  if (key.isNanPassed)
    return key.ftz ? binary<float, float, Single<Extreme<isMaximum, true>, true, false>>
                   : binary<float, float, Single<Extreme<isMaximum, true>, false, false>>;
  return key.ftz ? binary<float, float, Single<Extreme<isMaximum, false>, true, false>>
                 : binary<float, float, Single<Extreme<isMaximum, false>, false, false>>;
}

template <class T, T sign>
struct SignOf {
  SHOAL_INLINE static T of(T a, T b) { return (a & sign) | (b & static_cast<T>(~sign)); }
};
struct Absolute32 {
  SHOAL_INLINE static uint32_t of(uint32_t a) { return a & 0x7fffffff; }
};
struct Negate32 {
  SHOAL_INLINE static uint32_t of(uint32_t a) { return a ^ 0x80000000; }
};
struct Absolute32Flushed {
  SHOAL_INLINE static uint32_t of(uint32_t a) { return (a & 0x7f800000) == 0 ? 0 : a & 0x7fffffff; }
};
struct Negate32Flushed {
  SHOAL_INLINE static uint32_t of(uint32_t a) {
    return (a & 0x7f800000) == 0 ? (a & 0x80000000) ^ 0x80000000 : a ^ 0x80000000;
  }
};
struct Absolute64 {
  SHOAL_INLINE static uint64_t of(uint64_t a) { return a & ~(uint64_t{1} << 63); }
};
struct Negate64 {
  SHOAL_INLINE static uint64_t of(uint64_t a) { return a ^ uint64_t{1} << 63; }
};

template <class T>
void testProperty(Warp& warp, const Instr& instr, uint32_t mask) {
  const T* a = input<T>(warp, instr.a);
  uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    bool is = false;
    switch (static_cast<Property>(instr.property)) {
      case Property::finite: is = __builtin_isfinite(a[lane]); break;
      case Property::infinite: is = __builtin_isinf(a[lane]); break;
      case Property::number: is = a[lane] == a[lane]; break;
      case Property::notANumber: is = a[lane] != a[lane]; break;
      case Property::normal: is = __builtin_isnormal(a[lane]) || a[lane] == 0; break;  // zero counts, too
      case Property::subnormal: is = __builtin_isfinite(a[lane]) && !__builtin_isnormal(a[lane]) && a[lane] != 0; break;
    }
    result |= static_cast<uint32_t>(is) << lane;
  }
  setPredicate(warp, instr.to, mask, result);
}

}  // namespace

Handler findFloat(const Key& key) {
  const bool isDouble = key.type == Type::f64;
  switch (key.op) {
    case Op::add: return arithmetic<Add, Binary>(key);
    case Op::sub: return arithmetic<Sub, Binary>(key);
    case Op::multiply: return arithmetic<Mul, Binary>(key);
    case Op::fused: return arithmetic<Fused, Ternary>(key);
    case Op::divide:
      if (key.isApproximate)
        return key.ftz ? binary<float, float, Single<DivApproximate, true, false>>
                       : binary<float, float, Single<DivApproximate, false, false>>;
      return arithmetic<Div, Binary>(key);
    case Op::reciprocal:
      return isDouble && key.isApproximate ? unary<double, double, Twice<ReciprocalGross, false>>
                                           : arithmetic<Reciprocal, Unary>(key);
    case Op::squareRoot: return arithmetic<Root, Unary>(key);
    case Op::reciprocalRoot:
      if (isDouble)
        return key.ftz ? unary<double, double, Twice<ReciprocalRootGross, false>>
                       : unary<double, double, Twice<ReciprocalRoot, false>>;
      return approximate<ReciprocalRoot>(key);
    case Op::sine: return approximate<Sine>(key);
    case Op::cosine: return approximate<Cosine>(key);
    case Op::log2: return approximate<Log2>(key);
    case Op::exp2: return approximate<Exp2>(key);
    case Op::tanh: return approximate<Tanh>(key);
    case Op::minimum: return extreme<false>(key);
    case Op::maximum: return extreme<true>(key);
    case Op::absolute:
      if (isDouble) return unary<uint64_t, uint64_t, Absolute64>;
      return key.ftz ? unary<uint32_t, uint32_t, Absolute32Flushed> : unary<uint32_t, uint32_t, Absolute32>;
    case Op::negate:
      if (isDouble) return unary<uint64_t, uint64_t, Negate64>;
      return key.ftz ? unary<uint32_t, uint32_t, Negate32Flushed> : unary<uint32_t, uint32_t, Negate32>;
    case Op::copySign:
      return isDouble ? binary<uint64_t, uint64_t, SignOf<uint64_t, uint64_t{1} << 63>>
                      : binary<uint32_t, uint32_t, SignOf<uint32_t, 0x80000000u>>;
    case Op::testProperty: return isDouble ? testProperty<double> : testProperty<float>;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
