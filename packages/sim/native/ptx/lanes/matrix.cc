// Products of matrices that the lanes of a warp hold together: mma and wmma. Sums of floats follow the published models
// of Hopper's tensor cores. Sixteen products (eight of tf32) and the previous sum are aligned to their greatest
// exponent. Bits more than 25 below it are cut off. The result is truncated to f32, or rounded to the nearest f16. An
// H200 computes the same bits. Operations that its tensor cores lack (8-bit floats, quads) are composed of others, as
// its compiler does.
#include <math.h>

#include "../matrix.h"
#include "real.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

constexpr int kMost = 1024;  // elements of a matrix: 16 rows of 64
constexpr int kWide = 8;     // columns that are computed together

struct Matrices {
  const uint32_t* words;
  int m, n, k;
  Type a, b, c, d;
  uint32_t flags;
  const uint32_t *dRegisters, *aRegisters, *bRegisters, *cRegisters;
  int aCount, bCount, cCount, dCount;

  Matrices(const Warp& warp, const Instr& instr) : words(warp.operands + instr.target) {
    m = static_cast<int>(words[matrixM]), n = static_cast<int>(words[matrixN]), k = static_cast<int>(words[matrixK]);
    a = static_cast<Type>(words[matrixTypeA]), b = static_cast<Type>(words[matrixTypeB]);
    c = static_cast<Type>(words[matrixTypeC]), d = static_cast<Type>(words[matrixTypeD]);
    flags = words[matrixFlags];
    // Each quad of lanes has its own product, with a quarter of the warp's registers.
    const int lanes = (flags & matrixIsQuads) != 0 ? 8 : kLanes;
    aCount = m * k / (lanes * perRegister(a)), bCount = k * n / (lanes * perRegister(b));
    cCount = m * n / (lanes * perRegister(c)), dCount = m * n / (lanes * perRegister(d));
    dRegisters = words + matrixRegisters, aRegisters = dRegisters + dCount, bRegisters = aRegisters + aCount,
    cRegisters = bRegisters + bCount;
  }
};

template <Type type>
SHOAL_INLINE float floatOf(uint32_t word, int part) {
  switch (type) {
    case Type::f16: return fromHalf(static_cast<uint16_t>(word >> 16 * part));
    case Type::bf16: return fromBf16(static_cast<uint16_t>(word >> 16 * part));
    case Type::tf32: return asFloat(word & 0xffffe000);
    case Type::e4m3: return fromEight(static_cast<uint8_t>(word >> 8 * part), true);
    case Type::e5m2: return fromEight(static_cast<uint8_t>(word >> 8 * part), false);
    default: return asFloat(word);
  }
}
template <Type type>
SHOAL_INLINE int32_t integerOf(uint32_t word, int part) {
  switch (type) {
    case Type::u8: return static_cast<uint8_t>(word >> 8 * part);
    case Type::s8: return static_cast<int8_t>(word >> 8 * part);
    case Type::u4: return static_cast<int32_t>(word >> 4 * part & 15);
    default: return static_cast<int32_t>(word >> 4 * part << 28) >> 28;
  }
}

// Collects the matrix of an operand in row-major order.
template <Type type, class T>
void gather(const Warp& warp, const uint32_t* registers, int count, Role role, int rows, int columns, T* to) {
  constexpr int per = perRegister(type);
  const int down = role == Role::right ? 1 : columns,
            inner = role == Role::right ? columns : 1;  // distances between lane groups, and between lanes of a group
  for (int index = 0; index < count; ++index) {
    const uint32_t* from = input<uint32_t>(warp, registers[index]);
    const Place start = placeOf(role, rows, columns, per, index, 0, 0);
    T* at = to + start.row * columns + start.column;
    for (int part = 0; part < per; ++part) {
      T values[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) {
        if constexpr (type == Type::u8 || type == Type::s8 || type == Type::u4 || type == Type::s4)
          values[lane] = integerOf<type>(from[lane], part);
        else values[lane] = floatOf<type>(from[lane], part);
      }
      for (int lane = 0; lane < kLanes; ++lane)
        at[(lane >> 2) * down + ((lane & 3) * per + part) * inner] = values[lane];
    }
  }
}

// Positions in the product of a quad, as on Volta. The quad consists of lanes 4 * quad + 0 to 3, and those plus 16.
Place quadPlace(Role role, int bits, bool isSideways, int lane, int element) {
  const int upper = lane >= 16 ? 4 : 0, within = lane & 3;
  if (role == Role::sum) {
    if (bits == 16) return {within + upper, element};
    return {(lane & 1) + (element & 2) + upper, (element & 4) + (lane & 2) + (element & 1)};
  }
  if (role == Role::left) return isSideways ? Place{(element & 3) + upper, within} : Place{within + upper, element};
  return isSideways ? Place{within, element + upper} : Place{element, within + upper};
}
int quadLane(int quad, int index) { return 4 * quad + (index & 3) + (index >> 2) * 16; }

