// Tensor maps. What hardware has in its 128 bytes is documented nowhere, and nothing here reads it: these are bytes of the
// device's own, and copies by them are refused when a kernel is loaded.
#include <cstring>

#include "core/entry.h"

using namespace shoal;

namespace {

enum class Kind : uint8_t { tiled, im2col, im2colWide };

struct Encoded {
  uint32_t magic;
  Kind kind;
  uint8_t type, rank, interleave, swizzle, promotion, fill, mode;
  uint8_t elementStrides[5];
  uint16_t box[5];  // or channels and pixels
  int16_t corners[6];
  uint32_t sizes[5];  // less one
  uint64_t address;
  uint64_t strides[4];
};
static_assert(sizeof(Encoded) <= sizeof(CUtensorMap));
constexpr uint32_t kMagic = 0x70616d74;

// Bytes of an element; of packed ones none.
constexpr unsigned kTypeBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0};

struct Request {
  Kind kind;
  CUtensorMap* out;
  unsigned type, rank;
  void* address;
  const cuuint64_t *sizes, *strides;
  const cuuint32_t* elementStrides;
  unsigned interleave, swizzle, promotion, fill;
};

bool isFloat(unsigned type) { return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ; }

bool describe(const Request& r, Encoded& made) {
  if (r.out == nullptr || reinterpret_cast<uint64_t>(r.out) % 64 != 0 || r.sizes == nullptr || r.elementStrides == nullptr || (r.rank > 1 && r.strides == nullptr)) return false;
  const unsigned least = r.kind != Kind::tiled || r.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ? 3 : 1;
  if (r.type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B || r.rank < least || r.rank > 5) return false;
  if (r.interleave > CU_TENSOR_MAP_INTERLEAVE_32B || r.swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B || r.promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B || r.fill > 1) return false;
  if (r.fill != 0 && !isFloat(r.type)) return false;
  const bool isPacked16 = r.type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B || r.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
  const unsigned alignment = r.interleave == CU_TENSOR_MAP_INTERLEAVE_32B || isPacked16 ? 32 : 16;
  const auto address = reinterpret_cast<uint64_t>(r.address);
  if (address == 0 || address % alignment != 0) return false;
  if (r.interleave == CU_TENSOR_MAP_INTERLEAVE_32B && r.swizzle != CU_TENSOR_MAP_SWIZZLE_32B) return false;
  made = {};
  for (unsigned at = 0; at < r.rank; ++at) {
    if (r.sizes[at] == 0 || r.sizes[at] > uint64_t{1} << 32 || r.elementStrides[at] == 0 || r.elementStrides[at] > 8) return false;
    made.sizes[at] = static_cast<uint32_t>(r.sizes[at] - 1);
    made.elementStrides[at] = static_cast<uint8_t>(r.elementStrides[at]);
    if (at + 1 == r.rank) break;
    if (r.strides[at] % alignment != 0 || r.strides[at] >= uint64_t{1} << 40) return false;
    made.strides[at] = r.strides[at];
  }
  if ((isPacked16 && r.sizes[0] % 128 != 0) || (r.type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B && r.sizes[0] % 2 != 0)) return false;
  made.magic = kMagic;
  made.kind = r.kind;
  made.type = static_cast<uint8_t>(r.type);
  made.rank = static_cast<uint8_t>(r.rank);
  made.interleave = static_cast<uint8_t>(r.interleave);
  made.swizzle = static_cast<uint8_t>(r.swizzle);
  made.promotion = static_cast<uint8_t>(r.promotion);
  made.fill = static_cast<uint8_t>(r.fill);
  made.address = address;
  return true;
}

// The bytes of the innermost part of a box, which a swizzle's width and copies of 16 bytes limit.
bool isInnerFine(const Request& r, unsigned elements) {
  const unsigned bytes = kTypeBytes[r.type] * elements;
  if (bytes == 0 || r.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return true;
  constexpr unsigned widths[] = {~0u, 32, 64, 128, 128, 128, 128};
  return bytes % 16 == 0 && bytes <= widths[r.swizzle];
}

CUresult finish(const Request& r, const Encoded& made) {
  memset(r.out, 0, sizeof *r.out);
  memcpy(r.out, &made, sizeof made);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void* globalAddress, const cuuint64_t* globalDim,
                                const cuuint64_t* globalStrides, const cuuint32_t* boxDim, const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  return inContext([&](auto&) -> CUresult {
    const Request r{Kind::tiled, tensorMap, unsigned(tensorDataType), tensorRank, globalAddress, globalDim, globalStrides, elementStrides,
                    unsigned(interleave), unsigned(swizzle), unsigned(l2Promotion), unsigned(oobFill)};
    Encoded made;
    if (boxDim == nullptr || !describe(r, made)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned at = 0; at < tensorRank; ++at) {
      if (boxDim[at] == 0 || boxDim[at] > 256) return CUDA_ERROR_INVALID_VALUE;
      made.box[at] = static_cast<uint16_t>(boxDim[at]);
    }
    const bool isPacked16 = r.type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B || r.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
    if (!isInnerFine(r, boxDim[0]) || (isPacked16 && boxDim[0] != 128)) return CUDA_ERROR_INVALID_VALUE;
    return finish(r, made);
  });
}

namespace {

CUresult encodeIm2col(const Request& r, unsigned channels, unsigned pixels, const int* lower, const int* upper, unsigned corners, int limit, unsigned mode) {
  Encoded made;
  if (lower == nullptr || upper == nullptr || !describe(r, made) || channels == 0 || channels > 256 || pixels == 0 || pixels > 1024) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned at = 0; at < corners; ++at) {
    for (const int corner : {lower[at], upper[at]}) {
      if (corner < -limit || corner >= limit) return CUDA_ERROR_INVALID_VALUE;
    }
    made.corners[at] = static_cast<int16_t>(lower[at]);
    made.corners[at + 3] = static_cast<int16_t>(upper[at]);
  }
  if (!isInnerFine(r, channels)) return CUDA_ERROR_INVALID_VALUE;
  made.box[0] = static_cast<uint16_t>(channels);
  made.box[1] = static_cast<uint16_t>(pixels);
  made.mode = static_cast<uint8_t>(mode);
  return finish(r, made);
}

}  // namespace

CUresult cuTensorMapEncodeIm2col(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void* globalAddress, const cuuint64_t* globalDim,
                                 const cuuint64_t* globalStrides, const int* pixelBoxLowerCorner, const int* pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
                                 cuuint32_t pixelsPerColumn, const cuuint32_t* elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  return inContext([&](auto&) -> CUresult {
    const Request r{Kind::im2col, tensorMap, unsigned(tensorDataType), tensorRank, globalAddress, globalDim, globalStrides, elementStrides,
                    unsigned(interleave), unsigned(swizzle), unsigned(l2Promotion), unsigned(oobFill)};
    if (tensorRank < 3 || tensorRank > 5) return CUDA_ERROR_INVALID_VALUE;
    constexpr int limits[] = {1 << 15, 1 << 7, 1 << 4};
    return encodeIm2col(r, channelsPerPixel, pixelsPerColumn, pixelBoxLowerCorner, pixelBoxUpperCorner, tensorRank - 2, limits[tensorRank - 3], 0);
  });
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* tensorMap, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, int, int, cuuint32_t, cuuint32_t,
                                     const cuuint32_t*, CUtensorMapInterleave, CUtensorMapIm2ColWideMode, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  // For compute capability 10.0 and later.
  return inContext([&](auto&) -> CUresult { return tensorMap == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED; });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* tensorMap, void* globalAddress) {
  return inContext([&](auto&) -> CUresult {
    if (tensorMap == nullptr || reinterpret_cast<uint64_t>(tensorMap) % 64 != 0) return CUDA_ERROR_INVALID_VALUE;
    Encoded made;
    memcpy(&made, tensorMap, sizeof made);
    const auto address = reinterpret_cast<uint64_t>(globalAddress);
    const unsigned alignment = made.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
    if (made.magic != kMagic || address == 0 || address % alignment != 0) return CUDA_ERROR_INVALID_VALUE;
    made.address = address;
    memcpy(tensorMap, &made, sizeof made);
    return CUDA_SUCCESS;
  });
}
