// The layout of matrices in the registers of a warp.
#pragma once

#include "types.h"

namespace shoal::ptx {

enum class Role : uint8_t { left, right, sum };  // the role of a matrix in a product: A, B, and C or D

// A tile has eight rows (columns in the right matrix). Lane 4g + t holds row g (column g), from element t * perRegister
// on. Each register is a tile; registers go down the rows first, also in the right matrix. Sums have two registers per
// tile, for two neighbouring columns. For `mma` this layout is documented; for `wmma` it is our choice.
struct Place {
  int row, column;
};
constexpr Place placeOf(Role role, int rows, int columns, int perRegister, int index, int part, int lane) {
  const int group = lane >> 2, thread = lane & 3;
  if (role == Role::sum) {
    const int tiles = rows / 8, element = (index * perRegister + part) % (rows * columns / 32), tile = element >> 1;
    return {8 * (tile % tiles) + group, 8 * (tile / tiles) + 2 * thread + (element & 1)};
  }
  const int width = 4 * perRegister, inner = thread * perRegister + part;
  index %= rows * columns / (32 * perRegister);
  if (role == Role::left) {
    const int tiles = rows / 8;
    return {8 * (index % tiles) + group, width * (index / tiles) + inner};
  }
  const int tiles = rows / width;
  return {width * (index % tiles) + inner, 8 * (index / tiles) + group};
}

// The words of a matrix instruction in warp.operands, before its registers.
enum MatrixWord : unsigned {
  matrixM,
  matrixN,
  matrixK,
  matrixTypeA,
  matrixTypeB,
  matrixTypeC,
  matrixTypeD,
  matrixFlags,
  matrixRegisters
};
enum MatrixFlag : uint32_t {
  matrixSaturates = 1,
  matrixIsAnd = 2,
  matrixIsLeftColumns = 4,
  matrixIsRightRows = 8,
  matrixIsQuads = 16
};
enum FragmentWord : unsigned {
  fragmentRole,
  fragmentRows,
  fragmentColumns,
  fragmentBits,
  fragmentPerRegister,
  fragmentIsColumns,
  fragmentRegisters
};

// The bits of a matrix element. Packed 4-bit values and single bits are element types only here.
constexpr int matrixBits(Type type) {
  switch (type) {
    case Type::b1: return 1;
    case Type::s4:
    case Type::u4: return 4;
    default: return static_cast<int>(8 * bytesOf(type));
  }
}
// Elements per register. A 64-bit element has a 64-bit register.
constexpr int perRegister(Type type) { return matrixBits(type) == 64 ? 1 : 32 / matrixBits(type); }

}  // namespace shoal::ptx
