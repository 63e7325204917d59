// Video instructions, which work on parts of words.
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

// The words of a video instruction. Its operands are a to c. A part is named by its first bit. In a vector of 2 or 4
// parts, each part selects one of the 4 or 8 parts of both operands, with four bits each.
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
