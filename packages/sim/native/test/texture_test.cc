// Valid textures and surfaces, tested on the driver itself: sizes, formats, views and options, each at its limits.
#include <string>

#include "check.h"

using check::Primary;

namespace {

constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;

CUresult create(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture,
                const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
  CUtexObject made = 0;
  const CUresult status = cuTexObjectCreate(&made, &resource, &texture, view);
  if (status == CUDA_SUCCESS) OK(cuTexObjectDestroy(made));
  return status;
}

CUDA_RESOURCE_DESC ofArray(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

CUDA_RESOURCE_DESC ofRows(CUdeviceptr memory, size_t width, size_t height, size_t pitch,
                          CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8, unsigned channels = 1) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.format = format;
  resource.res.pitch2D.numChannels = channels;
  resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  return resource;
}

CUDA_RESOURCE_DESC ofLine(CUdeviceptr memory, size_t bytes, CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8,
                          unsigned channels = 1) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory;
  resource.res.linear.format = format;
  resource.res.linear.numChannels = channels;
  resource.res.linear.sizeInBytes = bytes;
  return resource;
}

CUarray arrayOf(CUarray_format format, unsigned channels, size_t width, size_t height, size_t depth,
                unsigned flags = 0) {
  const CUDA_ARRAY3D_DESCRIPTOR wanted{width, height, depth, format, channels, flags};
  CUarray made = nullptr;
  OK(cuArray3DCreate_v2(&made, &wanted));
  return made;
}

void expect(CUresult got, CUresult want, const std::string& what) {
  if (got != want) throw check::Failure(what + ": got " + std::to_string(got) + ", want " + std::to_string(want));
}

CUDA_RESOURCE_VIEW_DESC viewOf(CUresourceViewFormat format, size_t width, size_t height, size_t depth,
                               unsigned lastLevel = 0, unsigned lastLayer = 0) {
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = format;
  view.width = width;
  view.height = height;
  view.depth = depth;
  view.lastMipmapLevel = lastLevel;
  view.lastLayer = lastLayer;
  return view;
}

}  // namespace

TEST(rows_of_memory_have_limits) {
  Primary primary;
  constexpr size_t bytes = size_t{4} << 20;
  const CUdeviceptr memory = check::memory(bytes);
  const CUDA_TEXTURE_DESC plain{};
  struct {
    size_t offset, width, height, pitch;
    CUresult status;
  } const cases[] = {{0, 32, 4, 32, CUDA_SUCCESS},
                     {512, 32, 4, 32, CUDA_SUCCESS},
                     {256, 32, 4, 32, kInvalid},
                     {0, 0, 4, 32, kInvalid},
                     {0, 32, 0, 32, kInvalid},
                     {0, 33, 4, 32, kInvalid},
                     {0, 1, 4, 32, CUDA_SUCCESS},
                     {0, 32, 4, 48, kInvalid},
                     {0, 32, 4, 64, CUDA_SUCCESS},
                     {0, 131072, 1, 131072, CUDA_SUCCESS},
                     {0, 131073, 1, 131104, kInvalid},
                     {0, 1, 65000, 32, CUDA_SUCCESS},
                     {0, 1, 65001, 32, kInvalid},
                     {0, 1, 2, 2097120, CUDA_SUCCESS},
                     {0, 1, 2, 2097152, kInvalid},
                     {0, 32, 131072, 32, kInvalid},
                     {0, 64, 1, 131072, CUDA_SUCCESS},
                     {bytes - 512, 32, 16, 32, CUDA_SUCCESS},
                     {bytes - 512, 32, 17, 32, kInvalid},
                     {bytes - 512, 1, 16, 32, CUDA_SUCCESS}};
  for (auto& each : cases) {
    expect(create(ofRows(memory + each.offset, each.width, each.height, each.pitch), plain), each.status,
           std::to_string(each.width) + " by " + std::to_string(each.height) + ", pitch " + std::to_string(each.pitch) +
               " at " + std::to_string(each.offset));
  }
  // The length of a row depends on the size of its texels.
  expect(create(ofRows(memory, 4, 2, 64, CU_AD_FORMAT_FLOAT, 4), plain), CUDA_SUCCESS, "four texels of 16 bytes");
  expect(create(ofRows(memory, 5, 2, 64, CU_AD_FORMAT_FLOAT, 4), plain), kInvalid, "five texels of 16 bytes");
  expect(create(ofRows(0, 32, 4, 32), plain), kInvalid, "no address");
  expect(create(ofRows(memory, 32, 4, 32, CU_AD_FORMAT_UNSIGNED_INT8, 3), plain), kInvalid, "three channels");
  expect(create(ofRows(memory, 32, 4, 32, static_cast<CUarray_format>(0)), plain), kInvalid, "no format");
  OK(cuMemFree_v2(memory));
}