// Calls `of` for every lane's elements of the sums, with their row-major index.
template <class F>
SHOAL_INLINE void eachSum(const Matrices& all, int quad, int count, int per, F&& of) {
  for (int index = 0; index < count; ++index) {
    for (int part = 0; part < per; ++part) {
      const Place start = placeOf(Role::sum, all.m, all.n, per, index, part, 0);
      for (int each = 0; each < (quad < 0 ? kLanes : 8); ++each) {
        const int lane = quad < 0 ? each : quadLane(quad, each);
        const Place at = quad < 0 ? Place{start.row + (lane >> 2), start.column + 2 * (lane & 3)}
                                  : quadPlace(Role::sum, 32 / per, false, lane, index * per + part);
        of(index, part, lane, at.row * all.n + at.column);
      }
    }
  }
}
void readSums(const Warp& warp, const Matrices& all, int quad, float* to) {
  if (all.c == Type::f16)
    eachSum(all, quad, all.cCount, 2, [&](int index, int part, int lane, int at) SHOAL_LAMBDA {
      to[at] = floatOf<Type::f16>(input<uint32_t>(warp, all.cRegisters[index])[lane], part);
    });
  else
    eachSum(all, quad, all.cCount, 1, [&](int index, int, int lane, int at) SHOAL_LAMBDA {
      to[at] = input<float>(warp, all.cRegisters[index])[lane];
    });
}
void writeSums(Warp& warp, const Matrices& all, uint32_t mask, int quad, const float* from) {
  if (all.d == Type::f16) {
    eachSum(all, quad, all.dCount, 2, [&](int index, int part, int lane, int at) SHOAL_LAMBDA {
      if ((mask >> lane & 1) != 0)
        output<uint16_t>(warp, all.dRegisters[index])[2 * lane + part] = toHalf(static_cast<double>(from[at]));
    });
  } else {
    eachSum(all, quad, all.dCount, 1, [&](int index, int, int lane, int at) SHOAL_LAMBDA {
      if ((mask >> lane & 1) != 0) output<float>(warp, all.dRegisters[index])[lane] = oneNan(from[at]);
    });
  }
}

constexpr int kNoExponent = -1000;
SHOAL_INLINE int32_t exponentOf(float value, int least) {
  const int32_t biased = static_cast<int32_t>(bitsOf(value) >> 23 & 255) - 127;
  const int32_t exponent = biased < least ? least : biased;
  return (bitsOf(value) << 1) == 0 ? kNoExponent : exponent;
}
bool areFinite(const float* values, int count) {
  uint32_t all = 0;
  for (int index = 0; index < count; ++index)
    all |= static_cast<uint32_t>((bitsOf(values[index]) & 0x7f800000) == 0x7f800000);
  return all == 0;
}

// Vectors of eight neighbouring columns.
using Ints = int32_t __attribute__((vector_size(32)));
using Longs = int64_t __attribute__((vector_size(64)));
using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));
template <class T> struct Columns {
  using Type = Floats;
};
template <> struct Columns<double> {
  using Type = Doubles;
};

template <class V, class T>
SHOAL_INLINE void readColumns(V& to, const T* from) {
  memcpy(&to, from, sizeof to);
}

