// setp, set, selp and slct.
#include "real.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

struct Plain32 {
  using T = float;
  SHOAL_INLINE static float of(float a) { return a; }
};
struct Flushed32 {
  using T = float;
  SHOAL_INLINE static float of(float a) { return flushed(a); }
};
struct Plain64 {
  using T = double;
  SHOAL_INLINE static double of(double a) { return a; }
};
struct Half {
  using T = uint16_t;
  SHOAL_INLINE static float of(uint16_t a) { return fromHalf(a); }
};
struct HalfFlushed {
  using T = uint16_t;
  SHOAL_INLINE static float of(uint16_t a) { return (a & 0x7c00) == 0 ? 0.0f : fromHalf(a); }
};
struct Bf16 {
  using T = uint16_t;
  SHOAL_INLINE static float of(uint16_t a) { return fromBf16(a); }
};
template <class I> struct Integer {
  using T = I;
  SHOAL_INLINE static I of(I a) { return a; }
};

// The relations that are computed. All other comparisons swap the operands, negate the result, or both.
enum Relation { equal, unequal, less, lessOrEqual, ordered };
struct Asked {
  Relation relation;
  bool isExchanged, isNegated;
};

// Integers need only two relations.
constexpr Asked askedOfIntegers(Comparison comparison) {
  switch (comparison) {
    case Comparison::ne: return {equal, false, true};
    case Comparison::lt:
    case Comparison::lo: return {less, false, false};
    case Comparison::le:
    case Comparison::ls: return {less, true, true};
    case Comparison::gt:
    case Comparison::hi: return {less, true, false};
    case Comparison::ge:
    case Comparison::hs: return {less, false, true};
    default: return {equal, false, false};
  }
}
// With a NaN, every relation is false, and therefore every negated relation is true.
constexpr Asked askedOfFloats(Comparison comparison) {
  switch (comparison) {
    case Comparison::ne: return {unequal, false, false};
    case Comparison::lt: return {less, false, false};
    case Comparison::le: return {lessOrEqual, false, false};
    case Comparison::gt: return {less, true, false};
    case Comparison::ge: return {lessOrEqual, true, false};
    case Comparison::equ: return {unequal, false, true};
    case Comparison::neu: return {equal, false, true};
    case Comparison::ltu: return {lessOrEqual, true, true};
    case Comparison::leu: return {less, true, true};
    case Comparison::gtu: return {lessOrEqual, false, true};
    case Comparison::geu: return {less, false, true};
    case Comparison::num: return {ordered, false, false};
    case Comparison::nan: return {ordered, false, true};
    default: return {equal, false, false};
  }
}

template <Relation relation, class V>
SHOAL_INLINE bool holds(V a, V b) {
  switch (relation) {
    case equal: return a == b;
    case unequal: return a < b || a > b;
    case less: return a < b;
    case lessOrEqual: return a <= b;
    case ordered: return a == a && b == b;
  }
  return false;
}

// Packs bytes that are 0 or 1 into bits.
SHOAL_INLINE uint32_t gather(const uint8_t (&is)[kLanes]) {
  uint32_t bits = 0;
  for (int group = 0; group < 4; ++group) {
    uint64_t eight;
    memcpy(&eight, is + 8 * group, 8);
    bits |= static_cast<uint32_t>(eight * 0x0102040810204080u >> 56) << 8 * group;
  }
  return bits;
}

// Not inlined, because many handlers share it.
template <class R, Relation relation>
__attribute__((noinline)) uint32_t relatedLanes(const Warp& warp, uint32_t left, uint32_t right) {
  using T = typename R::T;
  const T *a = input<T>(warp, left), *b = input<T>(warp, right);
  uint8_t is[kLanes];
  SHOAL_IVDEP
  for (int lane = 0; lane < kLanes; ++lane) is[lane] = holds<relation>(R::of(a[lane]), R::of(b[lane])) ? 1 : 0;
  return gather(is);
}

template <class R> constexpr bool isInteger = false;
template <class I> constexpr bool isInteger<Integer<I>> = true;
template <class R, Comparison comparison>
constexpr Asked asked = isInteger<R> ? askedOfIntegers(comparison) : askedOfFloats(comparison);

template <class R, Comparison comparison>
SHOAL_INLINE uint32_t compareLanes(const Warp& warp, const Instr& instr) {
  constexpr Asked by = asked<R, comparison>;
  const uint32_t result = relatedLanes<R, by.relation>(warp, instr.operands[by.isExchanged ? 2 : 1],
                                                       instr.operands[by.isExchanged ? 1 : 2]);
  return by.isNegated ? ~result : result;
}

SHOAL_INLINE uint32_t combined(const Warp& warp, const Instr& instr, uint32_t result) {
  const auto combine = static_cast<Combine>(instr.combine & 3);
  if (combine == Combine::none) return result;
  const uint32_t other = inputPredicate(warp, instr.d) ^ ((instr.combine & 4) != 0 ? ~0u : 0);
  return combine == Combine::conjunction   ? result & other
         : combine == Combine::disjunction ? result | other
                                           : result ^ other;
}

constexpr uint32_t kNoOperand = ~0u;