TEST(a_line_of_memory_has_limits) {
  Primary primary;
  constexpr size_t most = size_t{1} << 28;
  const CUdeviceptr memory = check::memory(most + 512);
  const CUDA_TEXTURE_DESC plain{};
  struct {
    size_t offset, bytes;
    CUarray_format format;
    unsigned channels;
    CUresult status;
  } const cases[] = {{0, 1, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_SUCCESS},
                     {0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, kInvalid},
                     {512, 16, CU_AD_FORMAT_FLOAT, 4, CUDA_SUCCESS},
                     {16, 16, CU_AD_FORMAT_FLOAT, 4, kInvalid},
                     {0, most, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_SUCCESS},
                     {0, most + 1, CU_AD_FORMAT_UNSIGNED_INT8, 1, kInvalid},
                     {0, most + 512, CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_SUCCESS},
                     {most, 512, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_SUCCESS},
                     {most, 513, CU_AD_FORMAT_UNSIGNED_INT8, 1, kInvalid},
                     {0, 16, CU_AD_FORMAT_FLOAT, 3, kInvalid}};
  for (auto& each : cases) {
    expect(create(ofLine(memory + each.offset, each.bytes, each.format, each.channels), plain), each.status,
           std::to_string(each.bytes) + " bytes at " + std::to_string(each.offset));
  }
  expect(create(ofLine(0, 16), plain), kInvalid, "no address");
  OK(cuMemFree_v2(memory));
}

