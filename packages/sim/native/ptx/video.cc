#include "video.h"

#include <cstring>

namespace shoal::ptx {

namespace {

using Wide = __int128;

Wide partOf(uint32_t word, unsigned at, unsigned bits, bool isSigned) {
  const uint64_t part = word >> at & ((uint64_t{1} << bits) - 1);
  return isSigned && (part >> (bits - 1) & 1) != 0 ? static_cast<Wide>(part) - (Wide{1} << bits)
                                                   : static_cast<Wide>(part);
}

Wide clampedTo(Wide value, unsigned bits, bool isSigned) {
  const Wide top = isSigned ? (Wide{1} << (bits - 1)) - 1 : (Wide{1} << bits) - 1, bottom = isSigned ? -top - 1 : 0;
  return value > top ? top : value < bottom ? bottom : value;
}

bool holds(Comparison comparison, Wide a, Wide b) {
  switch (comparison) {
    case Comparison::eq: return a == b;
    case Comparison::ne: return a != b;
    case Comparison::lt: return a < b;
    case Comparison::le: return a <= b;
    case Comparison::gt: return a > b;
    default: return a >= b;
  }
}

Wide resultOf(const uint32_t* words, Wide a, Wide b) {
  switch (static_cast<VideoOp>(words[videoOp])) {
    case VideoOp::add: return a + b;
    case VideoOp::sub: return a - b;
    case VideoOp::difference: return a < b ? b - a : a - b;
    case VideoOp::minimum: return a < b ? a : b;
    case VideoOp::maximum: return a > b ? a : b;
    case VideoOp::average: return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;  // ties away from zero
    case VideoOp::compare: return holds(static_cast<Comparison>(words[videoComparison]), a, b) ? 1 : 0;
    default: {
      const auto by = static_cast<unsigned>(words[videoWraps] != 0 ? b & 31 : b > 32 ? 32 : b);
      return static_cast<VideoOp>(words[videoOp]) == VideoOp::shiftLeft ? a * (Wide{1} << by) : a >> by;
    }
  }
}

uint32_t multiplied(const uint32_t* words, Wide a, Wide b, uint32_t addend) {
  const bool isNegatedProduct = words[videoIsNegatedProduct] != 0, isNegatedAddend = words[videoIsNegatedAddend] != 0;
  const bool isSigned = words[videoIsSignedA] != 0 || words[videoIsSignedB] != 0 || isNegatedProduct || isNegatedAddend;
  const Wide c = partOf(addend, 0, 32, isSigned);
  Wide result =
      (isNegatedProduct ? -(a * b) : a * b) + (isNegatedAddend ? -c : c) + (words[videoIsPlusOne] != 0 ? 1 : 0);
  result >>= words[videoScale];
  return static_cast<uint32_t>(words[videoSaturates] != 0 ? clampedTo(result, 32, isSigned) : result);
}

uint32_t single(const uint32_t* words, uint32_t a, uint32_t b, uint32_t c) {
  const Wide x = partOf(a, words[videoAtA], words[videoBitsA], words[videoIsSignedA] != 0),
             y = partOf(b, words[videoAtB], words[videoBitsB], words[videoIsSignedB] != 0);
  if (static_cast<VideoOp>(words[videoOp]) == VideoOp::multiplyAdd) return multiplied(words, x, y, c);
  const bool isSigned = words[videoIsSigned] != 0;
  const unsigned bits = words[videoBits];
  Wide result = resultOf(words, x, y);
  if (words[videoSaturates] != 0) result = clampedTo(result, bits, isSigned);
  // The intermediate result has 33 bits.
  result = partOf(static_cast<uint32_t>(result), 0, 32, false) - ((result >> 32 & 1) != 0 ? Wide{1} << 32 : 0);
  const Wide other = partOf(c, 0, 32, isSigned);
  switch (static_cast<VideoSecond>(words[videoSecond])) {
    case VideoSecond::none: return static_cast<uint32_t>(result);
    case VideoSecond::add: return static_cast<uint32_t>(result + other);
    case VideoSecond::minimum: return static_cast<uint32_t>(result < other ? result : other);
    case VideoSecond::maximum: return static_cast<uint32_t>(result > other ? result : other);
    default: {
      const uint32_t field = ((1u << bits) - 1) << words[videoAt];
      return (c & ~field) | (static_cast<uint32_t>(result) << words[videoAt] & field);
    }
  }
}

uint32_t several(const uint32_t* words, uint32_t a, uint32_t b, uint32_t c) {
  const unsigned parts = words[videoParts], bits = 32 / parts;
  const bool isAdded = static_cast<VideoSecond>(words[videoSecond]) == VideoSecond::add;
  uint32_t all = c;
  for (unsigned part = 0; part < parts; ++part) {
    if ((words[videoMask] >> part & 1) == 0) continue;
    auto chosen = [&](uint32_t order, bool isSigned) {
      const unsigned from = order >> 4 * part & 15;
      return partOf(from < parts ? a : b, from % parts * bits, bits, isSigned);
    };
    Wide result = resultOf(words, chosen(words[videoFromA], words[videoIsSignedA] != 0),
                           chosen(words[videoFromB], words[videoIsSignedB] != 0));
    if (words[videoSaturates] != 0) result = clampedTo(result, bits, words[videoIsSigned] != 0);
    const uint32_t field = ((1u << bits) - 1) << part * bits;
    if (isAdded) all += static_cast<uint32_t>(result);
    else all = (all & ~field) | (static_cast<uint32_t>(result) << part * bits & field);
  }
  return all;
}

}  // namespace

void runVideo(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* words = warp.operands + instr.target;
  auto value = [&](unsigned index, int lane) {
    const uint32_t operand = instr.operands[index];
    uint32_t bits;
    memcpy(&bits, ((operand & kConstant) != 0 ? warp.constants : warp.registers) + (operand & ~kConstant) + 4 * lane,
           4);
    return bits;
  };
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    const uint32_t a = value(1, lane), b = value(2, lane), c = value(3, lane);
    const uint32_t result = words[videoParts] == 1 ? single(words, a, b, c) : several(words, a, b, c);
    memcpy(warp.registers + instr.to + 4 * lane, &result, 4);
  }
}

}  // namespace shoal::ptx
