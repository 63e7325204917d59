// Floating-point instructions and conversions of every type and rounding, against a reference of its own.
#include <cfenv>

#include "ptx_cases.h"

using namespace cases;

namespace {

float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }
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

// A small float: its values in order, and rounding by looking for the neighbours.
struct Small {
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
  // Of an exact value, which may be given as a long double.
  unsigned round(long double v, int mode = FE_TONEAREST) const {
    if (std::isnan(v)) return 0x7fff;
    const unsigned sign = std::signbit(v) ? 0x8000 : 0;
    const long double size = std::fabs(v);
    if (std::isinf(v)) return sign | infinity();
    unsigned low = 0, high = infinity();
    while (low < high) {  // the largest that is not above
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
const Small kHalf{5, 10}, kBf16{8, 7}, kSingle{8, 23};
// Of a NaN that was a double, its sign and as much of its payload as there is room for.
uint64_t nanOf(uint64_t bits, const Small& type) {
  const uint64_t payload = (bits & 0xfffffffffffff) >> (52 - type.fractionBits) | uint64_t{1}
                                                                                      << (type.fractionBits - 1);
  return bits >> 63 << (type.exponentBits + type.fractionBits) | static_cast<uint64_t>(type.infinity()) | payload;
}

bool closeTo(uint64_t got, uint64_t want, double ulps) {
  const float x = toF32(got), y = toF32(want);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  const float unit = std::nextafter(std::fabs(y), INFINITY) - std::fabs(y);
  return std::fabs(static_cast<double>(x) - static_cast<double>(y)) <= ulps * static_cast<double>(unit);
}

}  // namespace

TEST(singles) {
  std::vector<Case> all;
  for (auto& [name, mode] : kRoundings) {
    for (const bool isFlushed : {false, true}) {
      const std::string tail = std::string(".") + name + (isFlushed ? ".ftz" : "") + ".f32";
      const int m = mode;
      auto pushes = [&](const std::string& op, auto of) {
        all.push_back({op + tail + " %d, %a, %b;",
                       "b32",
                       "b32",
                       "b32",
                       "b32",
                       [=](uint64_t a, uint64_t b, uint64_t) {
                         volatile float x = toF32(a), y = toF32(b);
                         if (isFlushed) x = flushed(x), y = flushed(y);
                         const float r = rounded(m, [&] { return of(x, y); });
                         return bitsF32(isFlushed ? flushed(r) : r);
                       },
                       {}});
      };
      pushes("add", [](float a, float b) { return a + b; });
      pushes("sub", [](float a, float b) { return a - b; });
      pushes("mul", [](float a, float b) { return a * b; });
      pushes("div", [](float a, float b) { return a / b; });
      all.push_back({"fma" + tail + " %d, %a, %b, %c;",
                     "b32",
                     "b32",
                     "b32",
                     "b32",
                     [=](uint64_t a, uint64_t b, uint64_t c) {
                       volatile float x = toF32(a), y = toF32(b), z = toF32(c);
                       if (isFlushed) x = flushed(x), y = flushed(y), z = flushed(z);
                       const float r = rounded(m, [&] {
                         return std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
                       });
                       return bitsF32(isFlushed ? flushed(r) : r);
                     },
                     {}});
      auto one = [&](const std::string& op, auto of) {
        all.push_back({op + tail + " %d, %a;",
                       "b32",
                       "b32",
                       "b32",
                       "b32",
                       [=](uint64_t a, uint64_t, uint64_t) {
                         volatile float x = toF32(a);
                         if (isFlushed) x = flushed(x);
                         const float r = rounded(m, [&] { return of(static_cast<float>(x)); });
                         return bitsF32(isFlushed ? flushed(r) : r);
                       },
                       {}});
      };
      one("sqrt", [](float a) { return std::sqrt(a); });
      one("rcp", [](float a) { return 1.0f / a; });
    }
  }
  auto two = [&](const std::string& text, auto of) {
    all.push_back({text + ".f32 %d, %a, %b;",
                   "b32",
                   "b32",
                   "b32",
                   "b32",
                   [=](uint64_t a, uint64_t b, uint64_t) { return of(a, b); },
                   {}});
  };
  auto extreme = [](uint64_t a, uint64_t b, bool isMaximum, bool isNanPassed) {
    const float x = toF32(a), y = toF32(b);
    if (std::isnan(x) || std::isnan(y))
      return isNanPassed || (std::isnan(x) && std::isnan(y)) ? uint64_t{0x7fffffff} : std::isnan(x) ? b : a;
    if (x == y) return isMaximum ? (std::signbit(x) ? b : a) : (std::signbit(x) ? a : b);
    return (x < y) != isMaximum ? a : b;
  };
  two("min", [=](uint64_t a, uint64_t b) { return extreme(a, b, false, false); });
  two("max", [=](uint64_t a, uint64_t b) { return extreme(a, b, true, false); });
  two("min.NaN", [=](uint64_t a, uint64_t b) { return extreme(a, b, false, true); });
  two("max.NaN", [=](uint64_t a, uint64_t b) { return extreme(a, b, true, true); });
  two("copysign", [](uint64_t a, uint64_t b) { return (a & 0x80000000) | (b & 0x7fffffff); });
  two("add.sat", [](uint64_t a, uint64_t b) {
    const float r = toF32(a) + toF32(b);
    return bitsF32(std::isnan(r) || r <= 0 ? 0.0f : r > 1 ? 1.0f : r);
  });
  auto near = [&](const std::string& text, double ulps, auto of) {
    all.push_back(
        {text + ".f32 %d, %a;", "b32", "b32", "b32", "b32",
         [=](uint64_t a, uint64_t, uint64_t) { return bitsF32(static_cast<float>(of(static_cast<double>(toF32(a))))); },
         [=](uint64_t got, uint64_t want) { return closeTo(got, want, ulps); }});
  };
  near("ex2.approx", 2, [](double x) { return std::exp2(x); });
  near("lg2.approx", 2, [](double x) { return std::log2(x); });
  // Near one the error is absolute: 2^-22.
  all.back().agrees = [](uint64_t got, uint64_t want) {
    return closeTo(got, want, 2) ||
           std::fabs(static_cast<double>(toF32(got)) - static_cast<double>(toF32(want))) <= 0x1p-22;
  };
  near("rsqrt.approx", 2, [](double x) { return 1 / std::sqrt(x); });
  near("rcp.approx", 1, [](double x) { return 1 / x; });
  near("sqrt.approx", 2, [](double x) { return std::sqrt(x); });
  near("tanh.approx", 16384, [](double x) { return std::tanh(x); });
  for (const char* kind : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
    const std::string property = kind;
    all.push_back({"testp." + property + ".f32 %p, %a; selp.u32 %d, 1, 0, %p;",
                   "b32",
                   "b32",
                   "b32",
                   "b32",
                   [=](uint64_t a, uint64_t, uint64_t) {
                     const int is = std::fpclassify(toF32(a));
                     if (property == "finite") return uint64_t{is != FP_NAN && is != FP_INFINITE};
                     if (property == "infinite") return uint64_t{is == FP_INFINITE};
                     if (property == "number") return uint64_t{is != FP_NAN};
                     if (property == "notanumber") return uint64_t{is == FP_NAN};
                     return property == "normal" ? uint64_t{is == FP_NORMAL || is == FP_ZERO}
                                                 : uint64_t{is == FP_SUBNORMAL};
                   },
                   {}});
  }
  for (auto& [name, of] : std::initializer_list<std::pair<const char*, std::function<bool(float, float)>>>{
           {"eq", [](float a, float b) { return a == b; }},
           {"ne", [](float a, float b) { return a < b || a > b; }},
           {"lt", [](float a, float b) { return a < b; }},
           {"le", [](float a, float b) { return a <= b; }},
           {"gt", [](float a, float b) { return a > b; }},
           {"ge", [](float a, float b) { return a >= b; }},
           {"equ", [](float a, float b) { return !(a < b) && !(a > b); }},
           {"neu", [](float a, float b) { return a != b; }},
           {"ltu", [](float a, float b) { return !(a >= b); }},
           {"leu", [](float a, float b) { return !(a > b); }},
           {"gtu", [](float a, float b) { return !(a <= b); }},
           {"geu", [](float a, float b) { return !(a < b); }},
           {"num", [](float a, float b) { return !std::isnan(a) && !std::isnan(b); }},
           {"nan", [](float a, float b) { return std::isnan(a) || std::isnan(b); }}}) {
    auto holds = of;
    all.push_back({std::string("set.") + name + ".u32.f32 %d, %a, %b;",
                   "b32",
                   "b32",
                   "b32",
                   "b32",
                   [=](uint64_t a, uint64_t b, uint64_t) { return holds(toF32(a), toF32(b)) ? 0xffffffffu : 0u; },
                   {}});
    all.push_back({std::string("set.") + name + ".f32.f32 %d, %a, %b;",
                   "b32",
                   "b32",
                   "b32",
                   "b32",
                   [=](uint64_t a, uint64_t b, uint64_t) { return holds(toF32(a), toF32(b)) ? 0x3f800000u : 0u; },
                   {}});
  }
  run(all);
}

TEST(doubles) {
  std::vector<Case> all;
  for (auto& [name, mode] : kRoundings) {
    const std::string tail = std::string(".") + name + ".f64";
    const int m = mode;
    auto two = [&](const std::string& op, auto of) {
      all.push_back({op + tail + " %d, %a, %b;", "b64", "b64", "b64", "b64",
                     [=](uint64_t a, uint64_t b, uint64_t) {
                       volatile double x = toF64(a), y = toF64(b);
                       return bitsF64(rounded(m, [&] { return of(static_cast<double>(x), static_cast<double>(y)); }));
                     },
                     sameF64});
    };
    two("add", [](double a, double b) { return a + b; });
    two("sub", [](double a, double b) { return a - b; });
    two("mul", [](double a, double b) { return a * b; });
    two("div", [](double a, double b) { return a / b; });
    all.push_back({"fma" + tail + " %d, %a, %b, %c;", "b64", "b64", "b64", "b64",
                   [=](uint64_t a, uint64_t b, uint64_t c) {
                     volatile double x = toF64(a), y = toF64(b), z = toF64(c);
                     return bitsF64(rounded(m, [&] {
                       return std::fma(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
                     }));
                   },
                   sameF64});
    all.push_back({"sqrt" + tail + " %d, %a;", "b64", "b64", "b64", "b64",
                   [=](uint64_t a, uint64_t, uint64_t) {
                     volatile double x = toF64(a);
                     return bitsF64(rounded(m, [&] { return std::sqrt(static_cast<double>(x)); }));
                   },
                   sameF64});
  }
  run(all);
}

TEST(halves) {
  std::vector<Case> all;
  for (const Small& type : {kHalf, kBf16}) {
    const std::string name = type.exponentBits == 5 ? "f16" : "bf16";
    auto exactly = [&, type](const std::string& op, int operands,
                             std::function<long double(double, double, double)> of) {
      const std::string list = operands == 3 ? " %d, %a, %b, %c;" : " %d, %a, %b;";
      Reference one = [=](uint64_t a, uint64_t b, uint64_t c) {
        const unsigned x = a & 0xffff, y = b & 0xffff, z = c & 0xffff;
        return static_cast<uint64_t>(type.round(of(type.value(x), type.value(y), type.value(z))));
      };
      all.push_back({op + "." + name + list, "b16", "b16", "b16", "b16", one, {}});
      all.push_back(
          {op + "." + name + "x2" + list,
           "b32",
           "b32",
           "b32",
           "b32",
           [=](uint64_t a, uint64_t b, uint64_t c) { return one(a, b, c) | one(a >> 16, b >> 16, c >> 16) << 16; },
           {}});
    };
    exactly("add.rn", 2, [](double a, double b, double) { return static_cast<long double>(a) + b; });
    exactly("sub.rn", 2, [](double a, double b, double) { return static_cast<long double>(a) - b; });
    exactly("mul.rn", 2, [](double a, double b, double) { return static_cast<long double>(a) * b; });
    if (type.exponentBits == 5)
      exactly("fma.rn", 3, [](double a, double b, double c) { return static_cast<long double>(a) * b + c; });
  }
  // Sums of bf16 may need more bits than the reference has; where one is far smaller, only the side of the tie counts.
  for (Case& each : all) {
    if (each.text.find("bf16") == std::string::npos || each.text.find("mul") != std::string::npos) continue;
    auto exact = each.reference;
    each.agrees = [](uint64_t got, uint64_t want) { return got == want || ((got ^ want) & 0x7fff7fff) == 1; };
  }
  run(all);
}

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
  // What a register larger than the type holds.
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
    for (const Small& type : {kHalf, kBf16}) {
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