// T holds each product without rounding: float for inputs with 11 bits of precision and 5 of exponent, double for
// others. `least` is the smallest exponent of the inputs.
template <class T>
void addProducts(int m, int n, int k, int together, int least, bool isHalfSum, const float* a, const float* b,
                 float* sums) {
  constexpr int kKept = 25;
  constexpr bool isNarrow = sizeof(T) == 4;
  using Values = typename Columns<T>::Type;
  const bool areFactorsFinite = areFinite(a, m * k) && areFinite(b, k * n);
  int32_t exponentsA[kMost], exponentsB[kMost];
  T wideA[kMost], wideB[kMost];
  for (int index = 0; index < m * k; ++index)
    exponentsA[index] = exponentOf(a[index], least), wideA[index] = static_cast<T>(a[index]);
  for (int index = 0; index < k * n; ++index)
    exponentsB[index] = exponentOf(b[index], least), wideB[index] = static_cast<T>(b[index]);
  for (int row = 0; row < m; ++row) {
    for (int left = 0; left < n; left += kWide) {
      float* sum = sums + row * n + left;
      float before[kWide];
      for (int start = 0; start < k; start += together) {
        const int end = start + together < k ? start + together : k;
        memcpy(before, sum, sizeof before);
        int32_t first[kWide];
        for (int column = 0; column < kWide; ++column) first[column] = exponentOf(sum[column], -126);
        Ints greatest, total = {};
        readColumns(greatest, first);
        for (int at = start; at < end; ++at) {
          Ints exponent;
          readColumns(exponent, exponentsB + at * n + left);
          exponent += exponentsA[row * k + at];
          greatest = exponent > greatest ? exponent : greatest;
        }
        // Clamp the scale to exponents that T can represent. A smaller exponent means that there is nothing to scale.
        // Sums that are not finite are computed below.
        constexpr int lowest = isNarrow ? -100 : -300, highest = isNarrow ? 150 : 600;
        Ints limited = greatest < lowest ? Ints{} + lowest : greatest;
        limited = kKept - (limited > highest ? Ints{} + highest : limited);
        Values scale;
        if constexpr (isNarrow) scale = reinterpret_cast<Values>((limited + 127) << 23);
        else scale = reinterpret_cast<Values>((__builtin_convertvector(limited, Longs) + 1023) << 52);
        for (int at = start; at < end; ++at) {
          Values other;
          readColumns(other, wideB + at * n + left);
          total += __builtin_convertvector(wideA[row * k + at] * other * scale, Ints);
        }
        greatest = greatest < -300 ? Ints{} - 300 : greatest;
        greatest = greatest > 600 ? Ints{} + 600 : greatest;
        const Longs shift = __builtin_convertvector(kKept - greatest, Longs);
        Floats old;
        readColumns(old, sum);
        const Ints cut = __builtin_convertvector(
            __builtin_convertvector(old, Doubles) * reinterpret_cast<Doubles>((shift + 1023) << 52), Ints);
        const Doubles exact = (__builtin_convertvector(total, Doubles) + __builtin_convertvector(cut, Doubles)) *
                              reinterpret_cast<Doubles>((1023 - shift) << 52);
        if (isHalfSum) {
          for (int column = 0; column < kWide; ++column) sum[column] = fromHalf(toHalf(exact[column]));
        } else {
          // Truncate towards zero. A value above all floats becomes infinite.
          const Longs bits = reinterpret_cast<Longs>(exact), noSign = Longs{} + INT64_MAX;
          Ints near = reinterpret_cast<Ints>(
              __builtin_convertvector(reinterpret_cast<Doubles>(bits & ~int64_t{0x1fffffff}), Floats));
          const Doubles nearWide = __builtin_convertvector(reinterpret_cast<Floats>(near), Doubles);
          const Longs isBeyond = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(nearWide) & noSign) >
                                 reinterpret_cast<Doubles>(bits & noSign);
          near += __builtin_convertvector(isBeyond, Ints) & ((near & 0x7f800000) != 0x7f800000);
          memcpy(sum, &near, sizeof near);
        }
        if (areFactorsFinite && areFinite(before, kWide)) continue;
        for (int column = 0; column < kWide; ++column) {
          double plain = static_cast<double>(before[column]);
          for (int at = start; at < end; ++at)
            plain += static_cast<double>(a[row * k + at]) * static_cast<double>(b[at * n + left + column]);
          if (!__builtin_isfinite(plain)) sum[column] = static_cast<float>(plain);
        }
      }
    }
  }
}

// 8-bit floats are multiplied as f16. The products of the even pairs of a row are added first, then those of the odd
// pairs, starting at zero. The previous sum is added at the end, in its own type.
void addProductsOfEights(int m, int n, int k, bool isHalfSum, const float* a, const float* b, float* sums) {
  float orderedA[kMost], orderedB[kMost], products[kMost] = {};
  for (int to = 0; to < k; ++to) {
    const int pair = to / 2, from = 4 * (pair % (k / 4)) + 2 * (pair / (k / 4)) + to % 2;
    for (int row = 0; row < m; ++row) orderedA[row * k + to] = a[row * k + from];
    memcpy(orderedB + to * n, b + from * n, sizeof(float) * static_cast<size_t>(n));
  }
  addProducts<float>(m, n, k, k / 2, -14, isHalfSum, orderedA, orderedB, products);
  for (int at = 0; at < m * n; ++at) {
    const float sum = sums[at] + products[at];
    sums[at] = isHalfSum ? fromHalf(toHalf(static_cast<double>(sum))) : sum;
  }
}

