// The texels of an array without its own memory: in tiles of equal shape, or in one piece.
#pragma once

#include <memory>
#include <vector>

#include "shoal/cuda.h"

namespace shoal {

struct Array;

constexpr size_t kTileBytes = 65536;

// Immutable. Mapping an array again replaces its Tiles. Work that has started keeps the Tiles it started with.
struct Tiles {
  size_t width = 1, height = 1, depth = 1;  // texels of a tile
  size_t across = 1, down = 1, deep = 1;    // tiles of the array
  size_t texelBytes = 1;
  std::vector<char*> at;  // null if no memory is mapped
  std::vector<std::shared_ptr<const void>> held;

  // The address of byte `x` of a row, or null if no memory is mapped. `left` says how many bytes follow in the same
  // tile.
  char* find(size_t x, size_t y, size_t z) const {
    const size_t row = width * texelBytes;
    const size_t tile = (z / depth * down + y / height) * across + x / row;
    return at[tile] == nullptr ? nullptr : at[tile] + ((z % depth) * height + y % height) * row + x % row;
  }
  size_t left(size_t x) const { return width * texelBytes - x % (width * texelBytes); }
};

// The standard shape of a 64 KiB tile. Levels smaller than a tile form the tail and are mapped together.
struct SparseLayout {
  size_t width = 1, height = 1, depth = 1;
  unsigned tailFirst = 0;
  size_t tailBytes = 0;  // a multiple of the tile size
};
SparseLayout sparseLayout(const std::vector<std::shared_ptr<Array>>& levels);
// For levels that were created without memory; no tile is mapped yet.
void makeTiles(const std::vector<std::shared_ptr<Array>>& levels);

}  // namespace shoal
