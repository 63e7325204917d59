// References for the tests of floating-point instructions: roundings, and 16-bit floats.
#pragma once

#include <cfenv>

#include "ptx_cases.h"

namespace cases {

inline float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }
const std::pair<const char*, int> kRoundings[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

template <class F>
auto rounded(int mode, F&& of) {
  const int before = fegetround();
  fesetround(mode);
  volatile auto result = of();
  fesetround(before);
  return result;
}

// A float format of at most 16 bits. It lists the values in order, and rounds by searching for the neighbours.
struct FloatFormat {
  int exponentBits, fractionBits;
  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  unsigned infinity() const { return ((1u << exponentBits) - 1) << fractionBits; }
  double value(unsigned bits) const {
    const unsigned size = bits & 0x7fff;
    const int exponent = static_cast<int>(size >> fractionBits);
    const double fraction = size & ((1u << fractionBits) - 1);
    double v;
    if (exponent == (1 << exponentBits) - 1) v = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0) v = std::ldexp(fraction, 1 - bias() - fractionBits);
    else v = std::ldexp(fraction + (1 << fractionBits), exponent - bias() - fractionBits);
    return bits & 0x8000 ? -v : v;
  }
  // Rounds an exact value, possibly given as a long double.
  unsigned round(long double v, int mode = FE_TONEAREST) const {
    if (std::isnan(v)) return 0x7fff;
    const unsigned sign = std::signbit(v) ? 0x8000 : 0;
    const long double size = std::fabs(v);
    if (std::isinf(v)) return sign | infinity();
    unsigned low = 0, high = infinity();
    while (low < high) {  // find the largest value that is not above
      const unsigned middle = (low + high + 1) / 2;
      if (middle < infinity() && static_cast<long double>(value(middle)) <= size) low = middle;
      else high = middle - 1;
    }
    const long double below = value(low);
    if (below == size) return sign | low;
    const long double above =
        low + 1 < infinity() ? static_cast<long double>(value(low + 1)) : std::ldexp(1.0L, bias() + 1);
    bool isUp = false;
    if (mode == FE_TONEAREST) isUp = size - below > above - size || (size - below == above - size && (low & 1));
    else if (mode == FE_UPWARD) isUp = sign == 0;
    else if (mode == FE_DOWNWARD) isUp = sign != 0;
    return sign | (low + (isUp ? 1 : 0));
  }
};

const FloatFormat kHalf{5, 10}, kBf16{8, 7}, kSingle{8, 23};

}  // namespace cases
