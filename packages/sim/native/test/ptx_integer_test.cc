// All integer instructions and types with random and corner operands, checked against an independent reference.
#include "ptx_cases.h"

using namespace cases;

namespace {

using Wide = __int128;

struct IntegerType {
  const char* name;
  const char* bits;
  unsigned size;  // in bits
  bool isSigned;
};
const IntegerType kTypes[] = {{"u16", "b16", 16, false}, {"s16", "b16", 16, true},  {"u32", "b32", 32, false},
                              {"s32", "b32", 32, true},  {"u64", "b64", 64, false}, {"s64", "b64", 64, true}};

Wide valueOf(const IntegerType& type, uint64_t bits) {
  if (!type.isSigned) return bits;
  const unsigned shift = 64 - type.size;
  return static_cast<int64_t>(bits << shift) >> shift;
}

void two(std::vector<Case>& all, const std::string& name, const IntegerType& type, std::function<Wide(Wide, Wide)> of) {
  all.push_back(
      {name + "." + type.name + " %d, %a, %b;",
       type.bits,
       type.bits,
       type.bits,
       "b64",
       [=](uint64_t a, uint64_t b, uint64_t) { return static_cast<uint64_t>(of(valueOf(type, a), valueOf(type, b))); },
       {}});
}
void three(std::vector<Case>& all, const std::string& name, const IntegerType& type,
           std::function<Wide(Wide, Wide, Wide)> of) {
  all.push_back({name + "." + type.name + " %d, %a, %b, %c;",
                 type.bits,
                 type.bits,
                 type.bits,
                 type.bits,
                 [=](uint64_t a, uint64_t b, uint64_t c) {
                   return static_cast<uint64_t>(of(valueOf(type, a), valueOf(type, b), valueOf(type, c)));
                 },
                 {}});
}
Wide clampS32(Wide v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v; }
uint32_t byteOf(uint64_t v, unsigned at) { return static_cast<uint32_t>(v >> 8 * at) & 0xff; }

}  // namespace

