// cvt: between all types, with every rounding and saturation.
#include "real.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

// Reads the source as a 64-bit integer. The register may be larger than the type.
SHOAL_INLINE int64_t readInteger(const Warp& warp, uint32_t operand, unsigned registerBytes, Type type, int lane) {
  uint64_t bits;
  if (registerBytes == 2) bits = input<uint16_t>(warp, operand)[lane];
  else if (registerBytes == 4) bits = input<uint32_t>(warp, operand)[lane];
  else bits = input<uint64_t>(warp, operand)[lane];
  switch (type) {
    case Type::u8:
    case Type::b8: return static_cast<uint8_t>(bits);
    case Type::s8: return static_cast<int8_t>(bits);
    case Type::u16:
    case Type::b16: return static_cast<uint16_t>(bits);
    case Type::s16: return static_cast<int16_t>(bits);
    case Type::u32:
    case Type::b32: return static_cast<uint32_t>(bits);
    case Type::s32: return static_cast<int32_t>(bits);
    default: return static_cast<int64_t>(bits);
  }
}

// Writes the value, sign- or zero-extended to the register's size.
SHOAL_INLINE void writeInteger(Warp& warp, uint32_t operand, unsigned registerBytes, Type type, int lane,
                               int64_t value) {
  switch (type) {
    case Type::u8:
    case Type::b8: value = static_cast<uint8_t>(value); break;
    case Type::s8: value = static_cast<int8_t>(value); break;
    case Type::u16:
    case Type::b16: value = static_cast<uint16_t>(value); break;
    case Type::s16: value = static_cast<int16_t>(value); break;
    case Type::u32:
    case Type::b32: value = static_cast<uint32_t>(value); break;
    case Type::s32: value = static_cast<int32_t>(value); break;
    default: break;
  }
  if (registerBytes == 2) output<uint16_t>(warp, operand)[lane] = static_cast<uint16_t>(value);
  else if (registerBytes == 4) output<uint32_t>(warp, operand)[lane] = static_cast<uint32_t>(value);
  else output<uint64_t>(warp, operand)[lane] = static_cast<uint64_t>(value);
}

// The bounds of an integer type, as doubles: values it can hold, or just cannot hold.
struct Bounds {
  bool isSigned;
  int bits;
};
SHOAL_INLINE Bounds boundsOf(Type type) { return {isSigned(type), static_cast<int>(8 * bytesOf(type))}; }

SHOAL_INLINE int64_t clampInteger(int64_t value, bool isSourceUnsigned64, Type type) {
  const Bounds bounds = boundsOf(type);
  if (bounds.bits == 64) {
    if (bounds.isSigned) return isSourceUnsigned64 && value < 0 ? INT64_MAX : value;
    return !isSourceUnsigned64 && value < 0 ? 0 : value;
  }
  const int64_t top = bounds.isSigned ? (int64_t{1} << (bounds.bits - 1)) - 1 : (int64_t{1} << bounds.bits) - 1;
  const int64_t bottom = bounds.isSigned ? -top - 1 : 0;
  if (isSourceUnsigned64 && value < 0) return top;
  return value > top ? top : value < bottom ? bottom : value;
}

SHOAL_INLINE double roundedToInteger(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::rzi:
    case Rounding::rz: return __builtin_trunc(value);
    case Rounding::rmi:
    case Rounding::rm: return __builtin_floor(value);
    case Rounding::rpi:
    case Rounding::rp: return __builtin_ceil(value);
    default: return __builtin_rint(value);
  }
}

