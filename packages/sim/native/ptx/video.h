// Instructions on parts of words, which video needs.
#pragma once

#include "machine.h"

namespace shoal::ptx {

enum class VideoOp : uint8_t {
  add,
  sub,
  difference,
  minimum,
  maximum,
  average,
  shiftLeft,
  shiftRight,
  multiplyAdd,
  compare
};
enum class VideoSecond : uint8_t { none, add, minimum, maximum, merge };

// Words of such an instruction. Its operands are a to c; parts are named by the bit they begin at. A vector of 2 or 4
// parts takes each of its own from one of the 8 or 4 parts of both operands, four bits for each.
enum VideoWord : unsigned {
  videoOp,
  videoSecond,
  videoParts,
  videoIsSigned,
  videoIsSignedA,
  videoIsSignedB,
  videoSaturates,
  videoComparison,
  videoWraps,
  videoScale,
  videoIsNegatedProduct,
  videoIsNegatedAddend,
  videoIsPlusOne,
  videoAt,
  videoBits,
  videoAtA,
  videoBitsA,
  videoAtB,
  videoBitsB,
  videoMask,
  videoFromA,
  videoFromB,
  videoWords
};

void runVideo(Warp& warp, const Instr& instr, uint32_t mask);

}  // namespace shoal::ptx