// Tensor cores do not support quads any more. Single lanes compute them in f32.
void addProductsOfQuad(int m, int n, bool isHalfSum, const float* a, const float* b, float* sums) {
  for (int row = 0; row < m; ++row) {
    const float* x = a + row * 4;
    for (int column = 0; column < n; ++column) {
      auto y = [&](int at) { return b[at * n + column]; };
      float& sum = sums[row * n + column];
      const float first = fmaf(x[1], y(1), x[0] * y(0));
      if (isHalfSum) sum = sum + first + fmaf(x[3], y(3), x[2] * y(2));
      else sum += fmaf(x[3], y(3), fmaf(x[2], y(2), first + 0.0f));
    }
  }
}

template <Type type>
void readFactor(const Warp& warp, const Matrices& all, Role role, int quad, float* to) {
  const bool isLeft = role == Role::left;
  const int rows = isLeft ? all.m : all.k, columns = isLeft ? all.k : all.n, count = isLeft ? all.aCount : all.bCount;
  const uint32_t* registers = isLeft ? all.aRegisters : all.bRegisters;
  if (quad < 0) return gather<type>(warp, registers, count, role, rows, columns, to);
  const bool isSideways = (all.flags & (isLeft ? matrixIsLeftColumns : matrixIsRightRows)) != 0;
  for (int each = 0; each < 8; ++each) {
    const int lane = quadLane(quad, each);
    for (int element = 0; element < 4; ++element) {
      const Place at = quadPlace(role, 16, isSideways, lane, element);
      to[at.row * columns + at.column] =
          floatOf<type>(input<uint32_t>(warp, registers[element / 2])[lane], element & 1);
    }
  }
}
void readFactor(const Warp& warp, const Matrices& all, Role role, int quad, float* to) {
  switch (role == Role::left ? all.a : all.b) {
    case Type::f16: return readFactor<Type::f16>(warp, all, role, quad, to);
    case Type::bf16: return readFactor<Type::bf16>(warp, all, role, quad, to);
    case Type::tf32: return readFactor<Type::tf32>(warp, all, role, quad, to);
    case Type::e4m3: return readFactor<Type::e4m3>(warp, all, role, quad, to);
    default: return readFactor<Type::e5m2>(warp, all, role, quad, to);
  }
}

void multiplyFloats(Warp& warp, const Instr& instr, uint32_t mask) {
  const Matrices all(warp, instr);
  const int m = all.m, n = all.n, k = all.k;
  float a[kMost], b[kMost], sums[kMost];
  const bool isQuads = (all.flags & matrixIsQuads) != 0;
  for (int quad = isQuads ? 0 : -1; quad < (isQuads ? 4 : 0); ++quad) {
    readFactor(warp, all, Role::left, quad, a);
    readFactor(warp, all, Role::right, quad, b);
    readSums(warp, all, quad, sums);
    const bool isHalfSum = all.d == Type::f16;
    if (isQuads) addProductsOfQuad(m, n, isHalfSum, a, b, sums);
    else if (all.a == Type::e4m3 || all.a == Type::e5m2) addProductsOfEights(m, n, k, isHalfSum, a, b, sums);
    else if (all.a == Type::bf16 || all.a == Type::tf32)
      addProducts<double>(m, n, k, all.a == Type::tf32 ? 8 : 16, -126, isHalfSum, a, b, sums);
    else addProducts<float>(m, n, k, 16, -14, isHalfSum, a, b, sums);
    writeSums(warp, all, mask, quad, sums);
  }
}

// Fused multiply-adds, one product after the other.
void multiplyDoubles(Warp& warp, const Instr& instr, uint32_t mask) {
  const Matrices all(warp, instr);
  double a[256], b[256], sums[256];
  auto each = [&](const uint32_t* registers, int count, Role role, int rows, int columns, auto&& of) {
    for (int index = 0; index < count; ++index) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const Place at = placeOf(role, rows, columns, 1, index, 0, lane);
        of(registers[index], lane, at.row * columns + at.column);
      }
    }
  };
  each(all.aRegisters, all.aCount, Role::left, all.m, all.k,
       [&](uint32_t operand, int lane, int at) { a[at] = input<double>(warp, operand)[lane]; });
  each(all.bRegisters, all.bCount, Role::right, all.k, all.n,
       [&](uint32_t operand, int lane, int at) { b[at] = input<double>(warp, operand)[lane]; });
  each(all.cRegisters, all.cCount, Role::sum, all.m, all.n,
       [&](uint32_t operand, int lane, int at) { sums[at] = input<double>(warp, operand)[lane]; });
  {
    RoundingScope scope(static_cast<Rounding>(instr.rounding));
    for (int row = 0; row < all.m; ++row) {
      for (int column = 0; column < all.n; ++column) {
        double sum = sums[row * all.n + column];
        for (int index = 0; index < all.k; ++index) sum = fma(a[row * all.k + index], b[index * all.n + column], sum);
        sums[row * all.n + column] = sum;
      }
    }
  }
  each(all.dRegisters, all.dCount, Role::sum, all.m, all.n, [&](uint32_t operand, int lane, int at) {
    if ((mask >> lane & 1) != 0) output<double>(warp, operand)[lane] = sums[at];
  });
}