TEST(options_of_textures_are_checked) {
  Primary primary;
  const CUarray bytes = arrayOf(CU_AD_FORMAT_UNSIGNED_INT8, 1, 8, 8, 0),
                words = arrayOf(CU_AD_FORMAT_UNSIGNED_INT32, 1, 8, 8, 0),
                reals = arrayOf(CU_AD_FORMAT_FLOAT, 1, 8, 8, 0);
  const CUarray cube = arrayOf(CU_AD_FORMAT_UNSIGNED_INT8, 1, 8, 8, 6, CUDA_ARRAY3D_CUBEMAP);
  for (int mode = -1; mode <= 4; ++mode) {
    for (int axis = 0; axis < 3; ++axis) {
      CUDA_TEXTURE_DESC texture{};
      texture.addressMode[axis] = static_cast<CUaddress_mode>(mode);
      expect(create(ofArray(bytes), texture), mode >= 0 && mode <= 3 ? CUDA_SUCCESS : kInvalid,
             "mode " + std::to_string(mode) + " of axis " + std::to_string(axis));
    }
  }
  for (int filter = 0; filter <= 2; ++filter) {
    CUDA_TEXTURE_DESC texture{};
    texture.mipmapFilterMode = static_cast<CUfilter_mode>(filter);
    expect(create(ofArray(bytes), texture), filter < 2 ? CUDA_SUCCESS : kInvalid,
           "filter of levels " + std::to_string(filter));
    texture = {};
    texture.filterMode = static_cast<CUfilter_mode>(filter);
    expect(create(ofArray(bytes), texture), filter < 2 ? CUDA_SUCCESS : kInvalid, "filter " + std::to_string(filter));
  }
  for (unsigned bit = 0; bit < 32; ++bit) {
    CUDA_TEXTURE_DESC texture{};
    texture.flags = 1u << bit;
    const bool isKnown = texture.flags == CU_TRSF_READ_AS_INTEGER || texture.flags == CU_TRSF_NORMALIZED_COORDINATES ||
                         texture.flags == CU_TRSF_SRGB || texture.flags == CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION ||
                         texture.flags == CU_TRSF_SEAMLESS_CUBEMAP;
    expect(create(ofArray(bytes), texture), isKnown ? CUDA_SUCCESS : kInvalid, "flag " + std::to_string(bit));
    expect(create(ofArray(cube), texture),
           texture.flags == CU_TRSF_SEAMLESS_CUBEMAP ? CUDA_ERROR_NOT_SUPPORTED
           : isKnown                                 ? CUDA_SUCCESS
                                                     : kInvalid,
           "flag of a cube " + std::to_string(bit));
  }
  // Textures of integers can be filtered, too.
  CUDA_TEXTURE_DESC linear{};
  linear.filterMode = CU_TR_FILTER_MODE_LINEAR;
  expect(create(ofArray(words), linear), CUDA_SUCCESS, "words");
  expect(create(ofArray(reals), linear), CUDA_SUCCESS, "floats");
  linear.flags = CU_TRSF_READ_AS_INTEGER;
  expect(create(ofArray(bytes), linear), CUDA_SUCCESS, "bytes as integers");
  expect(create(ofArray(reals), linear), CUDA_SUCCESS, "floats, which are no integers");
  const CUdeviceptr memory = check::memory(512);
  expect(create(ofLine(memory, 512), linear), CUDA_SUCCESS, "a line, which is never filtered");
  OK(cuMemFree_v2(memory));

  CUtexObject made = 0;
  const CUDA_TEXTURE_DESC plain{};
  CUDA_RESOURCE_DESC resource = ofArray(bytes);
  EQUAL(cuTexObjectCreate(nullptr, &resource, &plain, nullptr), kInvalid);
  EQUAL(cuTexObjectCreate(&made, nullptr, &plain, nullptr), kInvalid);
  EQUAL(cuTexObjectCreate(&made, &resource, nullptr, nullptr), kInvalid);
  resource.flags = 1;
  EQUAL(create(resource, plain), kInvalid);
  const CUdeviceptr rows = check::memory(512);
  resource = ofRows(rows, 32, 4, 32);
  EQUAL(create(resource, plain), CUDA_SUCCESS);
  resource.resType = static_cast<CUresourcetype>(CU_RESOURCE_TYPE_PITCH2D + 1);
  EQUAL(create(resource, plain), kInvalid);
  OK(cuMemFree_v2(rows));
  for (const CUarray each : {bytes, words, reals, cube}) OK(cuArrayDestroy(each));
  EQUAL(create(ofArray(bytes), plain), CUDA_ERROR_INVALID_HANDLE);
}