// A value out of range becomes the nearest bound. A NaN becomes zero. From doubles and to 64 bits it becomes the top
// bit, as on hardware.
SHOAL_INLINE int64_t toInteger(double value, Rounding rounding, Type type, bool isFromDouble) {
  const Bounds bounds = boundsOf(type);
  if (value != value) {
    return isFromDouble || bounds.bits == 64 ? static_cast<int64_t>(uint64_t{1} << (bounds.bits - 1)) : 0;
  }
  const double whole = roundedToInteger(value, rounding);
  const double beyond = bounds.isSigned ? static_cast<double>(uint64_t{1} << (bounds.bits - 1))
                                        : static_cast<double>(uint64_t{1} << (bounds.bits - 1)) * 2;
  const double bottom = bounds.isSigned ? -beyond : 0;
  if (whole >= beyond)
    return bounds.isSigned     ? static_cast<int64_t>((uint64_t{1} << (bounds.bits - 1)) - 1)
           : bounds.bits == 64 ? -1
                               : (int64_t{1} << bounds.bits) - 1;
  if (whole <= bottom) return bounds.isSigned ? static_cast<int64_t>(~uint64_t{0} << (bounds.bits - 1)) : 0;
  return bounds.isSigned ? static_cast<int64_t>(whole) : static_cast<int64_t>(static_cast<uint64_t>(whole));
}

SHOAL_INLINE double readFloat(const Warp& warp, uint32_t operand, unsigned registerBytes, Type type, int lane,
                              bool isFlushed) {
  switch (type) {
    case Type::f64: return input<double>(warp, operand)[lane];
    case Type::f32: {
      const float value = input<float>(warp, operand)[lane];
      return static_cast<double>(isFlushed ? flushed(value) : value);
    }
    default: {
      const uint16_t bits = registerBytes == 2 ? input<uint16_t>(warp, operand)[lane]
                                               : static_cast<uint16_t>(input<uint32_t>(warp, operand)[lane]);
      return static_cast<double>(type == Type::f16 ? fromHalf(bits) : fromBf16(bits));
    }
  }
}

// A NaN of a double keeps its sign and the upper part of its payload. Other types have a single NaN.
SHOAL_INLINE uint16_t smallNan(double value, Type type) {
  const uint64_t bits = bitsOf(value);
  const uint64_t fraction = type == Type::f16 ? 0x7e00 | (bits >> 42 & 0x1ff) : 0x7fc0 | (bits >> 45 & 0x3f);
  return static_cast<uint16_t>((bits >> 48 & 0x8000) | fraction);
}

SHOAL_INLINE void writeFloat(Warp& warp, const Instr& instr, const Key& key, int lane, double value) {
  switch (key.type) {
    case Type::f64: output<double>(warp, instr.to)[lane] = value; break;
    case Type::f32: {
      float narrow = static_cast<float>(value);
      if (key.ftz) narrow = flushed(narrow);
      output<float>(warp, instr.to)[lane] = key.from == Type::f64 ? narrow : oneNan(narrow);
      break;
    }
    default: {
      const bool isDoubleNan = key.from == Type::f64 && value != value;
      const uint16_t bits = isDoubleNan             ? smallNan(value, key.type)
                            : key.type == Type::f16 ? toHalf(value, key.rounding)
                                                    : toBf16(value, key.rounding);
      if (instr.count == 4) output<uint32_t>(warp, instr.to)[lane] = bits;
      else output<uint16_t>(warp, instr.to)[lane] = bits;
    }
  }
}

// The key is in the operand list: warp.operands[target...] = type, from, rounding, ftz, saturate, relu. count and extra
// are the sizes of the registers in bytes.
SHOAL_INLINE Key keyOf(const Warp& warp, const Instr& instr) {
  const uint32_t* packed = warp.operands + instr.target;
  Key key;
  key.type = static_cast<Type>(packed[0]);
  key.from = static_cast<Type>(packed[1]);
  key.rounding = static_cast<Rounding>(packed[2]);
  key.ftz = packed[3] != 0;
  key.saturate = packed[4] != 0;
  key.isRelu = packed[5] != 0;
  return key;
}

void integerToInteger(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  const bool isUnsigned64 = key.from == Type::u64 || key.from == Type::b64;
  eachSet(mask, [&](int lane) {
    int64_t value = readInteger(warp, instr.a, instr.fromBytes, key.from, lane);
    if (key.saturate) value = clampInteger(value, isUnsigned64, key.type);
    writeInteger(warp, instr.to, instr.count, key.type, lane, value);
  });
}

void integerToFloat(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  const bool isUnsigned64 = key.from == Type::u64;
  RoundingScope scope(key.rounding);
  eachSet(mask, [&](int lane) {
    const int64_t value = readInteger(warp, instr.a, instr.fromBytes, key.from, lane);
    if (key.type == Type::f32) {
      float result = isUnsigned64 ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value);
      if (key.saturate) result = clamped(result);
      output<float>(warp, instr.to)[lane] = result;
    } else if (key.type == Type::f64) {
      double result = isUnsigned64 ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
      if (key.saturate) result = clamped(result);
      output<double>(warp, instr.to)[lane] = result;
    } else {
      // Round only once: the double keeps a sticky bit for the bits that are cut off.
      const bool isBelow = !isUnsigned64 && value < 0;
      uint64_t size = isBelow ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
      if (size >> 53 != 0) size = size >> 11 << 11 | (size & 0x7ff ? uint64_t{1} << 11 : 0);
      double result = static_cast<double>(size);
      if (isBelow) result = -result;
      if (key.saturate) result = clamped(result);
      writeFloat(warp, instr, key, lane, result);
    }
  });
}

void floatToInteger(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  eachSet(mask, [&](int lane) {
    const double value = readFloat(warp, instr.a, instr.fromBytes, key.from, lane, key.ftz);
    writeInteger(warp, instr.to, instr.count, key.type, lane,
                 toInteger(value, key.rounding, key.type, key.from == Type::f64));
  });
}

void floatToFloat(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  const bool isInteger = key.rounding >= Rounding::rni;
  RoundingScope scope(isInteger ? Rounding::rn : key.rounding);
  eachSet(mask, [&](int lane) {
    double value = readFloat(warp, instr.a, instr.fromBytes, key.from, lane, key.ftz);
    if (isInteger) value = roundedToInteger(value, key.rounding);
    if (key.saturate) value = clamped(value);
    if (key.isRelu && !(value > 0)) value = value != value ? value : 0.0;
    writeFloat(warp, instr, key, lane, value);
  });
}

