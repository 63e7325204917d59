// The operation of an instruction, as a key to look up the loop over the lanes of a warp.
#pragma once

#include "types.h"

namespace shoal::ptx {

// clang-format off
enum class Op : uint8_t {
  add, sub, mulLow, mulHigh, mulWide, madLow, madHigh, madWide, mul24Low, mul24High, mad24Low, mad24High, sad, divide,
  remainder,
  absolute, negate, minimum, maximum, popc, clz, bfind, bfindShift, fns, brev, bfe, bfi, szext, bmsk, dp4a, dp2aLow,
  dp2aHigh,
  addCarry, subBorrow, madLowCarry, madHighCarry,  // extra: 1 carry in, 2 carry out
  bitAnd, bitOr, bitXor, bitNot, logicalNot, lop3, funnelLeft, funnelRight, shiftLeft, shiftRight, permute,
  compare, compareToValue, select, selectBySign,  // extra: the comparison
  multiply, fused, reciprocal, squareRoot, reciprocalRoot, sine, cosine, log2, exp2, tanh, copySign, testProperty,
  convert, convertPack, convertPair, move, pack, unpack,
  load, loadParam, store, atomic, reduce, prefetch, isSpace, toSpace, fromSpace, mapRank, rankOf, localAddress,
  shuffle, vote, match, redux, activeMask, elect, special, predicateAnd, predicateOr, predicateXor, predicateNot,
  predicateMove,
  fence, mma, loadMatrix, storeMatrix, moveMatrix, nothing, trap, nanosleep, stackSave,
  barrierCount,
};
// clang-format on

enum class Rounding : uint8_t { none, rn, rz, rm, rp, rna, rni, rzi, rmi, rpi };

enum class Comparison : uint8_t { eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class Combine : uint8_t { none, conjunction, disjunction, exclusive };
enum class AtomicOp : uint8_t {
  add,
  inc,
  dec,
  minimum,
  maximum,
  conjunction,
  disjunction,
  exclusive,
  exchange,
  compareAndSwap
};
enum class ShuffleMode : uint8_t { up, down, butterfly, index };
enum class VoteMode : uint8_t { all, any, uniform, ballot };
enum class PermuteMode : uint8_t { none, f4e, b4e, rc8, ecl, ecr, rc16 };
enum class Property : uint8_t { finite, infinite, number, notANumber, normal, subnormal };

struct Key {
  Op op = Op::nothing;
  Type type = Type::none;
  Type from = Type::none;  // the source's type, if it differs
  Rounding rounding = Rounding::none;
  bool ftz = false;  // flush subnormals to zero
  bool saturate = false;
  bool isApproximate = false;
  bool isNanPassed = false;
  bool isRelu = false;
  bool isAbsolute = false;
  uint8_t extra = 0;
  Combine combine = Combine::none;
  Space space = Space::generic;
  uint8_t count = 1;  // elements of a vector
};

}  // namespace shoal::ptx
