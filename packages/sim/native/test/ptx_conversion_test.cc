// Conversions between all number types with all roundings, checked against an independent reference.
#include <algorithm>

#include "ptx_floats.h"

using namespace cases;

namespace {

// The sign of a double NaN, and as much of its payload as fits.
uint64_t nanOf(uint64_t bits, const FloatFormat& type) {
  const uint64_t payload = (bits & 0xfffffffffffff) >> (52 - type.fractionBits) | uint64_t{1}
                                                                                      << (type.fractionBits - 1);
  return bits >> 63 << (type.exponentBits + type.fractionBits) | static_cast<uint64_t>(type.infinity()) | payload;
}

// A small float format, with all its values from zero up.
struct Small {
  const char* name;
  unsigned exponentBits, fractionBits, shift;  // shift: distance of the two values in a pair
  unsigned largest, nan;                       // bits of the largest number, and of the result for a NaN
  double value(unsigned bits) const {
    const int bias = (1 << (exponentBits - 1)) - 1, exponent = static_cast<int>(bits >> fractionBits),
              units = static_cast<int>(bits & ((1u << fractionBits) - 1));
    return exponent == 0 ? std::ldexp(units, 1 - bias - static_cast<int>(fractionBits))
                         : std::ldexp(units + (1 << fractionBits), exponent - bias - static_cast<int>(fractionBits));
  }
  uint64_t nearest(double v, bool isRelu) const {
    if (std::isnan(v)) return nan;
    if (isRelu && (v <= 0)) return 0;
    const uint64_t sign = std::signbit(v) ? uint64_t{1} << (exponentBits + fractionBits) : 0;
    const double size = std::min(std::fabs(v), value(largest));
    unsigned best = 0;
    for (unsigned bits = 1; bits <= largest; ++bits) {
      const double closer = std::fabs(size - value(best)) - std::fabs(size - value(bits));
      if (closer > 0 || (closer == 0 && bits % 2 == 0)) best = bits;
    }
    return sign | best;
  }
};
const Small kSmalls[] = {{"e4m3x2", 4, 3, 8, 0x7e, 0x7f},
                         {"e5m2x2", 5, 2, 8, 0x7b, 0x7f},
                         {"e2m3x2", 2, 3, 8, 0x1f, 0x1f},
                         {"e3m2x2", 3, 2, 8, 0x1f, 0x1f},
                         {"e2m1x2", 2, 1, 4, 0x7, 0x7}};

}  // namespace

TEST(conversions) {
  std::vector<Case> all;
  struct Integer {
    const char* name;
    const char* reg;
    unsigned bits;
    bool isSigned;
  };
  const Integer integers[] = {{"u8", "b32", 8, false},   {"s8", "b32", 8, true},    {"u16", "b16", 16, false},
                              {"s16", "b16", 16, true},  {"u32", "b32", 32, false}, {"s32", "b32", 32, true},
                              {"u64", "b64", 64, false}, {"s64", "b64", 64, true}};
  auto valueOf = [](const Integer& type, uint64_t bits) -> __int128 {
    bits = masked(bits, type.bits / 8);
    if (!type.isSigned) return bits;
    return static_cast<int64_t>(bits << (64 - type.bits)) >> (64 - type.bits);
  };
  auto clamp = [](__int128 v, const Integer& type) {
    const __int128 top = type.isSigned ? (__int128{1} << (type.bits - 1)) - 1 : (__int128{1} << type.bits) - 1,
                   bottom = type.isSigned ? -top - 1 : 0;
    return v > top ? top : v < bottom ? bottom : v;
  };
  // The content of a register that is larger than the type.
  auto inRegister = [](__int128 v, const Integer& type) {
    const uint64_t low = masked(static_cast<uint64_t>(v), type.bits / 8);
    return type.isSigned ? static_cast<uint64_t>(static_cast<int64_t>(low << (64 - type.bits)) >> (64 - type.bits))
                         : low;
  };
  for (const Integer& to : integers) {
    for (const Integer& from : integers) {
      for (const bool isSaturated : {false, true}) {
        all.push_back({std::string("cvt.") + (isSaturated ? "sat." : "") + to.name + "." + from.name + " %d, %a;",
                       to.reg,
                       from.reg,
                       "b64",
                       "b64",
                       [=](uint64_t a, uint64_t, uint64_t) {
                         const __int128 v = valueOf(from, a);
                         return inRegister(isSaturated ? clamp(v, to) : v, to);
                       },
                       {}});
      }
    }
  }
  for (const Integer& type : integers) {
    for (auto& [name, mode] : kRoundings) {
      const int m = mode;
      all.push_back({std::string("cvt.") + name + ".f32." + type.name + " %d, %a;",
                     "b32",
                     type.reg,
                     "b64",
                     "b64",
                     [=](uint64_t a, uint64_t, uint64_t) {
                       const __int128 v = valueOf(type, a);
                       volatile int64_t s = static_cast<int64_t>(v);
                       volatile uint64_t u = static_cast<uint64_t>(v);
                       return bitsF32(
                           rounded(m, [&] { return v < 0 ? static_cast<float>(s) : static_cast<float>(u); }));
                     },
                     {}});
      all.push_back({std::string("cvt.") + name + ".f64." + type.name + " %d, %a;",
                     "b64",
                     type.reg,
                     "b64",
                     "b64",
                     [=](uint64_t a, uint64_t, uint64_t) {
                       const __int128 v = valueOf(type, a);
                       volatile int64_t s = static_cast<int64_t>(v);
                       volatile uint64_t u = static_cast<uint64_t>(v);
                       return bitsF64(
                           rounded(m, [&] { return v < 0 ? static_cast<double>(s) : static_cast<double>(u); }));
                     },
                     {}});
      all.push_back({std::string("cvt.") + name + ".f16." + type.name + " %d, %a;",
                     "b16",
                     type.reg,
                     "b64",
                     "b64",
                     [=](uint64_t a, uint64_t, uint64_t) {
                       return static_cast<uint64_t>(kHalf.round(static_cast<long double>(valueOf(type, a)), m));
                     },
                     {}});
      for (const char* source : {"f16", "f32", "f64"}) {
        const std::string from = source;
        const char* reg = from == "f16" ? "b16" : from == "f32" ? "b32" : "b64";
        all.push_back({std::string("cvt.") + name + "i." + type.name + "." + from + " %d, %a;",
                       type.reg,
                       reg,
                       "b64",
                       "b64",
                       [=](uint64_t a, uint64_t, uint64_t) -> uint64_t {
                         const double v = from == "f16"   ? kHalf.value(static_cast<unsigned>(a))
                                          : from == "f32" ? static_cast<double>(toF32(a))
                                                          : toF64(a);
                         if (std::isnan(v))
                           return type.bits == 64 || from == "f64"
                                      ? inRegister(static_cast<__int128>(uint64_t{1} << (type.bits - 1)), type)
                                      : 0;
                         volatile double input = v;
                         const long double whole =
                             rounded(m, [&] { return std::nearbyint(static_cast<double>(input)); });
                         const long double top =
                             std::ldexp(1.0L, static_cast<int>(type.bits - (type.isSigned ? 1 : 0)));
                         if (whole >= top) return inRegister(clamp(__int128{1} << 100, type), type);
                         if (whole < (type.isSigned ? -top : 0.0L))
                           return inRegister(clamp(-(__int128{1} << 100), type), type);
                         return inRegister(static_cast<__int128>(whole), type);
                       },
                       {}});
      }
    }
  }
  for (auto& [name, mode] : kRoundings) {
    const int m = mode;
    const std::string r = std::string("cvt.") + name;
    all.push_back({r + ".f32.f64 %d, %a;",
                   "b32",
                   "b64",
                   "b64",
                   "b64",
                   [=](uint64_t a, uint64_t, uint64_t) {
                     volatile double v = toF64(a);
                     return std::isnan(v) ? nanOf(a, kSingle)
                                          : bitsF32(rounded(m, [&] { return static_cast<float>(v); }));
                   },
                   {}});
    all.push_back(
        {r + ".f16.f32 %d, %a;",
         "b16",
         "b32",
         "b64",
         "b64",
         [=](uint64_t a, uint64_t, uint64_t) { return uint64_t{kHalf.round(static_cast<long double>(toF32(a)), m)}; },
         {}});
    all.push_back({r + ".f16.f64 %d, %a;",
                   "b16",
                   "b64",
                   "b64",
                   "b64",
                   [=](uint64_t a, uint64_t, uint64_t) {
                     return std::isnan(toF64(a)) ? nanOf(a, kHalf) : kHalf.round(toF64(a), m);
                   },
                   {}});
    all.push_back({r + ".bf16.f64 %d, %a;",
                   "b16",
                   "b64",
                   "b64",
                   "b64",
                   [=](uint64_t a, uint64_t, uint64_t) {
                     return std::isnan(toF64(a)) ? nanOf(a, kBf16) : kBf16.round(toF64(a), m);
                   },
                   {}});
    all.push_back(
        {r + ".bf16.f32 %d, %a;",
         "b16",
         "b32",
         "b64",
         "b64",
         [=](uint64_t a, uint64_t, uint64_t) { return uint64_t{kBf16.round(static_cast<long double>(toF32(a)), m)}; },
         {}});
    all.push_back({r + "i.f32.f32 %d, %a;",
                   "b32",
                   "b32",
                   "b64",
                   "b64",
                   [=](uint64_t a, uint64_t, uint64_t) {
                     volatile float v = toF32(a);
                     return bitsF32(rounded(m, [&] { return std::nearbyint(static_cast<float>(v)); }));
                   },
                   {}});
    all.push_back({r + "i.f64.f64 %d, %a;", "b64", "b64", "b64", "b64",
                   [=](uint64_t a, uint64_t, uint64_t) {
                     volatile double v = toF64(a);
                     return bitsF64(rounded(m, [&] { return std::nearbyint(static_cast<double>(v)); }));
                   },
                   sameF64});
    if (m != FE_TONEAREST && m != FE_TOWARDZERO) continue;
    for (const FloatFormat& type : {kHalf, kBf16}) {
      all.push_back({r + (type.exponentBits == 5 ? ".f16x2.f32 %d, %a, %b;" : ".bf16x2.f32 %d, %a, %b;"),
                     "b32",
                     "b32",
                     "b32",
                     "b64",
                     [=](uint64_t a, uint64_t b, uint64_t) {
                       return uint64_t{type.round(static_cast<long double>(toF32(b)), m)} |
                              uint64_t{type.round(static_cast<long double>(toF32(a)), m)} << 16;
                     },
                     {}});
    }
  }
  all.push_back({"cvt.f64.f32 %d, %a;", "b64", "b32", "b64", "b64",
                 [](uint64_t a, uint64_t, uint64_t) { return bitsF64(static_cast<double>(toF32(a))); }, sameF64});
  all.push_back({"cvt.f32.f16 %d, %a;",
                 "b32",
                 "b16",
                 "b64",
                 "b64",
                 [](uint64_t a, uint64_t, uint64_t) {
                   return bitsF32(static_cast<float>(kHalf.value(static_cast<unsigned>(a))));
                 },
                 {}});
  all.push_back({"cvt.f32.bf16 %d, %a;",
                 "b32",
                 "b16",
                 "b64",
                 "b64",
                 [](uint64_t a, uint64_t, uint64_t) { return (a & 0xffff) << 16; },
                 {}});
  all.push_back({"cvt.sat.f32.f32 %d, %a;",
                 "b32",
                 "b32",
                 "b64",
                 "b64",
                 [](uint64_t a, uint64_t, uint64_t) {
                   const float v = toF32(a);
                   return bitsF32(v > 0 ? (v < 1 ? v : 1.0f) : 0.0f);
                 },
                 {}});
  run(all);
}

