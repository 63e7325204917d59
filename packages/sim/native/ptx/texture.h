// Texture and surface instructions: finding, filtering and writing texels of arrays and of memory.
#pragma once

#include <memory>
#include <vector>

#include "array/array.h"
#include "machine.h"

namespace shoal::ptx {

enum class Geometry : uint8_t { line, plane, volume, lines, planes, cube, cubes };
enum class TextureOp : uint8_t { sample, gather, askTexture, askSurface, load, store, reduce };
enum class LevelOf : uint8_t { none, given, gradient };
enum class Boundary : uint8_t { trap, clamp, zero };
enum class Question : uint8_t {
  width,
  height,
  depth,
  arraySize,
  levels,
  samples,
  isNormalized,
  filter,
  addressX,
  addressY,
  addressZ
};

// The words of a texture instruction. A missing operand is kNoOperand.
enum TextureWord : unsigned {
  textureOp,
  textureGeometry,
  textureHasIntegers,
  textureCount,
  textureBytes,
  textureLevelOf,
  textureChoice,
  textureType,
  textureBoundary,
  texturePredicate,
  textureHandle,
  textureCoordinates,
  textureLevel = textureCoordinates + 4,
  textureOffsets = textureLevel + 6,
  textureData = textureOffsets + 3,
  textureWords = textureData + 4
};

struct TextureLevel {
  char* data = nullptr;
  size_t rowBytes = 0, sliceBytes = 0;
  int64_t width = 1, height = 1, depth = 1;
  std::shared_ptr<const Tiles> tiles = nullptr;  // used instead of `data` if memory was mapped to the array

  // The address of byte `x` of a row, or null if no memory is mapped.
  char* at(size_t x, size_t y, size_t slice) const {
    return tiles ? tiles->find(x, y, slice) : data + slice * sliceBytes + y * rowBytes + x;
  }
};

// A texture or surface object during one launch. Its memory stays alive until the kernels have ended.
struct BoundTexture {
  TexelFormat format;
  bool isSurface = false, isReal = false, isNormalized = false, isFiltered = false, isBlended = false, isSteep = false,
       isSrgb = false, isLinear = false;
  uint32_t modes[3] = {}, border[4] = {};  // the border is stored as a texel
  float bias = 0, least = 0, most = 0;
  int64_t firstLayer = 0, layers = 1;
  unsigned dimensions = 1;
  std::vector<TextureLevel> levels;
  std::vector<std::shared_ptr<Array>> held;
};

// Binds the object of the handle for the launch of this warp.
const BoundTexture& boundTo(Warp& warp, uint64_t handle, bool isSurface);

void runTexture(Warp& warp, const Instr& instr, uint32_t mask);

}  // namespace shoal::ptx
