// Matrix fragments, moved between memory and lanes: ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store.
#include "../matrix.h"
#include "address.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

// Matrices of eight rows with eight 16-bit elements. Lanes 8i to 8i + 7 hold the row addresses of matrix i. Each lane
// has two elements that are neighbours in a row, or, transposed, in a column. a = the addresses,
// warp.operands[target...] = `count` registers.
template <Space space, bool isStore, bool isTransposed>
void rows(Warp& warp, const Instr& instr, uint32_t mask) {
  Range& range = warp.ranges[instr.slot];
  const uint32_t* registers = warp.operands + instr.target;
  uint32_t loaded[4][kLanes];
  for (int index = 0; index < instr.count; ++index) {
    uint16_t values[8][8];
    auto element = [&](int lane, int part) -> uint16_t& {
      const int row = lane >> 2, column = 2 * (lane & 3) + part;
      return isTransposed ? values[column][row] : values[row][column];
    };
    if (isStore) {
      const uint32_t* from = input<uint32_t>(warp, registers[index]);
      for (int lane = 0; lane < kLanes; ++lane)
        element(lane, 0) = static_cast<uint16_t>(from[lane]),
                      element(lane, 1) = static_cast<uint16_t>(from[lane] >> 16);
    }
    for (int row = 0; row < 8; ++row) {
      const int lane = 8 * index + row;
      uint8_t* at = memoryOf<space>(warp, instr, range, lane, addressOf(warp, instr, instr.a, lane), 16, isStore);
      if (isStore) memcpy(at, values[row], 16);
      else memcpy(values[row], at, 16);
    }
    if (!isStore) {
      for (int lane = 0; lane < kLanes; ++lane)
        loaded[index][lane] = element(lane, 0) | static_cast<uint32_t>(element(lane, 1)) << 16;
    }
  }
  if (isStore) return;
  // Store after all loads, because an output register may also be the address.
  for (int index = 0; index < instr.count; ++index) {
    uint32_t* to = output<uint32_t>(warp, registers[index]);
    eachSet(mask, [&](int lane) { to[lane] = loaded[index][lane]; });
  }
}

void transpose(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* from = input<uint32_t>(warp, instr.a);
  uint32_t moved[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane >> 2, column = 2 * (lane & 3);
    auto element = [&](int r, int c) { return from[4 * r + c / 2] >> 16 * (c & 1) & 0xffff; };
    moved[lane] = element(column, row) | element(column + 1, row) << 16;
  }
  uint32_t* to = output<uint32_t>(warp, instr.to);
  eachSet(mask, [&](int lane) { to[lane] = moved[lane]; });
}

// a = the address of the matrix, b = the stride between rows (or columns), in elements. Elements smaller than a byte
// are moved as a whole word, because the elements of a register are adjacent in memory.
template <Space space, bool isStore>
void fragment(Warp& warp, const Instr& instr, uint32_t mask) {
  Range& range = warp.ranges[instr.slot];
  const uint32_t* words = warp.operands + instr.target;
  const auto role = static_cast<Role>(words[fragmentRole]);
  const int rowCount = static_cast<int>(words[fragmentRows]), columnCount = static_cast<int>(words[fragmentColumns]);
  const int bits = static_cast<int>(words[fragmentBits]), per = static_cast<int>(words[fragmentPerRegister]);
  const bool isColumns = words[fragmentIsColumns] != 0;
  const int moved = bits < 8 ? 1 : per, registerBytes = bits == 64 ? 8 : 4;
  const auto bytes = static_cast<unsigned>(bits < 8 ? 4 : bits / 8);
  const uint32_t* strides = input<uint32_t>(warp, instr.b);
  for (int index = 0; index < instr.count; ++index) {
    const uint32_t reg = words[fragmentRegisters + index];
    eachSet(mask, [&](int lane) {
      const uint64_t start = addressOf(warp, instr, instr.a, lane);
      for (int part = 0; part < moved; ++part) {
        const Place at = placeOf(role, rowCount, columnCount, per, index, part, lane);
        const auto element =
            isColumns ? uint64_t{strides[lane]} * static_cast<unsigned>(at.column) + static_cast<unsigned>(at.row)
                      : uint64_t{strides[lane]} * static_cast<unsigned>(at.row) + static_cast<unsigned>(at.column);
        uint8_t* memory = memoryOf<space>(warp, instr, range, lane, start + element * static_cast<unsigned>(bits) / 8,
                                          bytes, isStore);
        const int inRegister = registerBytes * lane + static_cast<int>(bytes) * part;
        if (isStore) memcpy(memory, input<uint8_t>(warp, reg) + inRegister, bytes);
        else memcpy(output<uint8_t>(warp, reg) + inRegister, memory, bytes);
      }
    });
  }
}

template <bool isStore>
Handler rowsBySpace(const Key& key) {
  const bool isTransposed = key.extra != 0;
  if (key.space == Space::generic)
    return isTransposed ? rows<Space::generic, isStore, true> : rows<Space::generic, isStore, false>;
  return isTransposed ? rows<Space::shared, isStore, true> : rows<Space::shared, isStore, false>;
}

}  // namespace

Handler findFragment(const Key& key) {
  const bool isFragment = key.type != Type::none, isShared = key.space == Space::shared;
  switch (key.op) {
    case Op::loadMatrix:
      if (isFragment) return isShared ? fragment<Space::shared, false> : fragment<Space::generic, false>;
      return rowsBySpace<false>(key);
    case Op::storeMatrix:
      if (isFragment) return isShared ? fragment<Space::shared, true> : fragment<Space::generic, true>;
      return rowsBySpace<true>(key);
    case Op::moveMatrix: return transpose;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES
