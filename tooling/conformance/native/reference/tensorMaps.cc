// Returns the 128 bytes of tensor maps.
#include <cstring>

#include "reference.h"

namespace {

struct Type {
  CUtensorMapDataType code;
  unsigned bits;
};
const std::map<std::string, Type> types = {{"u8", {CU_TENSOR_MAP_DATA_TYPE_UINT8, 8}},
                                           {"u16", {CU_TENSOR_MAP_DATA_TYPE_UINT16, 16}},
                                           {"u32", {CU_TENSOR_MAP_DATA_TYPE_UINT32, 32}},
                                           {"i32", {CU_TENSOR_MAP_DATA_TYPE_INT32, 32}},
                                           {"u64", {CU_TENSOR_MAP_DATA_TYPE_UINT64, 64}},
                                           {"i64", {CU_TENSOR_MAP_DATA_TYPE_INT64, 64}},
                                           {"f16", {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 16}},
                                           {"bf16", {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 16}},
                                           {"f32", {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 32}},
                                           {"f32-ftz", {CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, 32}},
                                           {"tf32", {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 32}},
                                           {"tf32-ftz", {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, 32}},
                                           {"f64", {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 64}},
                                           {"u4x16-align8", {CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 4}},
                                           {"u4x16-align16", {CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, 4}},
                                           {"u6x16-align16", {CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, 6}}};
const std::map<std::string, CUtensorMapInterleave> interleaves = {{"none", CU_TENSOR_MAP_INTERLEAVE_NONE},
                                                                  {"16B", CU_TENSOR_MAP_INTERLEAVE_16B},
                                                                  {"32B", CU_TENSOR_MAP_INTERLEAVE_32B}};
const std::map<std::string, CUtensorMapSwizzle> swizzles = {
    {"none", CU_TENSOR_MAP_SWIZZLE_NONE},
    {"32B", CU_TENSOR_MAP_SWIZZLE_32B},
    {"64B", CU_TENSOR_MAP_SWIZZLE_64B},
    {"128B", CU_TENSOR_MAP_SWIZZLE_128B},
    {"128B-atom32B", CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B},
    {"128B-atom32B-flip8B", CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B},
    {"128B-atom64B", CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B}};
const std::map<std::string, CUtensorMapL2promotion> promotions = {{"none", CU_TENSOR_MAP_L2_PROMOTION_NONE},
                                                                  {"64B", CU_TENSOR_MAP_L2_PROMOTION_L2_64B},
                                                                  {"128B", CU_TENSOR_MAP_L2_PROMOTION_L2_128B},
                                                                  {"256B", CU_TENSOR_MAP_L2_PROMOTION_L2_256B}};

template <class Integer>
std::vector<Integer> integers(const Json& given) {
  std::vector<Integer> all;
  for (const Json& one : given.items()) all.push_back(static_cast<Integer>(one.integer()));
  return all;
}

template <class Code>
Code word(const std::map<std::string, Code>& words, const Json& given, const char* otherwise) {
  return words.at(given ? given.text() : otherwise);
}

}  // namespace

std::string tensorMapCase(const Json& given) {
  const Json& options = given["options"];
  const Type type = types.at(options["dtype"].text());
  const auto dimensions = integers<cuuint64_t>(options["dimensions"]);
  auto strides = integers<cuuint64_t>(options["strides"]);
  if (!options["strides"]) {
    // The rows have no gaps.
    cuuint64_t bytes = dimensions[0] * type.bits / 8;
    for (size_t axis = 1; axis < dimensions.size(); bytes *= dimensions[axis++]) strides.push_back(bytes);
  }
  // The driver needs a pointer even if it reads nothing there.
  if (strides.empty()) strides.push_back(0);
  auto steps = integers<cuuint32_t>(options["elementStrides"]);
  if (steps.empty()) steps.assign(dimensions.size(), 1);
  const auto rank = static_cast<cuuint32_t>(dimensions.size());
  const auto interleave = word(interleaves, options["interleave"], "none");
  const auto swizzle = word(swizzles, options["swizzle"], "none");
  const auto promotion = word(promotions, options["l2Promotion"], "none");
  const bool isNan = options["outOfBoundsFill"] && options["outOfBoundsFill"].text() == "nan";
  const auto fill = isNan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  const auto address = reinterpret_cast<void*>(given["address"].integer());
  alignas(64) CUtensorMap map;
  memset(&map, 0, sizeof map);
  const std::string& kind = given["kind"].text();
  Fields fields;
  if (kind == "tiled") {
    const auto box = integers<cuuint32_t>(options["box"]);
    check(cuTensorMapEncodeTiled(&map, type.code, rank, address, dimensions.data(), strides.data(), box.data(),
                                 steps.data(), interleave, swizzle, promotion, fill));
  } else {
    const auto channels = static_cast<cuuint32_t>(options["channelsPerPixel"].integer());
    const auto pixels = static_cast<cuuint32_t>(options["pixelsPerColumn"].integer());
    if (kind == "im2col") {
      const auto lower = integers<int>(options["lowerCorner"]), upper = integers<int>(options["upperCorner"]);
      check(cuTensorMapEncodeIm2col(&map, type.code, rank, address, dimensions.data(), strides.data(), lower.data(),
                                    upper.data(), channels, pixels, steps.data(), interleave, swizzle, promotion,
                                    fill));
    } else {
      const bool isWide = options["mode"] && options["mode"].text() == "w128";
      check(cuTensorMapEncodeIm2colWide(
          &map, type.code, rank, address, dimensions.data(), strides.data(),
          static_cast<int>(options["lowerCornerWidth"].integer()),
          static_cast<int>(options["upperCornerWidth"].integer()), channels, pixels, steps.data(), interleave,
          isWide ? CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 : CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, swizzle, promotion, fill));
    }
  }
  fields.raw("map", hex(&map, sizeof map));
  fields.raw("replaced", attempt([&] {
               check(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(given["replaced"].integer())));
               return hex(&map, sizeof map);
             }));
  return fields.str();
}
