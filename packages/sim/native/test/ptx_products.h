// Matrix products and the expected elements: element types, and sums as an H200 computes them.
#pragma once

#include <map>

#include "ptx_matrix.h"

namespace matrices {

// An element type: its bits in a register, and its value.
struct Element {
  const char* name;
  int bits;
  int exponentBits, fractionBits;  // 0: not a float
  bool isSigned = false;

  double value(uint64_t raw) const {
    if (exponentBits == 0) {
      if (!isSigned) return static_cast<double>(raw);
      return static_cast<double>(raw >> (bits - 1) != 0 ? static_cast<int64_t>(raw) - (int64_t{1} << bits)
                                                        : static_cast<int64_t>(raw));
    }
    if (bits == 32) {
      // A tf32 is the upper bits of an f32.
      return static_cast<double>(cases::toF32(fractionBits == 10 ? raw & 0xffffe000 : raw));
    }
    const uint64_t size = raw & ((uint64_t{1} << (bits - 1)) - 1);
    const int exponent = static_cast<int>(size >> fractionBits), bias = (1 << (exponentBits - 1)) - 1;
    const double fraction = static_cast<double>(size & ((uint64_t{1} << fractionBits) - 1));
    double v;
    if (std::string(name) == "e4m3" && size == 0x7f) v = NAN;
    else if (std::string(name) != "e4m3" && exponent == (1 << exponentBits) - 1) v = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0) v = std::ldexp(fraction, 1 - bias - fractionBits);
    else v = std::ldexp(fraction + std::ldexp(1.0, fractionBits), exponent - bias - fractionBits);
    return raw >> (bits - 1) != 0 ? -v : v;
  }
  int leastExponent() const { return 2 - (1 << (exponentBits - 1)); }
};
const Element kF16{"f16", 16, 5, 10}, kBf16{"bf16", 16, 8, 7}, kTf32{"tf32", 32, 8, 10}, kF32{"f32", 32, 8, 23},
    kE4m3{"e4m3", 8, 4, 3}, kE5m2{"e5m2", 8, 5, 2};
const Element kS8{"s8", 8, 0, 0, true}, kU8{"u8", 8, 0, 0}, kS4{"s4", 4, 0, 0, true}, kU4{"u4", 4, 0, 0},
    kS32{"s32", 32, 0, 0, true}, kB1{"b1", 1, 0, 0};

// The bits of a value that f16 can represent.
inline uint64_t halfOf(double v) {
  static const std::map<double, unsigned> all = [] {
    std::map<double, unsigned> made;
    for (unsigned raw = 0; raw < 0x7c01; ++raw) made[kF16.value(raw)] = raw;
    return made;
  }();
  return std::isnan(v) ? 0x7fff : all.at(std::fabs(v)) | (std::signbit(v) ? 0x8000u : 0u);
}

inline uint64_t elementOf(const std::vector<uint32_t>& words, size_t start, int bits, int i) {
  const size_t bit = static_cast<size_t>(i) * static_cast<size_t>(bits);
  return words[start + bit / 32] >> bit % 32 & (bits == 32 ? ~0u : (1u << bits) - 1);
}

// Sums of floats: the addends are aligned, and cut off 25 bits below the greatest exponent.
inline int exponentOf(double v, int least) { return v == 0 ? -100000 : std::max(std::ilogb(v), least); }
inline double nearestHalf(long double total) {
  if (std::isnan(total)) return NAN;
  if (std::fabs(total) >= 65520) return std::signbit(total) ? -INFINITY : INFINITY;
  const double unit = std::ldexp(1.0, exponentOf(static_cast<double>(total), -14) - 10);
  return total == 0 ? static_cast<double>(total) : static_cast<double>(std::nearbyint(total / unit) * unit);
}
inline double addTogether(double sum, const std::vector<std::pair<double, double>>& factors, int least, bool isHalf) {
  bool isSpecial = !std::isfinite(sum);
  double plain = sum;
  int greatest = exponentOf(sum, -126);
  for (auto& [x, y] : factors) {
    plain += x * y;
    isSpecial = isSpecial || !std::isfinite(x) || !std::isfinite(y);
    if (!isSpecial && x != 0 && y != 0) greatest = std::max(greatest, exponentOf(x, least) + exponentOf(y, least));
  }
  if (isSpecial) return plain;
  if (greatest < -99999) return 0;
  long double total = std::trunc(std::ldexp(static_cast<long double>(sum), 25 - greatest));
  for (auto& [x, y] : factors) total += std::trunc(std::ldexp(static_cast<long double>(x) * y, 25 - greatest));
  total = std::ldexp(total, greatest - 25);
  if (isHalf) return nearestHalf(total);
  if (std::fabs(total) >= std::ldexp(1.0L, 128)) return total < 0 ? -INFINITY : INFINITY;
  const long double unit = std::ldexp(1.0L, exponentOf(static_cast<double>(total), -126) - 23);
  return total == 0 ? 0 : static_cast<double>(std::trunc(total / unit) * unit);
}

struct Product {
  std::string instruction;
  int m, n, k;
  Element a, b, c, d;
  Where whereA, whereB, whereC, whereD;
  int products = 1;  // products per warp; each uses some of the lanes
  bool isSaturated = false;
  bool isAnd = false;
};

// The expected element. Sixteen products are added at once, eight of tf32. An H200 multiplies 8-bit floats as f16:
// first the even pairs, then the odd pairs, and the previous sum at the end. Single lanes compute products of quads.
inline double sumOf(const Product& each, double before, const std::vector<std::pair<double, double>>& factors) {
  const bool isHalf = each.d.bits == 16;
  if (each.products != 1) {
    auto product = [&](int i) { return static_cast<float>(factors[i].first * factors[i].second); };
    auto fused = [&](int i, float sum) {
      return std::fma(static_cast<float>(factors[i].first), static_cast<float>(factors[i].second), sum);
    };
    const auto old = static_cast<float>(before);
    if (!isHalf) return static_cast<double>(old + fused(3, fused(2, fused(1, product(0) + 0.0f))));
    return nearestHalf(old + fused(1, product(0)) + fused(3, product(2)));
  }
  const bool isOfEights = each.a.bits == 8;
  std::vector<std::vector<std::pair<double, double>>> turns(
      isOfEights ? 2 : factors.size() / std::min(factors.size(), size_t{each.a.bits == 32 ? 8u : 16u}));
  for (size_t i = 0; i < factors.size(); ++i)
    turns[isOfEights ? i % 4 / 2 : i * turns.size() / factors.size()].push_back(factors[i]);
  double sum = isOfEights ? 0 : before;
  for (auto& turn : turns) sum = addTogether(sum, turn, isOfEights ? -14 : each.a.leastExponent(), isHalf);
  if (!isOfEights) return sum;
  return isHalf ? nearestHalf(sum + before) : static_cast<double>(static_cast<float>(sum) + static_cast<float>(before));
}

}  // namespace matrices
