// Floating-point arithmetic of all types and roundings, checked against an independent reference.
#include <algorithm>

#include "ptx_floats.h"

using namespace cases;

namespace {

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
  // Near one, the error is absolute: 2^-22.
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
  for (const FloatFormat& type : {kHalf, kBf16}) {
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
  // Sums of bf16 may need more bits than the reference has. If one operand is far smaller, it only decides on which
  // side of a tie the sum is.
  for (Case& each : all) {
    if (each.text.find("bf16") == std::string::npos || each.text.find("mul") != std::string::npos) continue;
    auto exact = each.reference;
    each.agrees = [](uint64_t got, uint64_t want) { return got == want || ((got ^ want) & 0x7fff7fff) == 1; };
  }
  run(all);
}

TEST(pairs_of_singles_and_mixed_sizes) {
  std::vector<Case> all;
  for (auto& [name, mode] : kRoundings) {
    const int m = mode;
    const std::string r = name;
    for (const bool isFlushed : {false, true}) {
      auto pairs = [&](const std::string& op, int count, std::function<float(float, float, float)> of) {
        auto one = [=](uint64_t a, uint64_t b, uint64_t c) {
          volatile float x = toF32(a), y = toF32(b), z = toF32(c);
          if (isFlushed) x = flushed(x), y = flushed(y), z = flushed(z);
          const float value = rounded(m, [&] { return of(x, y, z); });
          return bitsF32(isFlushed ? flushed(value) : value);
        };
        all.push_back(
            {op + "." + r + (isFlushed ? ".ftz" : "") + ".f32x2 %d, %a, %b" + (count == 3 ? ", %c;" : ";"),
             "b64",
             "b64",
             "b64",
             "b64",
             [=](uint64_t a, uint64_t b, uint64_t c) { return one(a, b, c) | one(a >> 32, b >> 32, c >> 32) << 32; },
             {}});
      };
      pairs("add", 2, [](float a, float b, float) { return a + b; });
      pairs("sub", 2, [](float a, float b, float) { return a - b; });
      pairs("mul", 2, [](float a, float b, float) { return a * b; });
      pairs("fma", 3, [](float a, float b, float c) { return std::fma(a, b, c); });
    }
    for (const bool isBf16 : {false, true}) {
      for (const bool isSaturated : {false, true}) {
        const std::string tail = "." + r + (isSaturated ? ".sat" : "") + ".f32." + (isBf16 ? "bf16" : "f16");
        auto wide = [=](uint64_t bits) {
          return static_cast<float>((isBf16 ? kBf16 : kHalf).value(static_cast<unsigned>(bits)));
        };
        auto limited = [=](float v) { return bitsF32(!isSaturated ? v : v > 0 ? std::min(v, 1.0f) : 0.0f); };
        all.push_back({"add" + tail + " %d, %a, %b;",
                       "b32",
                       "b16",
                       "b32",
                       "b64",
                       [=](uint64_t a, uint64_t b, uint64_t) {
                         volatile float x = wide(a), y = toF32(b);
                         return limited(rounded(m, [&] { return x + y; }));
                       },
                       {}});
        all.push_back({"sub" + tail + " %d, %a, %b;",
                       "b32",
                       "b16",
                       "b32",
                       "b64",
                       [=](uint64_t a, uint64_t b, uint64_t) {
                         volatile float x = wide(a), y = toF32(b);
                         return limited(rounded(m, [&] { return x - y; }));
                       },
                       {}});
        all.push_back({"fma" + tail + " %d, %a, %b, %c;",
                       "b32",
                       "b16",
                       "b16",
                       "b32",
                       [=](uint64_t a, uint64_t b, uint64_t c) {
                         volatile float x = wide(a), y = wide(b), z = toF32(c);
                         return limited(rounded(m, [&] {
                           return std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
                         }));
                       },
                       {}});
      }
    }
  }
  run(all);
}

TEST(extremes) {
  std::vector<Case> all;
  auto one = [](uint64_t a, uint64_t b, bool isMaximum, bool isNanPassed) -> uint64_t {
    const float x = toF32(a), y = toF32(b);
    if (std::isnan(x) || std::isnan(y))
      return isNanPassed || (std::isnan(x) && std::isnan(y)) ? 0x7fffffff : std::isnan(x) ? b : a;
    if (x == y) return isMaximum == std::signbit(x) ? b : a;
    return (x < y) != isMaximum ? a : b;
  };
  constexpr uint64_t size = 0x7fffffff;
  auto signedBy = [](uint64_t bits, uint64_t sign) { return std::isnan(toF32(bits)) ? 0x7fffffff : bits | sign; };
  for (const bool isMaximum : {false, true}) {
    for (const bool isNanPassed : {false, true}) {
      const std::string op = std::string(isMaximum ? "max" : "min") + (isNanPassed ? ".NaN" : "");
      all.push_back({op + ".f32 %d, %a, %b, %c;",
                     "b32",
                     "b32",
                     "b32",
                     "b32",
                     [=](uint64_t a, uint64_t b, uint64_t c) {
                       return one(one(a, b, isMaximum, isNanPassed), c, isMaximum, isNanPassed);
                     },
                     {}});
      all.push_back({op + ".abs.f32 %d, %a, %b, %c;",
                     "b32",
                     "b32",
                     "b32",
                     "b32",
                     [=](uint64_t a, uint64_t b, uint64_t c) {
                       return one(one(a & size, b & size, isMaximum, isNanPassed), c & size, isMaximum, isNanPassed);
                     },
                     {}});
      all.push_back({op + ".xorsign.abs.f32 %d, %a, %b;",
                     "b32",
                     "b32",
                     "b32",
                     "b32",
                     [=](uint64_t a, uint64_t b, uint64_t) {
                       return signedBy(one(a & size, b & size, isMaximum, isNanPassed), (a ^ b) & 0x80000000);
                     },
                     {}});
      // 16-bit values are reduced as 32-bit values, which have the same order.
      for (const bool isBf16 : {false, true}) {
        auto small = [=](uint64_t a, uint64_t b) -> uint64_t {
          auto wide = [=](uint64_t bits) {
            return isBf16 ? (bits & 0x7fff) << 16 : bitsF32(static_cast<float>(kHalf.value(bits & 0x7fff)));
          };
          const uint64_t chosen = one(wide(a), wide(b), isMaximum, isNanPassed);
          if (std::isnan(toF32(chosen))) return 0x7fff;
          return (chosen == wide(a) ? a & 0x7fff : b & 0x7fff) | ((a ^ b) & 0x8000);
        };
        const std::string name = isBf16 ? "bf16" : "f16";
        all.push_back({op + ".xorsign.abs." + name + " %d, %a, %b;",
                       "b16",
                       "b16",
                       "b16",
                       "b64",
                       [=](uint64_t a, uint64_t b, uint64_t) { return small(a, b); },
                       {}});
        all.push_back({op + ".xorsign.abs." + name + "x2 %d, %a, %b;",
                       "b32",
                       "b32",
                       "b32",
                       "b64",
                       [=](uint64_t a, uint64_t b, uint64_t) {
                         return small(a & 0xffff, b & 0xffff) | small(a >> 16 & 0xffff, b >> 16 & 0xffff) << 16;
                       },
                       {}});
      }
    }
  }
  run(all);
}
