// The device's floating point: subnormals flushed if requested, results clamped, a single NaN.
#pragma once

#include <fenv.h>

#include "lanes.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

SHOAL_INLINE float asFloat(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
SHOAL_INLINE uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
SHOAL_INLINE double asDouble(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}
SHOAL_INLINE uint64_t bitsOf(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

SHOAL_INLINE float flushed(float value) {
  const uint32_t bits = bitsOf(value);
  return asFloat((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
}
SHOAL_INLINE float oneNan(float value) { return value != value ? asFloat(0x7fffffff) : value; }
SHOAL_INLINE float clamped(float value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; }
SHOAL_INLINE double clamped(double value) { return value > 0 ? (value < 1 ? value : 1.0) : 0.0; }

// fp16 and bf16 are computed in float. Since 24 ≥ 2·11 + 2, rounding to float and then to 16 bits is correctly rounded.
SHOAL_INLINE float fromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, size = static_cast<uint32_t>(half & 0x7fff) << 13;
  const uint32_t finite = bitsOf(asFloat(size) * 0x1p112f);
  return asFloat(sign | ((half & 0x7c00) == 0x7c00 ? size | 0x7f800000 : finite));
}

// Returns 1 if the value rounds up. `rest` is the cut-off part, `half` is half a unit.
SHOAL_INLINE uint32_t roundUp(Rounding rounding, bool isNegative, bool isOdd, uint64_t rest, uint64_t half) {
  if (rest == 0) return 0;
  switch (rounding) {
    case Rounding::rz: return 0;
    case Rounding::rm: return isNegative ? 1 : 0;
    case Rounding::rp: return isNegative ? 0 : 1;
    case Rounding::rna: return rest >= half ? 1 : 0;
    default: return rest > half || (rest == half && isOdd) ? 1 : 0;
  }
}

// Converts from a double, which exactly holds every float and every product of two floats.
SHOAL_INLINE uint16_t toSmall(double value, Rounding rounding, int exponentBits, int fractionBits, bool isFinite) {
  const uint64_t bits = bitsOf(value);
  const bool isNegative = bits >> 63 != 0;
  const auto sign = static_cast<uint32_t>(isNegative) << (exponentBits + fractionBits);
  const int bias = (1 << (exponentBits - 1)) - 1;
  const uint32_t infinity = ((1u << exponentBits) - 1) << fractionBits;
  if (value != value) return 0x7fff;
  if ((bits << 1) == 0) return static_cast<uint16_t>(sign);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent == 1024) return static_cast<uint16_t>(sign | (isFinite ? infinity - 1 : infinity));
  if (exponent == -1023) {  // a subnormal double is far below the smallest 16-bit value
    const bool isUp = (rounding == Rounding::rp && !isNegative) || (rounding == Rounding::rm && isNegative);
    return static_cast<uint16_t>(sign | (isUp ? 1 : 0));
  }
  const uint64_t fraction = (bits & 0xfffffffffffff) | uint64_t{1} << 52;
  int drop = 52 - fractionBits;
  int biased = exponent + bias;
  if (biased <= 0) {
    drop += 1 - biased;
    biased = 0;
  }
  if (drop > 63) drop = 63;
  const uint64_t kept = drop > 53 ? 0 : fraction >> drop;
  const uint64_t rest = drop > 53 ? 1 : fraction & ((uint64_t{1} << drop) - 1);
  const uint64_t half = drop > 53 ? 2 : uint64_t{1} << (drop - 1);
  uint32_t result = static_cast<uint32_t>(kept);
  result = biased == 0 ? result
                       : (result & ((1u << fractionBits) - 1)) |
                             static_cast<uint32_t>(biased < (1 << exponentBits) - 1 ? biased : 0) << fractionBits;
  const bool isBeyond = biased >= (1 << exponentBits) - 1;
  if (!isBeyond) result += roundUp(rounding, isNegative, (kept & 1) != 0, rest, half);
  if (isBeyond || result >= infinity) {
    const bool isDown = rounding == Rounding::rz || (rounding == Rounding::rm && !isNegative) ||
                        (rounding == Rounding::rp && isNegative);
    result = isDown || isFinite ? infinity - 1 : infinity;
  }
  return static_cast<uint16_t>(sign | result);
}

SHOAL_INLINE uint16_t toHalf(double value, Rounding rounding = Rounding::rn) {
  return toSmall(value, rounding, 5, 10, false);
}
SHOAL_INLINE float fromBf16(uint16_t bits) { return asFloat(static_cast<uint32_t>(bits) << 16); }
SHOAL_INLINE uint16_t toBf16(double value, Rounding rounding = Rounding::rn) {
  return toSmall(value, rounding, 8, 7, false);
}

// 8-bit floats. e4m3 has no infinity, and one NaN per sign.
SHOAL_INLINE float fromEight(uint8_t bits, bool isE4m3) {
  const int fractionBits = isE4m3 ? 3 : 2, bias = isE4m3 ? 7 : 15;
  const int exponent = (bits & 0x7f) >> fractionBits, fraction = bits & ((1 << fractionBits) - 1);
  const bool isNan = isE4m3 ? (bits & 0x7f) == 0x7f : (bits & 0x7f) > 0x7c;
  float value;
  if (isNan) return asFloat(0x7fffffff);
  if (!isE4m3 && (bits & 0x7f) == 0x7c) value = __builtin_inff();
  else if (exponent == 0) value = static_cast<float>(fraction) * (isE4m3 ? 0x1p-9f : 0x1p-16f);
  else
    value = asFloat(static_cast<uint32_t>(exponent - bias + 127) << 23 | static_cast<uint32_t>(fraction)
                                                                             << (23 - fractionBits));
  return (bits & 0x80) != 0 ? -value : value;
}

// Changes the CPU's rounding mode while this object lives.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) : previous_(fegetround()) {
    fesetround(rounding == Rounding::rz   ? FE_TOWARDZERO
               : rounding == Rounding::rm ? FE_DOWNWARD
               : rounding == Rounding::rp ? FE_UPWARD
                                          : FE_TONEAREST);
  }
  ~RoundingScope() { fesetround(previous_); }

 private:
  int previous_;
};

}  // namespace

}  // namespace shoal::ptx::SHOAL_LANES
