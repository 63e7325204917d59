// Tensor maps, with the 128 bytes that the driver of an H200 produces. The layout is undocumented; it was derived from
// maps made on an H200. The software device never reads a map, because it refuses kernels that copy by tensor maps.
#include <cstring>

#include "core/entry.h"

using namespace shoal;

namespace {

enum class Kind : uint8_t { tiled, im2col };

// Bit fields start at the lowest bit.
struct Encoded {
  uint64_t address;
  uint32_t isIm2col : 4, lastAxis : 3, type : 4, interleave : 2, swizzle : 2, fill : 1, isTensorFloat : 1,
      promotion : 2, : 13;
  uint32_t strides[4];                    // in units of 16 bytes
  uint32_t highStrides;                   // the upper four bits of each stride
  uint32_t sizes[5];                      // each size less one; the fields up to `box` are stored less one, too
  uint32_t elementSteps : 24, inner : 8;  // three bits per axis; elements or channels of a row
  uint32_t box;          // a byte for each further axis; or the lower and the upper corner, in 16 bits each
  uint32_t pixels;       // per column
  uint32_t bytes, : 32;  // of the whole box
  uint32_t sharedAlignment, : 32;
  uint32_t unused[12];
};
static_assert(sizeof(Encoded) == sizeof(CUtensorMap));

struct Type {
  unsigned bytes, code;
  bool isTensorFloat;
};
// In the order of CUtensorMapDataType.
constexpr Type kTypes[] = {{1, 0, false}, {2, 1, false}, {4, 2, false}, {4, 3, false}, {8, 4, false},
                           {8, 5, false}, {2, 6, false}, {4, 7, false}, {8, 9, false}, {2, 10, false},
                           {4, 8, false}, {4, 7, true},  {4, 8, true}};

struct Request {
  Kind kind;
  CUtensorMap* out;
  unsigned type, rank;
  void* address;
  const cuuint64_t *sizes, *strides;
  const cuuint32_t* elementStrides;
  unsigned interleave, swizzle, promotion, fill;
};

bool isFloat(unsigned type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

// The strides must not be null even for one dimension, where no stride is read.
bool describe(const Request& r, Encoded& made) {
  if (r.out == nullptr || reinterpret_cast<uint64_t>(r.out) % 64 != 0 || r.sizes == nullptr ||
      r.elementStrides == nullptr || r.strides == nullptr)
    return false;
  const unsigned least = r.kind != Kind::tiled || r.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ? 3 : 1;
  if (r.rank < least || r.rank > 5) return false;
  if (r.interleave > CU_TENSOR_MAP_INTERLEAVE_32B || r.promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B || r.fill > 1)
    return false;
  // Packed elements and swizzles of other atom sizes require compute capability 10.0.
  if (r.type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ || r.swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return false;
  if (r.fill != 0 && !isFloat(r.type)) return false;
  const unsigned alignment = r.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  const auto address = reinterpret_cast<uint64_t>(r.address);
  if (address == 0 || address % alignment != 0) return false;
  if (r.interleave == CU_TENSOR_MAP_INTERLEAVE_32B && r.swizzle != CU_TENSOR_MAP_SWIZZLE_32B) return false;
  made = {};
  for (unsigned at = 0; at < r.rank; ++at) {
    if (r.sizes[at] == 0 || r.sizes[at] > uint64_t{1} << 32 || r.elementStrides[at] == 0 || r.elementStrides[at] > 8)
      return false;
    made.sizes[at] = static_cast<uint32_t>(r.sizes[at] - 1);
    made.elementSteps |= (r.elementStrides[at] - 1) << 3 * at;
    if (at + 1 == r.rank) break;
    if (r.strides[at] % alignment != 0 || r.strides[at] >= uint64_t{1} << 40) return false;
    made.strides[at] = static_cast<uint32_t>(r.strides[at] >> 4);
    made.highStrides |= static_cast<uint32_t>(r.strides[at] >> 36) << 4 * at;
  }
  const Type& type = kTypes[r.type];
  made.address = address;
  made.isIm2col = r.kind == Kind::im2col ? 1 : 0;
  made.lastAxis = r.rank - 1;
  made.type = type.code;
  made.isTensorFloat = type.isTensorFloat ? 1 : 0;
  made.interleave = r.interleave;
  made.swizzle = r.swizzle;
  made.promotion = r.promotion;
  made.fill = r.fill;
  // The alignment is the size of the swizzle's pattern.
  constexpr unsigned alignments[] = {16, 256, 512, 1024};
  made.sharedAlignment = alignments[r.swizzle];
  return true;
}

// Checks the size of the box's innermost axis: a multiple of 16 bytes, and at most the width of the swizzle.
bool isInnerFine(const Request& r, unsigned elements) {
  const unsigned bytes = kTypes[r.type].bytes * elements;
  if (r.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return true;
  constexpr unsigned widths[] = {~0u, 32, 64, 128};
  return bytes % 16 == 0 && bytes <= widths[r.swizzle];
}

CUresult finish(const Request& r, const Encoded& made) {
  memcpy(r.out, &made, sizeof made);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                const cuuint32_t* boxDim, const cuuint32_t* elementStrides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  return inContext([&](auto&) -> CUresult {
    const Request r{Kind::tiled,
                    tensorMap,
                    unsigned(tensorDataType),
                    tensorRank,
                    globalAddress,
                    globalDim,
                    globalStrides,
                    elementStrides,
                    unsigned(interleave),
                    unsigned(swizzle),
                    unsigned(l2Promotion),
                    unsigned(oobFill)};
    Encoded made;
    if (boxDim == nullptr || !describe(r, made)) return CUDA_ERROR_INVALID_VALUE;
    made.bytes = kTypes[r.type].bytes;
    for (unsigned at = 0; at < tensorRank; ++at) {
      if (boxDim[at] == 0 || boxDim[at] > 256) return CUDA_ERROR_INVALID_VALUE;
      made.bytes *= boxDim[at] / elementStrides[at];
      if (at == 0) made.inner = boxDim[at] - 1;
      else made.box |= (boxDim[at] - 1) << 8 * (at - 1);
    }
    return isInnerFine(r, boxDim[0]) ? finish(r, made) : CUDA_ERROR_INVALID_VALUE;
  });
}

namespace {

CUresult encodeIm2col(const Request& r, unsigned channels, unsigned pixels, const int* lower, const int* upper,
                      unsigned corners) {
  // Both corners share one word, so more axes leave fewer bits per number.
  constexpr unsigned widths[] = {16, 8, 5};
  const unsigned width = widths[r.rank - 3], mask = (1u << width) - 1;
  const int limit = 1 << (width - 1);

  Encoded made;
  if (lower == nullptr || upper == nullptr || !describe(r, made) || channels == 0 || channels > 256 || pixels == 0 ||
      pixels > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned at = 0; at < corners; ++at) {
    for (const int corner : {lower[at], upper[at]}) {
      if (corner < -limit || corner >= limit) return CUDA_ERROR_INVALID_VALUE;
    }
    made.box |= (static_cast<unsigned>(lower[at]) & mask) << width * at | (static_cast<unsigned>(upper[at]) & mask)
                                                                              << (16 + width * at);
  }
  if (!isInnerFine(r, channels)) return CUDA_ERROR_INVALID_VALUE;
  made.inner = channels - 1;
  made.pixels = pixels - 1;
  made.bytes = kTypes[r.type].bytes * channels * pixels;
  return finish(r, made);
}

}  // namespace

CUresult cuTensorMapEncodeIm2col(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                 void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                 const int* pixelBoxLowerCorner, const int* pixelBoxUpperCorner,
                                 cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                 const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                 CUtensorMapFloatOOBfill oobFill) {
  return inContext([&](auto&) -> CUresult {
    const Request r{Kind::im2col,
                    tensorMap,
                    unsigned(tensorDataType),
                    tensorRank,
                    globalAddress,
                    globalDim,
                    globalStrides,
                    elementStrides,
                    unsigned(interleave),
                    unsigned(swizzle),
                    unsigned(l2Promotion),
                    unsigned(oobFill)};
    if (tensorRank < 3 || tensorRank > 5) return CUDA_ERROR_INVALID_VALUE;
    return encodeIm2col(r, channelsPerPixel, pixelsPerColumn, pixelBoxLowerCorner, pixelBoxUpperCorner, tensorRank - 2);
  });
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                     void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                     int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth,
                                     cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                     const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  return inContext([&](auto&) -> CUresult {
    const Request r{Kind::im2col,
                    tensorMap,
                    unsigned(tensorDataType),
                    tensorRank,
                    globalAddress,
                    globalDim,
                    globalStrides,
                    elementStrides,
                    unsigned(interleave),
                    unsigned(swizzle),
                    unsigned(l2Promotion),
                    unsigned(oobFill)};
    if (tensorRank < 3 || tensorRank > 5 || mode > CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128) return CUDA_ERROR_INVALID_VALUE;
    // The wide mode has a corner only along the width. The map does not store the mode.
    return encodeIm2col(r, channelsPerPixel, pixelsPerColumn, &pixelBoxLowerCornerWidth, &pixelBoxUpperCornerWidth, 1);
  });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* tensorMap, void* globalAddress) {
  return inContext([&](auto&) -> CUresult {
    if (tensorMap == nullptr || reinterpret_cast<uint64_t>(tensorMap) % 64 != 0) return CUDA_ERROR_INVALID_VALUE;
    Encoded made;
    memcpy(&made, tensorMap, sizeof made);
    const auto address = reinterpret_cast<uint64_t>(globalAddress);
    const unsigned alignment = made.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
    // Zero means that these bytes are not a tensor map.
    if (made.sharedAlignment == 0 || address == 0 || address % alignment != 0) return CUDA_ERROR_INVALID_VALUE;
    made.address = address;
    memcpy(tensorMap, &made, sizeof made);
    return CUDA_SUCCESS;
  });
}
