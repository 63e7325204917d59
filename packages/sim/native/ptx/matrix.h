// How matrices lie in the registers of a warp.
#pragma once

#include "types.h"

namespace shoal::ptx {

enum class Role : uint8_t { left, right, sum };  // of a matrix in a product: A, B, and C or D

// Lane 4g + t has what lies in row g of a tile of eight rows (of the right matrix: in column g), from t times the
// elements of a register on. A register is a tile, down the rows first (of the right matrix: down its rows, too). Sums
// have two registers a tile, of two columns beside each other. `mma` documents this; for `wmma` it is a choice.
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

// What warp.operands says of an instruction on matrices, before its registers.
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

// Bits of an element of a matrix; pairs of four bits and single bits are types here alone.
constexpr int matrixBits(Type type) {
  switch (type) {
    case Type::b1: return 1;
    case Type::s4:
    case Type::u4: return 4;
    default: return static_cast<int>(8 * bytesOf(type));
  }
}
// Elements in a register; those of 64 bits have one of 64.
constexpr int perRegister(Type type) { return matrixBits(type) == 64 ? 1 : 32 / matrixBits(type); }

}  // namespace shoal::ptx