TEST(sums_products_and_quotients) {
  std::vector<Case> all;
  for (const IntegerType& type : kTypes) {
    // The product of two 64-bit numbers fits into the reference type. A sum with a third may not.
    two(all, "add", type, [](Wide a, Wide b) { return a + b; });
    two(all, "sub", type, [](Wide a, Wide b) { return a - b; });
    two(all, "mul.lo", type, [](Wide a, Wide b) {
      return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
    });
    two(all, "mul.hi", type, [=](Wide a, Wide b) {
      if (type.isSigned) return (a * b) >> type.size;
      return static_cast<Wide>((static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)) >> type.size);
    });
    three(all, "mad.lo", type, [](Wide a, Wide b, Wide c) {
      return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b) +
                               static_cast<unsigned __int128>(c));
    });
    three(all, "mad.hi", type, [=](Wide a, Wide b, Wide c) {
      if (type.isSigned) return ((a * b) >> type.size) + c;
      return static_cast<Wide>((static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)) >> type.size) +
             c;
    });
    two(all, "div", type, [](Wide a, Wide b) { return b == 0 ? -1 : a / b; });
    two(all, "rem", type, [](Wide a, Wide b) { return b == 0 ? -1 : a % b; });
    two(all, "min", type, [](Wide a, Wide b) { return a < b ? a : b; });
    two(all, "max", type, [](Wide a, Wide b) { return a > b ? a : b; });
    three(all, "sad", type, [](Wide a, Wide b, Wide c) { return c + (a < b ? b - a : a - b); });
    if (type.isSigned) {
      two(all, "neg", type, [](Wide a, Wide) { return -a; });
      all.back().text = std::string("neg.") + type.name + " %d, %a;";
      two(all, "abs", type, [](Wide a, Wide) { return a < 0 ? -a : a; });
      all.back().text = std::string("abs.") + type.name + " %d, %a;";
    }
    if (type.size == 64) continue;
    const std::string wide = type.size == 16 ? "b32" : "b64";
    two(all, "mul.wide", type, [](Wide a, Wide b) { return a * b; });
    all.back().d = wide;
    three(all, "mad.wide", type, [](Wide a, Wide b, Wide) { return a * b; });
    all.back().d = all.back().c = wide;
    all.back().reference = [=](uint64_t a, uint64_t b, uint64_t c) {
      return static_cast<uint64_t>(valueOf(type, a) * valueOf(type, b)) + c;
    };
  }
  const IntegerType &u32 = kTypes[2], &s32 = kTypes[3];
  two(all, "add.sat", s32, [](Wide a, Wide b) { return clampS32(a + b); });
  two(all, "sub.sat", s32, [](Wide a, Wide b) { return clampS32(a - b); });
  three(all, "mad.hi.sat", s32, [](Wide a, Wide b, Wide c) { return clampS32(((a * b) >> 32) + c); });
  auto low24 = [](Wide v, bool isSigned) -> Wide {
    return isSigned ? static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8 : v & 0xffffff;
  };
  for (const IntegerType* type : {&u32, &s32}) {
    const bool isSigned = type->isSigned;
    two(all, "mul24.lo", *type, [=](Wide a, Wide b) { return low24(a, isSigned) * low24(b, isSigned); });
    two(all, "mul24.hi", *type, [=](Wide a, Wide b) { return (low24(a, isSigned) * low24(b, isSigned)) >> 16; });
    three(all, "mad24.lo", *type, [=](Wide a, Wide b, Wide c) { return low24(a, isSigned) * low24(b, isSigned) + c; });
    three(all, "mad24.hi", *type,
          [=](Wide a, Wide b, Wide c) { return ((low24(a, isSigned) * low24(b, isSigned)) >> 16) + c; });
    for (const IntegerType* other : {&u32, &s32}) {
      const bool isOtherSigned = other->isSigned;
      all.push_back({std::string("dp4a.") + type->name + "." + other->name + " %d, %a, %b, %c;",
                     "b32",
                     "b32",
                     "b32",
                     "b32",
                     [=](uint64_t a, uint64_t b, uint64_t c) {
                       int64_t sum = static_cast<int64_t>(c);
                       for (unsigned at = 0; at < 4; ++at) {
                         sum +=
                             int64_t{isSigned ? static_cast<int8_t>(byteOf(a, at)) : static_cast<int>(byteOf(a, at))} *
                             (isOtherSigned ? static_cast<int8_t>(byteOf(b, at)) : static_cast<int>(byteOf(b, at)));
                       }
                       return static_cast<uint64_t>(sum);
                     },
                     {}});
      all.push_back({std::string("dp2a.hi.") + type->name + "." + other->name + " %d, %a, %b, %c;",
                     "b32",
                     "b32",
                     "b32",
                     "b32",
                     [=](uint64_t a, uint64_t b, uint64_t c) {
                       int64_t sum = static_cast<int64_t>(c);
                       for (unsigned at = 0; at < 2; ++at) {
                         const auto half = static_cast<uint16_t>(a >> 16 * at);
                         sum += int64_t{isSigned ? static_cast<int16_t>(half) : static_cast<int>(half)} *
                                (isOtherSigned ? static_cast<int8_t>(byteOf(b, at + 2))
                                               : static_cast<int>(byteOf(b, at + 2)));
                       }
                       return static_cast<uint64_t>(sum);
                     },
                     {}});
    }
  }
  // A 128-bit sum in two halves. The upper half is the result.
  all.push_back({"add.cc.u64 %low, %a, %b; addc.u64 %d, %c, 7;",
                 "b64",
                 "b64",
                 "b64",
                 "b64",
                 [](uint64_t a, uint64_t b, uint64_t c) { return c + 7 + (a + b < a ? 1 : 0); },
                 {}});
  all.push_back({"sub.cc.u32 %x, %a, %b; subc.u32 %d, %c, 9;",
                 "b32",
                 "b32",
                 "b32",
                 "b32",
                 [](uint64_t a, uint64_t b, uint64_t c) { return c - 9 - (a < b ? 1 : 0); },
                 {}});
  all.push_back(
      {"mad.lo.cc.u32 %x, %a, %b, %c; madc.hi.u32 %d, %a, %b, %c;",
       "b32",
       "b32",
       "b32",
       "b32",
       [](uint64_t a, uint64_t b, uint64_t c) { return (a * b >> 32) + c + (((a * b & 0xffffffff) + c) >> 32); },
       {}});
  run(all);
}

// The position and length of a field: 32-bit instructions use the lowest 8 bits, 64-bit instructions use all bits.
unsigned placeOf(uint64_t value, unsigned bits) {
  return static_cast<unsigned>(bits == 32 ? value & 0xff : std::min<uint64_t>(value, 0xff));
}

