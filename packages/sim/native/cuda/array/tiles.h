// Where the texels of an array lie that has no memory of its own: in tiles of one shape, or in one piece.
#pragma once

#include <memory>
#include <vector>

#include "shoal/cuda.h"

namespace shoal {

struct Array;

constexpr size_t kTileBytes = 65536;

// It never changes: an array whose memory is mapped anew gets another one, and work that has begun keeps what it began
// with.
struct Tiles {
  size_t width = 1, height = 1, depth = 1;  // texels of a tile
  size_t across = 1, down = 1, deep = 1;    // tiles of the array
  size_t texelBytes = 1;
  std::vector<char*> at;  // null: nothing is mapped there
  std::vector<std::shared_ptr<const void>> held;

  // Byte `x` of a row; null where nothing is mapped. As many bytes as `left` says follow it in its tile.
  char* find(size_t x, size_t y, size_t z) const {
    const size_t row = width * texelBytes;
    const size_t tile = (z / depth * down + y / height) * across + x / row;
    return at[tile] == nullptr ? nullptr : at[tile] + ((z % depth) * height + y % height) * row + x % row;
  }
  size_t left(size_t x) const { return width * texelBytes - x % (width * texelBytes); }
};

// The standard shapes of a tile of 64 KiB, and the levels that are smaller: they are mapped together.
struct SparseLayout {
  size_t width = 1, height = 1, depth = 1;
  unsigned tailFirst = 0;
  size_t tailBytes = 0;  // a multiple of a tile
};
SparseLayout sparseLayout(const std::vector<std::shared_ptr<Array>>& levels);
// For levels that were made without memory: nothing is mapped yet.
void makeTiles(const std::vector<std::shared_ptr<Array>>& levels);

}  // namespace shoal