// Frequent conversions, in vectors.
template <class D, class S>
void plain(Warp& warp, const Instr& instr, uint32_t mask) {
  const S* a = input<S>(warp, instr.a);
  each<D>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return static_cast<D>(a[lane]); });
}
// For a type that is smaller than its register.
template <class D, class N, class S>
void narrow(Warp& warp, const Instr& instr, uint32_t mask) {
  const S* a = input<S>(warp, instr.a);
  each<D>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return static_cast<D>(static_cast<N>(a[lane])); });
}
struct Truncate32 {
  SHOAL_INLINE static int32_t of(float a) {
    // The CPU's conversion returns the minimum for every value that does not fit.
    const float limited = a < -0x1p31f ? -0x1p31f : a;
    return limited >= 0x1p31f ? INT32_MAX : limited != limited ? 0 : static_cast<int32_t>(limited);
  }
};
struct FromHalf {
  SHOAL_INLINE static float of(uint16_t a) { return oneNan(fromHalf(a)); }
};
struct FromBf16 {
  SHOAL_INLINE static float of(uint16_t a) { return fromBf16(a); }
};  // a NaN stays as it is
struct ToHalf {
  SHOAL_INLINE static uint16_t of(float a) { return toHalf(static_cast<double>(a)); }
};
struct ToBf16 {
  SHOAL_INLINE static uint16_t of(float a) {
    const uint32_t bits = bitsOf(a);
    return a != a ? 0x7fff : static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

Handler frequent(const Key& key) {
  if (key.saturate || key.ftz || key.isRelu) return nullptr;
  const Type to = key.type, from = key.from;
  const bool isExact = key.rounding == Rounding::none || key.rounding == Rounding::rn;
  const unsigned toBytes = key.count, fromBytes = key.extra;
  if (toBytes == bytesOf(to) && fromBytes == bytesOf(from)) {
    if (bytesOf(to) == 8 && (isInteger(to) || to == Type::b64)) {
      if (from == Type::s32) return plain<int64_t, int32_t>;
      if (from == Type::u32) return plain<uint64_t, uint32_t>;
      if (from == Type::u16) return plain<uint64_t, uint16_t>;
      if (from == Type::s16) return plain<int64_t, int16_t>;
    }
    if (bytesOf(to) == 4 && isInteger(to)) {
      if (from == Type::s16) return plain<int32_t, int16_t>;
      if (from == Type::u16) return plain<uint32_t, uint16_t>;
      if (bytesOf(from) == 8 && isInteger(from)) return plain<uint32_t, uint64_t>;
    }
    if (bytesOf(to) == 2 && isInteger(to) && isInteger(from)) {
      if (bytesOf(from) == 4) return plain<uint16_t, uint32_t>;
      if (bytesOf(from) == 8) return plain<uint16_t, uint64_t>;
    }
    if (isExact && to == Type::f32) {
      if (from == Type::s32) return plain<float, int32_t>;
      if (from == Type::u32) return plain<float, uint32_t>;
      if (from == Type::f16) return unary<float, uint16_t, FromHalf>;
      if (from == Type::bf16) return unary<float, uint16_t, FromBf16>;
    }
    if (isExact && to == Type::f64) {
      if (from == Type::s32) return plain<double, int32_t>;
      if (from == Type::u32) return plain<double, uint32_t>;
      if (from == Type::f32) return plain<double, float>;
    }
    if (isExact && to == Type::f16 && from == Type::f32) return unary<uint16_t, float, ToHalf>;
    if (isExact && to == Type::bf16 && from == Type::f32) return unary<uint16_t, float, ToBf16>;
    if (key.rounding == Rounding::rzi && to == Type::s32 && from == Type::f32) return unary<int32_t, float, Truncate32>;
  }
  if (toBytes == 4 && fromBytes == 4 && bytesOf(to) == 4 && isInteger(to)) {
    if (from == Type::u8) return narrow<uint32_t, uint8_t, uint32_t>;
    if (from == Type::s8) return narrow<int32_t, int8_t, uint32_t>;
    if (from == Type::u16) return narrow<uint32_t, uint16_t, uint32_t>;
    if (from == Type::s16) return narrow<int32_t, int16_t, uint32_t>;
  }
  return nullptr;
}

// Converts two floats to a pair. a becomes the upper half.
void convertPair(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  const float *a = input<float>(warp, instr.a), *b = input<float>(warp, instr.b);
  uint32_t* to = output<uint32_t>(warp, instr.to);
  const bool isHalf = key.type == Type::f16x2;
  const uint16_t infinity = isHalf ? 0x7c00 : 0x7f80;
  eachSet(mask, [&](int lane) {
    uint16_t parts[2];
    for (int index = 0; index < 2; ++index) {
      const auto value = static_cast<double>(index == 0 ? b[lane] : a[lane]);
      uint16_t bits = isHalf ? toHalf(value, key.rounding) : toBf16(value, key.rounding);
      if (key.isRelu && (bits & 0x8000) != 0) bits = 0;
      if (key.saturate && (bits & 0x7fff) == infinity) bits = static_cast<uint16_t>((bits & 0x8000) | (infinity - 1));
      parts[index] = bits;
    }
    to[lane] = parts[0] | static_cast<uint32_t>(parts[1]) << 16;
  });
}

// Output formats of 8, 6 and 4 bits. Formats with fewer than 8 bits have no NaN.
struct Tiny {
  int exponentBits, fractionBits;
  double largest;
  uint8_t largestBits, nan;
};
SHOAL_INLINE Tiny tinyOf(Type type) {
  switch (type) {
    case Type::e4m3x2: return {4, 3, 448, 0x7e, 0x7f};
    case Type::e5m2x2: return {5, 2, 57344, 0x7b, 0x7f};
    case Type::e2m3x2: return {2, 3, 7.5, 0x1f, 0x1f};
    case Type::e3m2x2: return {3, 2, 28, 0x1f, 0x1f};
    default: return {2, 1, 6, 0x7, 0x7};
  }
}
SHOAL_INLINE uint8_t toTiny(double value, const Tiny& type, bool isRelu) {
  if (value != value) return type.nan;
  if (isRelu && !(value > 0)) return 0;
  const bool isNegative = __builtin_signbit(value) != 0;
  const double size = __builtin_fabs(value);
  uint8_t bits;
  if (size >= type.largest) bits = type.largestBits;
  else {
    const int bias = (1 << (type.exponentBits - 1)) - 1;
    int exponent = static_cast<int>(bitsOf(size) >> 52) - 1023;
    if (exponent < 1 - bias) exponent = 1 - bias;
    const double unit = asDouble(static_cast<uint64_t>(exponent - type.fractionBits + 1023) << 52);
    const auto steps = static_cast<int>(__builtin_rint(size / unit));
    const int normal = 1 << type.fractionBits;
    bits = static_cast<uint8_t>(steps < normal ? steps : ((exponent + bias) << type.fractionBits) + (steps - normal));
  }
  return static_cast<uint8_t>(bits | (isNegative ? 1 << (type.exponentBits + type.fractionBits) : 0));
}
SHOAL_INLINE float fromTiny(uint8_t bits, Type type) {
  if (type == Type::e4m3x2 || type == Type::e5m2x2) return fromEight(bits, type == Type::e4m3x2);
  const Tiny of = tinyOf(type);
  const int exponent = bits >> of.fractionBits & ((1 << of.exponentBits) - 1),
            fraction = bits & ((1 << of.fractionBits) - 1), bias = (1 << (of.exponentBits - 1)) - 1;
  const int units = exponent == 0 ? fraction : fraction + (1 << of.fractionBits);
  const float value =
      static_cast<float>(units) *
      asFloat(static_cast<uint32_t>((exponent == 0 ? 1 : exponent) - bias - of.fractionBits + 127) << 23);
  return (bits >> (of.exponentBits + of.fractionBits) & 1) != 0 ? -value : value;
}
// Converts a bf16 to a power of two. Both have the same exponents. The sign is ignored.
SHOAL_INLINE uint8_t toScale(float value, Rounding rounding, bool isFinite) {
  const uint32_t bits = bitsOf(value) & 0x7fffffff;
  auto exponent = static_cast<uint8_t>(bits >> 23);
  // Rounding up a subnormal leads to the next power of two, except for its lower half.
  if (rounding == Rounding::rp && (bits & 0x7fffff) != 0 && bits > 0x00400000 && bits < 0x7f800000) ++exponent;
  return isFinite && bits <= 0x7f800000 && exponent == 0xff ? 0xfe : exponent;
}

// Reads the two values to convert. The upper value is in a.
SHOAL_INLINE void readPair(const Warp& warp, const Instr& instr, Type from, int lane, float& high, float& low) {
  if (from == Type::f32) {
    high = input<float>(warp, instr.a)[lane];
    low = input<float>(warp, instr.b)[lane];
    return;
  }
  const uint32_t both = input<uint32_t>(warp, instr.a)[lane];
  const auto upper = static_cast<uint16_t>(both >> 16), lower = static_cast<uint16_t>(both);
  high = from == Type::f16x2 ? fromHalf(upper) : fromBf16(upper);
  low = from == Type::f16x2 ? fromHalf(lower) : fromBf16(lower);
}
void toTinyPair(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  const Tiny type = tinyOf(key.type);
  const int bits = key.type == Type::e2m1x2 ? 4 : 8;
  uint16_t* to = output<uint16_t>(warp, instr.to);
  eachSet(mask, [&](int lane) {
    float high, low;
    readPair(warp, instr, key.from, lane, high, low);
    if (key.type == Type::ue8m0x2)
      to[lane] = static_cast<uint16_t>(toScale(low, key.rounding, key.saturate) |
                                       toScale(high, key.rounding, key.saturate) << 8);
    else
      to[lane] = static_cast<uint16_t>(toTiny(static_cast<double>(low), type, key.isRelu) |
                                       toTiny(static_cast<double>(high), type, key.isRelu) << bits);
  });
}
void fromTinyPair(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  const int bits = key.from == Type::e2m1x2 ? 4 : 8;
  const uint16_t* a = input<uint16_t>(warp, instr.a);
  uint32_t* to = output<uint32_t>(warp, instr.to);
  eachSet(mask, [&](int lane) {
    uint32_t parts[2];
    for (int index = 0; index < 2; ++index) {
      const auto raw = static_cast<uint8_t>(a[lane] >> bits * index & ((1 << bits) - 1));
      if (key.from == Type::ue8m0x2)
        parts[index] = raw == 0xff ? 0x7fff : raw == 0 ? 0x40 : static_cast<uint32_t>(raw) << 7;
      else parts[index] = toHalf(static_cast<double>(fromTiny(raw, key.from)));
      if (key.isRelu && (parts[index] & 0x8000) != 0) parts[index] = 0;
    }
    to[lane] = parts[0] | parts[1] << 16;
  });
}
void toTensorFloat(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  const uint32_t* a = input<uint32_t>(warp, instr.a);
  uint32_t* to = output<uint32_t>(warp, instr.to);
  eachSet(mask, [&](int lane) {
    const uint32_t bits = a[lane];
    uint32_t result = bits;
    if ((bits & 0x7fffffff) > 0x7f800000) result = 0x7fffffff;
    else if ((bits & 0x7f800000) != 0x7f800000) {
      const uint32_t up = roundUp(key.rounding, bits >> 31 != 0, (bits >> 13 & 1) != 0, bits & 0x1fff, 0x1000);
      result = (bits & ~0x1fffu) + (up << 13);
    }
    if (key.saturate && (result & 0x7fffffff) == 0x7f800000) result = (result & 0x80000000) | 0x7f7fe000;
    if (key.isRelu && result >> 31 != 0) result = 0;
    to[lane] = result;
  });
}
// cvt.pack: two clamped values, followed by the bits of a third one.
void convertPack(Warp& warp, const Instr& instr, uint32_t mask) {
  const Key key = keyOf(warp, instr);
  const int32_t *a = input<int32_t>(warp, instr.a), *b = input<int32_t>(warp, instr.b);
  const uint32_t* c = instr.hasThird ? input<uint32_t>(warp, instr.c) : nullptr;
  uint32_t* to = output<uint32_t>(warp, instr.to);
  const unsigned bits = bytesOf(key.type) * 8;
  eachSet(mask, [&](int lane) {
    const uint32_t field = (1u << bits) - 1;
    const uint32_t high = static_cast<uint32_t>(clampInteger(a[lane], false, key.type)) & field;
    const uint32_t low = static_cast<uint32_t>(clampInteger(b[lane], false, key.type)) & field;
    to[lane] = (c != nullptr ? c[lane] << 2 * bits : 0) | high << bits | low;
  });
}

bool isNumber(Type type) { return isInteger(type); }

}  // namespace

Handler findConvert(const Key& key) {
  switch (key.op) {
    case Op::convertPack: return convertPack;
    case Op::convertPair:
      if (bytesOf(key.type) < 4)
        return key.from == Type::f32 || (key.from == (key.type == Type::ue8m0x2 ? Type::bf16x2 : Type::f16x2) &&
                                         bytesOf(key.type) == 2 && key.type != Type::e2m3x2 && key.type != Type::e3m2x2)
                   ? toTinyPair
                   : nullptr;
      if (key.from != Type::f32 && bytesOf(key.from) < 4)
        return (key.from == Type::ue8m0x2) == (key.type == Type::bf16x2) ? fromTinyPair : nullptr;
      return key.from == Type::f32 ? convertPair : nullptr;
    case Op::convert:
      if (key.type == Type::tf32) return toTensorFloat;
      if (Handler handler = frequent(key)) return handler;
      if (isNumber(key.from))
        return isNumber(key.type) ? integerToInteger : isFloat(key.type) ? integerToFloat : nullptr;
      if (!isFloat(key.from)) return nullptr;
      return isNumber(key.type) ? floatToInteger : isFloat(key.type) ? floatToFloat : nullptr;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
