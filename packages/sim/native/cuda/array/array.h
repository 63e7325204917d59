// Arrays: the memory of texels that textures and surfaces read, in row-major order.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/forengine.h"
#include "core/handles.h"
#include "shoal/cuda.h"
#include "tiles.h"

namespace shoal {

class Context;

// How the parts of a texel are read.
enum class Channel : uint8_t { unsignedInteger, signedInteger, real, unsignedNorm, signedNorm };

struct TexelFormat {
  Channel channel = Channel::real;
  unsigned channels = 0;
  unsigned channelBytes = 0;
  unsigned bytes() const { return channels * channelBytes; }
};

// Returns false for formats that the device does not support.
bool findFormat(CUarray_format format, unsigned channels, TexelFormat& out);

// An array, a level of a mipmapped array, or a plane.
struct Array {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  TexelFormat format;
  size_t width = 0, height = 1, depth = 1;  // depth: slices of a 3-D array, or layers
  size_t rowBytes = 0, sliceBytes = 0;      // distance between rows, between slices
  char* data = nullptr;                     // null if no memory is mapped
  std::shared_ptr<Backing> memory;
  std::shared_ptr<Context> context;
  std::vector<std::shared_ptr<Array>> planes;
  uint64_t handle = 0;
  bool isPart = false;  // part of an array that is destroyed as a whole

  // The mapped tiles of an array that has no memory itself; null for other arrays.
  std::shared_ptr<const Tiles> tiles() const { return std::atomic_load(&tiles_); }
  void setTiles(std::shared_ptr<const Tiles> tiles) { std::atomic_store(&tiles_, std::move(tiles)); }
  bool hasTexels() const { return data != nullptr || tiles() != nullptr; }

  size_t usedBytes() const { return width * format.bytes(); }  // of a row, without padding
  bool isLayered() const { return (descriptor.Flags & CUDA_ARRAY3D_LAYERED) != 0; }
  bool isCubemap() const { return (descriptor.Flags & CUDA_ARRAY3D_CUBEMAP) != 0; }
  // The number of dimensions, 1 to 3; layers do not count.
  unsigned dimensions() const {
    return descriptor.Height == 0 ? 1 : descriptor.Depth == 0 || isLayered() || isCubemap() ? 2 : 3;
  }

 private:
  std::shared_ptr<const Tiles> tiles_;
};

struct MipmappedArray {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  std::shared_ptr<Context> context;
  std::vector<std::shared_ptr<Array>> levels;
};

SHOAL_FOR_ENGINE HandleTable<Array>& arrays();
HandleTable<MipmappedArray>& mipmappedArrays();

// Allocates memory and returns its address.
using ArrayMemory = std::function<CUresult(size_t bytes, uint64_t& base, std::shared_ptr<Backing>& memory)>;
CUresult createMipmapped(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels,
                         const std::shared_ptr<Context>& context, const ArrayMemory& memory);

}  // namespace shoal