TEST(small_floats) {
  std::vector<Case> all;
  for (const Small& type : kSmalls) {
    const std::string name = type.name;
    const char* reg = type.shift == 4 ? "b8" : "b16";
    for (const bool isRelu : {false, true}) {
      const std::string relu = isRelu ? ".relu" : "";
      all.push_back({"cvt.rn.satfinite" + relu + "." + name + ".f32 %d, %a, %b;",
                     reg,
                     "b32",
                     "b32",
                     "b64",
                     [=](uint64_t a, uint64_t b, uint64_t) {
                       return type.nearest(static_cast<double>(toF32(b)), isRelu) |
                              type.nearest(static_cast<double>(toF32(a)), isRelu) << type.shift;
                     },
                     {}});
      if (type.exponentBits > 3) {
        all.push_back({"cvt.rn.satfinite" + relu + "." + name + ".f16x2 %d, %a;",
                       reg,
                       "b32",
                       "b64",
                       "b64",
                       [=](uint64_t a, uint64_t, uint64_t) {
                         return type.nearest(kHalf.value(a & 0xffff), isRelu) |
                                type.nearest(kHalf.value(a >> 16 & 0xffff), isRelu) << type.shift;
                       },
                       {}});
      }
      std::vector<uint64_t> known(256);
      for (unsigned bits = 0; bits < 256; ++bits) {
        const unsigned sign = 1u << (type.exponentBits + type.fractionBits), size = bits & (sign - 1);
        const bool isNan = type.exponentBits == 4 ? size == 0x7f : type.exponentBits == 5 && size > 0x7c;
        double v = isNan ? NAN : type.exponentBits == 5 && size == 0x7c ? INFINITY : type.value(size);
        if ((bits & sign) != 0) v = -v;
        known[bits] = kHalf.round(isRelu && v <= 0 ? 0.0 : v);
      }
      all.push_back({"cvt.rn" + relu + ".f16x2." + name + " %d, %a;",
                     "b32",
                     reg,
                     "b64",
                     "b64",
                     [=](uint64_t a, uint64_t, uint64_t) {
                       const uint64_t field = (uint64_t{1} << type.shift) - 1;
                       return known[a & field] | known[a >> type.shift & field] << 16;
                     },
                     {}});
    }
  }
  // Conversion to powers of two.
  for (const bool isUp : {false, true}) {
    for (const bool isFinite : {false, true}) {
      auto scale = [=](float v) -> uint64_t {
        v = std::fabs(v);
        if (std::isnan(v)) return 0xff;
        if (std::isinf(v)) return isFinite ? 0xfe : 0xff;
        int exponent = v < std::ldexp(1.0f, -126) ? -127 : std::ilogb(v);
        const double here = exponent == -127 ? 0 : std::ldexp(1.0, exponent);
        if (isUp && (exponent == -127 ? v > std::ldexp(1.0f, -127) : static_cast<double>(v) > here)) ++exponent;
        return exponent == 128 && isFinite ? 0xfe : static_cast<uint64_t>(exponent + 127);
      };
      const std::string tail = std::string(isUp ? ".rp" : ".rz") + (isFinite ? ".satfinite" : "") + ".ue8m0x2";
      all.push_back({"cvt" + tail + ".f32 %d, %a, %b;",
                     "b16",
                     "b32",
                     "b32",
                     "b64",
                     [=](uint64_t a, uint64_t b, uint64_t) { return scale(toF32(b)) | scale(toF32(a)) << 8; },
                     {}});
      all.push_back(
          {"cvt" + tail + ".bf16x2 %d, %a;",
           "b16",
           "b32",
           "b64",
           "b64",
           [=](uint64_t a, uint64_t, uint64_t) { return scale(kBf16.value(a)) | scale(kBf16.value(a >> 16)) << 8; },
           {}});
    }
  }
  all.push_back({"cvt.rn.bf16x2.ue8m0x2 %d, %a;",
                 "b32",
                 "b16",
                 "b64",
                 "b64",
                 [](uint64_t a, uint64_t, uint64_t) {
                   auto power = [](uint64_t bits) {
                     return bits == 255
                                ? uint64_t{0x7fff}
                                : bitsF32(static_cast<float>(std::ldexp(1.0, static_cast<int>(bits) - 127))) >> 16;
                   };
                   return power(a & 255) | power(a >> 8 & 255) << 16;
                 },
                 {}});
  for (const bool isBf16 : {false, true}) {
    for (const bool isNear : {false, true}) {
      all.push_back(
          {std::string("cvt.") + (isNear ? "rn" : "rz") + ".satfinite." + (isBf16 ? "bf16" : "f16") + ".f32 %d, %a;",
           "b16",
           "b32",
           "b64",
           "b64",
           [=](uint64_t a, uint64_t, uint64_t) -> uint64_t {
             const float v = toF32(a);
             if (std::isnan(v)) return 0x7fff;
             const uint64_t sign = std::signbit(v) ? 0x8000 : 0, top = isBf16 ? 0x7f7f : 0x7bff;
             const double size = std::fabs(static_cast<double>(v));
             auto value = [=](uint64_t bits) { return (isBf16 ? kBf16 : kHalf).value(static_cast<unsigned>(bits)); };
             uint64_t low = 0, high = top;
             while (low < high) {
               const uint64_t middle = (low + high + 1) / 2;
               if (value(middle) <= size) low = middle;
               else high = middle - 1;
             }
             if (low == top || !isNear) return sign | low;
             const double under = size - value(low), over = value(low + 1) - size;
             return sign | (under > over || (under == over && low % 2 == 1) ? low + 1 : low);
           },
           {}});
    }
  }
  run(all);
}