// to = p; a and b are compared; c = q or none; d is combined with the result.
__attribute__((noinline)) void putPredicates(Warp& warp, const Instr& instr, uint32_t mask, uint32_t result) {
  const uint32_t p = combined(warp, instr, result), q = combined(warp, instr, ~result);
  if (instr.to != kNoOperand) setPredicate(warp, instr.to, mask, p);
  if (instr.c != kNoOperand) setPredicate(warp, instr.c, mask, q);
}
__attribute__((noinline)) void putValue(Warp& warp, const Instr& instr, uint32_t mask, uint32_t compared) {
  const uint32_t result = combined(warp, instr, compared);
  const auto yes = static_cast<uint32_t>(instr.imm);
  if (instr.count == 2) {
    uint16_t* to = output<uint16_t>(warp, instr.to);
    eachSet(mask, [=](int lane) { to[lane] = static_cast<uint16_t>((result >> lane & 1) != 0 ? yes : 0); });
  } else {
    each<uint32_t>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return (result >> lane & 1) != 0 ? yes : 0u; });
  }
}

template <class R, Comparison comparison>
void compare(Warp& warp, const Instr& instr, uint32_t mask) {
  putPredicates(warp, instr, mask, compareLanes<R, comparison>(warp, instr));
}
template <class R, Comparison comparison>
void compareToValue(Warp& warp, const Instr& instr, uint32_t mask) {
  putValue(warp, instr, mask, compareLanes<R, comparison>(warp, instr));
}

// For pairs: compares both halves. p gets the result of the low half, q of the high half; each has 32 bits of the
// value.
template <class R, Relation relation>
__attribute__((noinline)) uint64_t relatedPairs(const Warp& warp, uint32_t left, uint32_t right) {
  const uint32_t *a = input<uint32_t>(warp, left), *b = input<uint32_t>(warp, right);
  uint8_t isLow[kLanes], isHigh[kLanes];
  SHOAL_IVDEP
  for (int lane = 0; lane < kLanes; ++lane) {
    isLow[lane] = holds<relation>(R::of(static_cast<uint16_t>(a[lane])), R::of(static_cast<uint16_t>(b[lane]))) ? 1 : 0;
    isHigh[lane] =
        holds<relation>(R::of(static_cast<uint16_t>(a[lane] >> 16)), R::of(static_cast<uint16_t>(b[lane] >> 16))) ? 1
                                                                                                                  : 0;
  }
  return gather(isLow) | static_cast<uint64_t>(gather(isHigh)) << 32;
}
// The low word has the low halves' results, the high word the high halves'.
template <class R, Comparison comparison>
SHOAL_INLINE uint64_t comparePairs(const Warp& warp, const Instr& instr) {
  constexpr Asked by = asked<R, comparison>;
  const uint64_t result = relatedPairs<R, by.relation>(warp, instr.operands[by.isExchanged ? 2 : 1],
                                                       instr.operands[by.isExchanged ? 1 : 2]);
  return by.isNegated ? ~result : result;
}
__attribute__((noinline)) void putPairPredicates(Warp& warp, const Instr& instr, uint32_t mask, uint64_t result) {
  const uint32_t low = combined(warp, instr, static_cast<uint32_t>(result)),
                 high = combined(warp, instr, static_cast<uint32_t>(result >> 32));
  if (instr.to != kNoOperand) setPredicate(warp, instr.to, mask, low);
  if (instr.c != kNoOperand) setPredicate(warp, instr.c, mask, high);
}
__attribute__((noinline)) void putPairValue(Warp& warp, const Instr& instr, uint32_t mask, uint64_t result) {
  const uint32_t low = combined(warp, instr, static_cast<uint32_t>(result)),
                 high = combined(warp, instr, static_cast<uint32_t>(result >> 32));
  const auto yes = static_cast<uint32_t>(instr.imm);
  uint32_t* to = output<uint32_t>(warp, instr.to);
  eachSet(mask, [=](int lane) {
    to[lane] = ((low >> lane & 1) != 0 ? yes & 0xffff : 0) | ((high >> lane & 1) != 0 ? yes & 0xffff0000 : 0);
  });
}
template <class R, Comparison comparison>
void comparePairsToPredicates(Warp& warp, const Instr& instr, uint32_t mask) {
  putPairPredicates(warp, instr, mask, comparePairs<R, comparison>(warp, instr));
}
template <class R, Comparison comparison>
void comparePairsToValue(Warp& warp, const Instr& instr, uint32_t mask) {
  putPairValue(warp, instr, mask, comparePairs<R, comparison>(warp, instr));
}

enum Form { toPredicate, toValue, pairToPredicates, pairToValue };

template <class R, Comparison comparison>
Handler form(Form as) {
  if constexpr (sizeof(typename R::T) == 2 && !isInteger<R>) {
    if (as == pairToPredicates) return comparePairsToPredicates<R, comparison>;
    if (as == pairToValue) return comparePairsToValue<R, comparison>;
  }
  return as == toValue ? compareToValue<R, comparison> : compare<R, comparison>;
}