TEST(views_have_formats_of_the_same_size_and_channels) {
  Primary primary;
  const struct {
    CUarray_format format;
    unsigned bytes;
  } formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1}, {CU_AD_FORMAT_SIGNED_INT16, 2}, {CU_AD_FORMAT_FLOAT, 4}};
  // In the header's order: types, each with one, two and four channels.
  const unsigned bytesOfKinds[] = {1, 1, 2, 2, 4, 4, 2, 4};
  CUDA_TEXTURE_DESC filtered{};
  filtered.filterMode = CU_TR_FILTER_MODE_LINEAR;
  filtered.flags = CU_TRSF_READ_AS_INTEGER;
  for (auto& own : formats) {
    for (const unsigned channels : {1u, 2u, 4u}) {
      const CUarray array = arrayOf(own.format, channels, 8, 4, 0);
      for (int at = 0; at < 24; ++at) {
        const auto format = static_cast<CUresourceViewFormat>(CU_RES_VIEW_FORMAT_UINT_1X8 + at);
        const CUDA_RESOURCE_VIEW_DESC view = viewOf(format, 8, 4, 0);
        const bool isAlike = bytesOfKinds[at / 3] == own.bytes && 1u << at % 3 == channels;
        expect(create(ofArray(array), {}, &view), isAlike ? CUDA_SUCCESS : kInvalid,
               "view " + std::to_string(format) + " of " + std::to_string(channels) + " channels of " +
                   std::to_string(own.bytes) + " bytes");
        expect(create(ofArray(array), filtered, &view), isAlike ? CUDA_SUCCESS : kInvalid,
               "filtered view " + std::to_string(format));
      }
      for (int format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1; format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7; ++format) {
        const CUDA_RESOURCE_VIEW_DESC view = viewOf(static_cast<CUresourceViewFormat>(format), 8, 4, 0);
        EQUAL(create(ofArray(array), {}, &view), CUDA_ERROR_NOT_SUPPORTED);
      }
      const CUDA_RESOURCE_VIEW_DESC same = viewOf(CU_RES_VIEW_FORMAT_NONE, 8, 4, 0),
                                    none = viewOf(static_cast<CUresourceViewFormat>(-1), 8, 4, 0);
      EQUAL(create(ofArray(array), {}, &same), CUDA_SUCCESS);
      EQUAL(create(ofArray(array), {}, &none), kInvalid);
      OK(cuArrayDestroy(array));
    }
  }
}