void gatherIntegers(const Warp& warp, const Matrices& all, Role role, int32_t* to) {
  const bool isLeft = role == Role::left;
  const int rows = isLeft ? all.m : all.k, columns = isLeft ? all.k : all.n, count = isLeft ? all.aCount : all.bCount;
  const uint32_t* registers = isLeft ? all.aRegisters : all.bRegisters;
  switch (isLeft ? all.a : all.b) {
    case Type::u8: return gather<Type::u8>(warp, registers, count, role, rows, columns, to);
    case Type::s8: return gather<Type::s8>(warp, registers, count, role, rows, columns, to);
    case Type::u4: return gather<Type::u4>(warp, registers, count, role, rows, columns, to);
    default: return gather<Type::s4>(warp, registers, count, role, rows, columns, to);
  }
}

// Single bits stay packed in words, and a product counts the common bits of two words.
template <bool isBits>
void multiplyIntegers(Warp& warp, const Instr& instr, uint32_t mask) {
  const Matrices all(warp, instr);
  const int k = isBits ? all.k / 32 : all.k, n = all.n;
  int32_t a[kMost], b[kMost];
  if constexpr (isBits) {
    for (int which = 0; which < 2; ++which) {
      const bool isLeft = which == 0;
      const Role role = isLeft ? Role::left : Role::right;
      for (int index = 0; index < (isLeft ? all.aCount : all.bCount); ++index) {
        const int32_t* from = input<int32_t>(warp, (isLeft ? all.aRegisters : all.bRegisters)[index]);
        for (int lane = 0; lane < kLanes; ++lane) {
          const Place at = placeOf(role, isLeft ? all.m : all.k, isLeft ? all.k : n, 32, index, 0, lane);
          if (isLeft) a[at.row * k + at.column / 32] = from[lane];
          else b[at.row / 32 * n + at.column] = from[lane];
        }
      }
    }
  } else {
    gatherIntegers(warp, all, Role::left, a);
    gatherIntegers(warp, all, Role::right, b);
  }
  const bool isAnd = (all.flags & matrixIsAnd) != 0, isSaturated = (all.flags & matrixSaturates) != 0;
  int32_t products[kMost];
  for (int row = 0; row < all.m; ++row) {
    int32_t* sum = products + row * n;
    for (int column = 0; column < n; ++column) sum[column] = 0;
    for (int index = 0; index < k; ++index) {
      const int32_t x = a[row * k + index];
      for (int column = 0; column < n; ++column) {
        const int32_t y = b[index * n + column];
        sum[column] += isBits ? __builtin_popcount(static_cast<uint32_t>(isAnd ? x & y : x ^ y)) : x * y;
      }
    }
  }
  for (int index = 0; index < all.dCount; ++index) {
    const int32_t* from = input<int32_t>(warp, all.cRegisters[index]);
    int32_t* to = output<int32_t>(warp, all.dRegisters[index]);
    int32_t values[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const Place at = placeOf(Role::sum, all.m, n, 1, index, 0, lane);
      const int64_t wide = int64_t{from[lane]} + products[at.row * n + at.column];
      values[lane] = static_cast<int32_t>(!isSaturated       ? wide
                                          : wide > INT32_MAX ? INT32_MAX
                                          : wide < INT32_MIN ? INT32_MIN
                                                             : wide);
    }
    eachSet(mask, [&](int lane) { to[lane] = values[lane]; });
  }
}

}  // namespace

Handler findMatrix(const Key& key) {
  if (key.op != Op::mma) return nullptr;
  switch (key.type) {
    case Type::f16:
    case Type::bf16:
    case Type::tf32:
    case Type::e4m3:
    case Type::e5m2: return multiplyFloats;
    case Type::f64: return multiplyDoubles;
    case Type::s8:
    case Type::u8:
    case Type::s4:
    case Type::u4: return multiplyIntegers<false>;
    case Type::b1: return multiplyIntegers<true>;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