template <class R>
Handler byInteger(Comparison comparison, Form as) {
  switch (comparison) {
    case Comparison::eq: return form<R, Comparison::eq>(as);
    case Comparison::ne: return form<R, Comparison::ne>(as);
    case Comparison::lt:
    case Comparison::lo: return form<R, Comparison::lt>(as);
    case Comparison::le:
    case Comparison::ls: return form<R, Comparison::le>(as);
    case Comparison::gt:
    case Comparison::hi: return form<R, Comparison::gt>(as);
    case Comparison::ge:
    case Comparison::hs: return form<R, Comparison::ge>(as);
    default: return nullptr;
  }
}
template <class R>
Handler byFloat(Comparison comparison, Form as) {
  switch (comparison) {
    case Comparison::eq: return form<R, Comparison::eq>(as);
    case Comparison::ne: return form<R, Comparison::ne>(as);
    case Comparison::lt: return form<R, Comparison::lt>(as);
    case Comparison::le: return form<R, Comparison::le>(as);
    case Comparison::gt: return form<R, Comparison::gt>(as);
    case Comparison::ge: return form<R, Comparison::ge>(as);
    case Comparison::equ: return form<R, Comparison::equ>(as);
    case Comparison::neu: return form<R, Comparison::neu>(as);
    case Comparison::ltu: return form<R, Comparison::ltu>(as);
    case Comparison::leu: return form<R, Comparison::leu>(as);
    case Comparison::gtu: return form<R, Comparison::gtu>(as);
    case Comparison::geu: return form<R, Comparison::geu>(as);
    case Comparison::num: return form<R, Comparison::num>(as);
    case Comparison::nan: return form<R, Comparison::nan>(as);
    default: return nullptr;
  }
}

Handler byType(const Key& key, bool isToValue) {
  const auto comparison = static_cast<Comparison>(key.extra);
  const Form as = isToValue ? toValue : toPredicate;
  const Form asPair = isToValue ? pairToValue : pairToPredicates;
  switch (key.from) {
    case Type::b16:
    case Type::b32:
    case Type::b64:
      if (comparison != Comparison::eq && comparison != Comparison::ne) return nullptr;
      break;
    default: break;
  }
  switch (key.from) {
    case Type::u16:
    case Type::b16: return byInteger<Integer<uint16_t>>(comparison, as);
    case Type::s16: return byInteger<Integer<int16_t>>(comparison, as);
    case Type::u32:
    case Type::b32: return byInteger<Integer<uint32_t>>(comparison, as);
    case Type::s32: return byInteger<Integer<int32_t>>(comparison, as);
    case Type::u64:
    case Type::b64: return byInteger<Integer<uint64_t>>(comparison, as);
    case Type::s64: return byInteger<Integer<int64_t>>(comparison, as);
    case Type::f32: return key.ftz ? byFloat<Flushed32>(comparison, as) : byFloat<Plain32>(comparison, as);
    case Type::f64: return byFloat<Plain64>(comparison, as);
    case Type::f16: return key.ftz ? byFloat<HalfFlushed>(comparison, as) : byFloat<Half>(comparison, as);
    case Type::bf16: return byFloat<Bf16>(comparison, as);
    case Type::f16x2: return key.ftz ? byFloat<HalfFlushed>(comparison, asPair) : byFloat<Half>(comparison, asPair);
    case Type::bf16x2: return byFloat<Bf16>(comparison, asPair);
    default: return nullptr;
  }
}

template <class T>
void select(Warp& warp, const Instr& instr, uint32_t mask) {
  const T *a = input<T>(warp, instr.a), *b = input<T>(warp, instr.b);
  const uint32_t chosen = inputPredicate(warp, instr.c) ^ ((instr.negated & 1) != 0 ? ~0u : 0);
  each<T>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return (chosen >> lane & 1) != 0 ? a[lane] : b[lane]; });
}

template <class T, class S, bool isFlushed>
void selectBySign(Warp& warp, const Instr& instr, uint32_t mask) {
  const T *a = input<T>(warp, instr.a), *b = input<T>(warp, instr.b);
  const S* c = input<S>(warp, instr.c);
  each<T>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA {
    S sign = c[lane];
    if constexpr (isFlushed) sign = flushed(sign);
    return sign >= 0 ? a[lane] : b[lane];
  });
}
template <class S, bool isFlushed>
Handler bySign(Type type) {
  return bytesOf(type) == 2   ? selectBySign<uint16_t, S, isFlushed>
         : bytesOf(type) == 4 ? selectBySign<uint32_t, S, isFlushed>
                              : selectBySign<uint64_t, S, isFlushed>;
}

}  // namespace

Handler findCompare(const Key& key) {
  switch (key.op) {
    case Op::compare: return byType(key, false);
    case Op::compareToValue: return byType(key, true);
    case Op::select:
      return bytesOf(key.type) == 2 ? select<uint16_t> : bytesOf(key.type) == 4 ? select<uint32_t> : select<uint64_t>;
    case Op::selectBySign:
      return key.from == Type::s32 ? bySign<int32_t, false>(key.type)
             : key.ftz             ? bySign<float, true>(key.type)
                                   : bySign<float, false>(key.type);
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