TEST(views_are_of_levels_and_layers_that_are_there) {
  Primary primary;
  CUmipmappedArray mipmap = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR layers{8, 4, 3, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED},
      box{8, 4, 3, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  for (const bool isLayered : {true, false}) {
    OK(cuMipmappedArrayCreate(&mipmap, isLayered ? &layers : &box, 3));
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmap;
    CUDA_TEXTURE_DESC texture{};
    EQUAL(create(resource, texture), kInvalid);  // mipmaps require normalized coordinates
    texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
    EQUAL(create(resource, texture), CUDA_SUCCESS);
    struct {
      size_t width, height, depth;
      unsigned firstLevel, lastLevel, firstLayer, lastLayer;
      bool isOfLayers, isOfBox;
    } const cases[] = {
        {8, 4, 3, 0, 0, 0, 0, true, true},   {8, 4, 3, 0, 2, 0, 0, true, true},   {8, 4, 3, 0, 3, 0, 0, false, false},
        {8, 4, 3, 2, 2, 0, 0, true, true},   {8, 4, 3, 2, 1, 0, 0, false, false}, {8, 4, 3, 0, 0, 0, 2, true, false},
        {8, 4, 3, 0, 0, 2, 2, true, false},  {8, 4, 3, 0, 0, 0, 3, false, false}, {8, 4, 3, 0, 0, 2, 1, false, false},
        {8, 4, 3, 0, 0, 1, 0, false, false}, {7, 4, 3, 0, 0, 0, 0, false, false}, {8, 5, 3, 0, 0, 0, 0, false, false},
        {8, 4, 1, 0, 0, 0, 0, true, false}};
    for (auto& each : cases) {
      CUDA_RESOURCE_VIEW_DESC view =
          viewOf(CU_RES_VIEW_FORMAT_UINT_1X8, each.width, each.height, each.depth, each.lastLevel, each.lastLayer);
      view.firstMipmapLevel = each.firstLevel;
      view.firstLayer = each.firstLayer;
      expect(create(resource, texture, &view), (isLayered ? each.isOfLayers : each.isOfBox) ? CUDA_SUCCESS : kInvalid,
             "levels " + std::to_string(each.firstLevel) + " to " + std::to_string(each.lastLevel) + ", layers " +
                 std::to_string(each.firstLayer) + " to " + std::to_string(each.lastLayer));
    }
    OK(cuMipmappedArrayDestroy(mipmap));
    EQUAL(create(resource, texture), CUDA_ERROR_INVALID_HANDLE);
  }
  const CUdeviceptr memory = check::memory(512);
  const CUDA_RESOURCE_VIEW_DESC view = viewOf(CU_RES_VIEW_FORMAT_NONE, 8, 4, 0);
  EQUAL(create(ofLine(memory, 512), {}, &view), kInvalid);
  EQUAL(create(ofRows(memory, 8, 4, 32), {}, &view), kInvalid);
  OK(cuMemFree_v2(memory));
}

TEST(an_object_tells_what_it_was_made_of_and_is_one_of_its_kind) {
  Primary primary;
  const CUarray plain = arrayOf(CU_AD_FORMAT_UNSIGNED_INT8, 1, 8, 4, 0),
                writable = arrayOf(CU_AD_FORMAT_UNSIGNED_INT8, 1, 8, 4, 0, CUDA_ARRAY3D_SURFACE_LDST);
  const CUDA_RESOURCE_DESC ofPlain = ofArray(plain), ofWritable = ofArray(writable);
  const CUDA_RESOURCE_VIEW_DESC view = viewOf(CU_RES_VIEW_FORMAT_SINT_1X8, 8, 4, 0);
  CUDA_TEXTURE_DESC texture{};
  texture.maxAnisotropy = 7;
  CUtexObject bare = 0, viewed = 0;
  CUsurfObject surface = 0;
  OK(cuTexObjectCreate(&bare, &ofPlain, &texture, nullptr));
  OK(cuTexObjectCreate(&viewed, &ofPlain, &texture, &view));
  EQUAL(cuSurfObjectCreate(&surface, &ofPlain), kInvalid);
  OK(cuSurfObjectCreate(&surface, &ofWritable));
  EQUAL(cuSurfObjectCreate(nullptr, &ofWritable), kInvalid);
  EQUAL(cuSurfObjectCreate(&surface, nullptr), kInvalid);
  const CUdeviceptr memory = check::memory(512);
  const CUDA_RESOURCE_DESC line = ofLine(memory, 512);
  EQUAL(cuSurfObjectCreate(&surface, &line), kInvalid);
  OK(cuMemFree_v2(memory));
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC options;
  CUDA_RESOURCE_VIEW_DESC found;
  OK(cuTexObjectGetResourceDesc(&resource, bare));
  CHECK(resource.res.array.hArray == plain);
  OK(cuSurfObjectGetResourceDesc(&resource, surface));
  CHECK(resource.res.array.hArray == writable);
  OK(cuTexObjectGetTextureDesc(&options, bare));
  EQUAL(options.maxAnisotropy, 7);
  EQUAL(cuTexObjectGetResourceViewDesc(&found, bare), kInvalid);
  OK(cuTexObjectGetResourceViewDesc(&found, viewed));
  EQUAL(found.format, CU_RES_VIEW_FORMAT_SINT_1X8);
  EQUAL(cuTexObjectGetResourceDesc(nullptr, bare), kInvalid);
  EQUAL(cuTexObjectGetTextureDesc(nullptr, bare), kInvalid);
  EQUAL(cuTexObjectGetResourceViewDesc(nullptr, viewed), kInvalid);
  // Neither kind of handle is accepted for the other.
  EQUAL(cuTexObjectGetResourceDesc(&resource, surface), kInvalid);
  EQUAL(cuSurfObjectGetResourceDesc(&resource, bare), kInvalid);
  EQUAL(cuTexObjectDestroy(surface), kInvalid);
  EQUAL(cuSurfObjectDestroy(bare), kInvalid);
  OK(cuTexObjectDestroy(bare));
  EQUAL(cuTexObjectDestroy(bare), kInvalid);
  EQUAL(cuTexObjectGetTextureDesc(&options, bare), kInvalid);
  OK(cuTexObjectDestroy(viewed));
  OK(cuSurfObjectDestroy(surface));
  OK(cuArrayDestroy(plain));
  OK(cuArrayDestroy(writable));
}