TEST(bits) {
  std::vector<Case> all;
  auto push = [&](const std::string& text, const char* d, const char* a, const char* b, const char* c, Reference of) {
    all.push_back({text, d, a, b, c, of, {}});
  };
  for (const std::string size : {"16", "32", "64"}) {
    const std::string type = "b" + size;
    const char* t = size == "16" ? "b16" : size == "32" ? "b32" : "b64";
    const unsigned n = static_cast<unsigned>(std::stoi(size));
    push("and." + type + " %d, %a, %b;", t, t, t, "b64", [](uint64_t a, uint64_t b, uint64_t) { return a & b; });
    push("or." + type + " %d, %a, %b;", t, t, t, "b64", [](uint64_t a, uint64_t b, uint64_t) { return a | b; });
    push("xor." + type + " %d, %a, %b;", t, t, t, "b64", [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; });
    push("not." + type + " %d, %a;", t, t, t, "b64", [](uint64_t a, uint64_t, uint64_t) { return ~a; });
    push("cnot." + type + " %d, %a;", t, t, t, "b64", [](uint64_t a, uint64_t, uint64_t) { return uint64_t{a == 0}; });
    push("shl." + type + " %d, %a, %b;", t, t, "b32", "b64",
         [=](uint64_t a, uint64_t b, uint64_t) { return b >= n ? 0 : a << b; });
    push("shr.u" + size + " %d, %a, %b;", t, t, "b32", "b64",
         [=](uint64_t a, uint64_t b, uint64_t) { return b >= n ? 0 : a >> b; });
    push("shr.s" + size + " %d, %a, %b;", t, t, "b32", "b64", [=](uint64_t a, uint64_t b, uint64_t) {
      const int64_t wide = static_cast<int64_t>(a << (64 - n)) >> (64 - n);
      return static_cast<uint64_t>(wide >> (b >= n ? 63 : b));
    });
    push("setp.lt.and.s32 %p, 5, 9, 1; selp." + type + " %d, %a, %b, %p;", t, t, t, "b64",
         [](uint64_t a, uint64_t, uint64_t) { return a; });
    push("slct." + type + ".s32 %d, %a, %b, %c;", t, t, t, "b32",
         [](uint64_t a, uint64_t b, uint64_t c) { return c >> 31 ? b : a; });
    if (n == 16) continue;
    push("popc." + type + " %d, %a;", "b32", t, t, "b64",
         [](uint64_t a, uint64_t, uint64_t) { return static_cast<uint64_t>(__builtin_popcountll(a)); });
    push("clz." + type + " %d, %a;", "b32", t, t, "b64", [=](uint64_t a, uint64_t, uint64_t) {
      uint64_t count = 0;
      while (count < n && !(a >> (n - 1 - count) & 1)) ++count;
      return count;
    });
    push("brev." + type + " %d, %a;", t, t, t, "b64", [=](uint64_t a, uint64_t, uint64_t) {
      uint64_t out = 0;
      for (unsigned at = 0; at < n; ++at) out |= (a >> at & 1) << (n - 1 - at);
      return out;
    });
    for (const bool isSigned : {false, true}) {
      const std::string word = (isSigned ? "s" : "u") + size;
      auto find = [=](uint64_t a) {
        if (isSigned && a >> (n - 1) & 1) a = ~a;
        for (int at = static_cast<int>(n) - 1; at >= 0; --at) {
          if (a >> at & 1) return at;
        }
        return -1;
      };
      push("bfind." + word + " %d, %a;", "b32", t, t, "b64",
           [=](uint64_t a, uint64_t, uint64_t) { return static_cast<uint64_t>(find(a)); });
      push("bfind.shiftamt." + word + " %d, %a;", "b32", t, t, "b64", [=](uint64_t a, uint64_t, uint64_t) {
        const int at = find(a);
        return static_cast<uint64_t>(at < 0 ? -1 : static_cast<int>(n) - 1 - at);
      });
      push("bfe." + word + " %d, %a, %b, %c;", t, t, "b32", "b32", [=](uint64_t a, uint64_t b, uint64_t c) {
        const unsigned position = placeOf(b, n), length = placeOf(c, n), last = n - 1;
        const unsigned top = std::min(position + length - 1, last);
        const bool sign = isSigned && length != 0 && (a >> top & 1);
        uint64_t out = 0;
        for (unsigned at = 0; at < n; ++at) {
          const bool is = at < length && position + at <= last ? a >> (position + at) & 1 : sign;
          out |= uint64_t{is} << at;
        }
        return out;
      });
    }
    all.push_back({"cvt.u32.u64 %x, %c; cvt.u32.u64 %y, %c; shr.u32 %y, %y, 8; bfi." + type + " %d, %a, %b, %x, %y;",
                   t,
                   t,
                   t,
                   "b64",
                   [=](uint64_t a, uint64_t b, uint64_t c) {
                     const unsigned position = placeOf(c & 0xffffffff, n), length = placeOf((c & 0xffffffff) >> 8, n);
                     uint64_t out = b;
                     for (unsigned at = 0; at < length && position + at < n; ++at) {
                       out = (out & ~(uint64_t{1} << (position + at))) | (a >> at & 1) << (position + at);
                     }
                     return out;
                   },
                   {}});
  }
  for (const int table : {0x80, 0xe8, 0x96, 0x1d, 0xca, 0x00, 0xff, 0x53}) {
    push("lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";", "b32", "b32", "b32", "b32",
         [=](uint64_t a, uint64_t b, uint64_t c) {
           uint64_t out = 0;
           for (unsigned at = 0; at < 32; ++at)
             out |= static_cast<uint64_t>(table >> ((a >> at & 1) * 4 + (b >> at & 1) * 2 + (c >> at & 1)) & 1) << at;
           return out;
         });
  }
  for (const bool isWrapped : {false, true}) {
    const std::string mode = isWrapped ? "wrap" : "clamp";
    push("shf.l." + mode + ".b32 %d, %a, %b, %c;", "b32", "b32", "b32", "b32", [=](uint64_t a, uint64_t b, uint64_t c) {
      const uint64_t n = isWrapped ? c & 31 : std::min<uint64_t>(c, 32);
      return n == 32 ? a : ((b << 32 | a) << n) >> 32;
    });
    push("shf.r." + mode + ".b32 %d, %a, %b, %c;", "b32", "b32", "b32", "b32", [=](uint64_t a, uint64_t b, uint64_t c) {
      const uint64_t n = isWrapped ? c & 31 : std::min<uint64_t>(c, 32);
      return (b << 32 | a) >> n;
    });
  }
  push("prmt.b32 %d, %a, %b, %c;", "b32", "b32", "b32", "b32", [](uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t both = b << 32 | a;
    uint64_t out = 0;
    for (unsigned at = 0; at < 4; ++at) {
      const unsigned pick = c >> 4 * at & 15, byte = both >> 8 * (pick & 7) & 0xff;
      out |= static_cast<uint64_t>(pick & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << 8 * at;
    }
    return out;
  });
  run(all);
}

TEST(comparisons) {
  std::vector<Case> all;
  for (const IntegerType& type : kTypes) {
    const std::pair<const char*, std::function<bool(Wide, Wide)>> kinds[] = {
        {"eq", [](Wide a, Wide b) { return a == b; }}, {"ne", [](Wide a, Wide b) { return a != b; }},
        {"lt", [](Wide a, Wide b) { return a < b; }},  {"le", [](Wide a, Wide b) { return a <= b; }},
        {"gt", [](Wide a, Wide b) { return a > b; }},  {"ge", [](Wide a, Wide b) { return a >= b; }}};
    for (auto& kind : kinds) {
      auto of = kind.second;
      all.push_back(
          {std::string("set.") + kind.first + ".u32." + type.name + " %d, %a, %b;",
           "b32",
           type.bits,
           type.bits,
           "b64",
           [=](uint64_t a, uint64_t b, uint64_t) { return of(valueOf(type, a), valueOf(type, b)) ? 0xffffffffu : 0u; },
           {}});
      // Both results of a comparison that is combined with another predicate.
      all.push_back({std::string("setp.lt.s32 %p, %c, 100; setp.") + kind.first + ".xor." + type.name +
                         " %p|%q, %a, %b, !%p; selp.u32 %x, 1, 0, %p; selp.u32 %y, 2, 0, %q; or.b32 %d, %x, %y;",
                     "b32",
                     type.bits,
                     type.bits,
                     "b32",
                     [=](uint64_t a, uint64_t b, uint64_t c) {
                       const bool is = of(valueOf(type, a), valueOf(type, b)), other = !(static_cast<int32_t>(c) < 100);
                       return (is != other ? 1u : 0u) | (!is != other ? 2u : 0u);
                     },
                     {}});
    }
  }
  run(all);
}
