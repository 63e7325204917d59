// Narrow floating-point types. Conversion to float is exact; conversion from float rounds to nearest, ties to even.
#pragma once

#include <cstdint>
#include <cstring>

namespace shoal::nccl {

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds a magnitude to a format with this mantissa and bias. `step` is a power of two at which floats are spaced like
// the format's smallest number, so that adding it rounds subnormals.
template <int mantissaBits, int bias>
inline uint32_t roundMagnitude(uint32_t magnitude, float step) {
  constexpr int dropped = 23 - mantissaBits;
  constexpr uint32_t smallestNormal = static_cast<uint32_t>(127 - bias + 1) << 23;
  const uint32_t subnormal = bitsOf(floatOf(magnitude) + step) - bitsOf(step);
  const uint32_t rounded = magnitude + ((1u << (dropped - 1)) - 1) + ((magnitude >> dropped) & 1);
  const uint32_t normal = (rounded - (static_cast<uint32_t>(127 - bias) << 23)) >> dropped;
  return magnitude < smallestNormal ? subnormal : normal;
}

struct Half {
  uint16_t bits;
  static float decode(Half half) {
    const uint32_t magnitude = static_cast<uint32_t>(half.bits & 0x7fff) << 13;
    const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000) << 16;
    const float scaled = floatOf(magnitude) * 0x1p112f;
    const uint32_t result = magnitude >= (0x7c00u << 13) ? magnitude | 0x7f800000u : bitsOf(scaled);
    return floatOf(result | sign);
  }
  static Half encode(float value) {
    const uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffff;
    uint32_t result = roundMagnitude<10, 15>(magnitude, 0.5f);
    if (result > 0x7c00 || magnitude >= 0x47800000) result = 0x7c00;
    if (magnitude > 0x7f800000) result = 0x7e00;
    return {static_cast<uint16_t>(result | ((bits >> 16) & 0x8000))};
  }
};

struct Bfloat16 {
  uint16_t bits;
  static float decode(Bfloat16 value) { return floatOf(static_cast<uint32_t>(value.bits) << 16); }
  static Bfloat16 encode(float value) {
    const uint32_t bits = bitsOf(value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return {static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded)};
  }
};

// As in NCCL's conversions, a value that is too large becomes the largest finite value.
struct Float8E4M3 {
  uint8_t bits;
  static float decode(Float8E4M3 value) {
    const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7f) << 20;
    const uint32_t sign = static_cast<uint32_t>(value.bits & 0x80) << 24;
    const uint32_t result = (value.bits & 0x7f) == 0x7f ? 0x7fc00000u : bitsOf(floatOf(magnitude) * 0x1p120f);
    return floatOf(result | sign);
  }
  static Float8E4M3 encode(float value) {
    const uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffff;
    uint32_t result = roundMagnitude<3, 7>(magnitude, 0x1p14f);
    if (result > 0x7e || magnitude >= bitsOf(448.0f)) result = 0x7e;
    if (magnitude > 0x7f800000) result = 0x7f;
    return {static_cast<uint8_t>(result | ((bits >> 24) & 0x80))};
  }
};

struct Float8E5M2 {
  uint8_t bits;
  static float decode(Float8E5M2 value) { return Half::decode({static_cast<uint16_t>(value.bits << 8)}); }
  static Float8E5M2 encode(float value) {
    const uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffff;
    uint32_t result = roundMagnitude<2, 15>(magnitude, 0x1p7f);
    if (result > 0x7b || magnitude >= bitsOf(57344.0f)) result = 0x7b;
    if (magnitude > 0x7f800000) result = 0x7f;
    return {static_cast<uint8_t>(result | ((bits >> 24) & 0x80))};
  }
};

}  // namespace shoal::nccl
