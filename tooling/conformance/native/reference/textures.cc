// Textures: the values that a kernel samples, and the driver's descriptors.
#include <cstring>

#include "reference.h"

static const std::map<std::string, CUarray_format> formats = {{"u8", CU_AD_FORMAT_UNSIGNED_INT8},
                                                              {"u16", CU_AD_FORMAT_UNSIGNED_INT16},
                                                              {"u32", CU_AD_FORMAT_UNSIGNED_INT32},
                                                              {"i8", CU_AD_FORMAT_SIGNED_INT8},
                                                              {"i16", CU_AD_FORMAT_SIGNED_INT16},
                                                              {"i32", CU_AD_FORMAT_SIGNED_INT32},
                                                              {"f16", CU_AD_FORMAT_HALF},
                                                              {"f32", CU_AD_FORMAT_FLOAT},
                                                              {"unorm8", CU_AD_FORMAT_UNORM_INT8X1},
                                                              {"snorm16", CU_AD_FORMAT_SNORM_INT16X1}};
static const std::map<std::string, CUaddress_mode> addressModes = {{"wrap", CU_TR_ADDRESS_MODE_WRAP},
                                                                   {"clamp", CU_TR_ADDRESS_MODE_CLAMP},
                                                                   {"mirror", CU_TR_ADDRESS_MODE_MIRROR},
                                                                   {"border", CU_TR_ADDRESS_MODE_BORDER}};

static size_t texelBytes(const Json& array) {
  const std::string& format = array["format"].text();
  return (format.find('8') != std::string::npos    ? 1
          : format.find("16") != std::string::npos ? 2
                                                   : 4) *
         array["channels"].integer();
}

static CUDA_ARRAY3D_DESCRIPTOR describe(const Json& array) {
  CUDA_ARRAY3D_DESCRIPTOR made = {};
  made.Width = array["width"].integer();
  made.Height = array["height"].integer(0);
  made.Depth = array["depth"].integer(0);
  made.Format = formats.at(array["format"].text());
  made.NumChannels = static_cast<unsigned>(array["channels"].integer());
  const auto channels = made.NumChannels;
  if (made.Format == CU_AD_FORMAT_UNORM_INT8X1 && channels > 1)
    made.Format = channels == 2 ? CU_AD_FORMAT_UNORM_INT8X2 : CU_AD_FORMAT_UNORM_INT8X4;
  if (made.Format == CU_AD_FORMAT_SNORM_INT16X1 && channels > 1)
    made.Format = channels == 2 ? CU_AD_FORMAT_SNORM_INT16X2 : CU_AD_FORMAT_SNORM_INT16X4;
  if (array["layers"]) {
    made.Flags |= CUDA_ARRAY3D_LAYERED;
    made.Depth = array["layers"].integer();
  }
  if (array["cubemap"].isTrue()) {
    made.Flags |= CUDA_ARRAY3D_CUBEMAP;
    made.Height = made.Width;
    made.Depth = array["layers"] ? made.Depth * 6 : 6;
  }
  if (array["gather"].isTrue()) made.Flags |= CUDA_ARRAY3D_TEXTURE_GATHER;
  return made;
}

// Copies texels without gaps into a whole array.
static void fill(CUarray array, const std::vector<unsigned char>& texels, size_t bytes) {
  CUDA_ARRAY3D_DESCRIPTOR size;
  check(cuArray3DGetDescriptor(&size, array));
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = texels.data();
  copy.srcPitch = copy.WidthInBytes = size.Width * bytes;
  copy.srcHeight = copy.Height = size.Height == 0 ? 1 : size.Height;
  copy.Depth = size.Depth == 0 ? 1 : size.Depth;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  check(cuMemcpy3D(&copy));
}

static CUDA_TEXTURE_DESC describeTexture(const Json& options, const std::string& format) {
  CUDA_TEXTURE_DESC made = {};
  for (auto& mode : made.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  for (size_t axis = 0; axis < options["addressMode"].size(); ++axis)
    made.addressMode[axis] = addressModes.at(options["addressMode"][axis].text());
  const auto filter = [&](const char* name) {
    return options[name] && options[name].text() == "linear" ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
  };
  made.filterMode = filter("filterMode");
  made.mipmapFilterMode = filter("mipmapFilterMode");
  if (options["normalizedCoordinates"].isTrue()) made.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  const bool isInteger = (format[0] == 'u' || format[0] == 'i') && format[1] != 'n';
  const bool asInteger = isInteger && options["readMode"].text() == "element";
  if (asInteger) made.flags |= CU_TRSF_READ_AS_INTEGER;
  if (options["srgb"].isTrue()) made.flags |= CU_TRSF_SRGB;
  made.maxAnisotropy = static_cast<unsigned>(options["maxAnisotropy"].integer(0));
  made.mipmapLevelBias = static_cast<float>(options["mipmapLevelBias"].number());
  made.maxMipmapLevelClamp = 1000;
  if (options["mipmapLevelClamp"]) {
    made.minMipmapLevelClamp = static_cast<float>(options["mipmapLevelClamp"][size_t(0)].number());
    made.maxMipmapLevelClamp = static_cast<float>(options["mipmapLevelClamp"][size_t(1)].number());
  }
  for (size_t channel = 0; channel < options["borderColor"].size(); ++channel) {
    const Json& color = options["borderColor"][channel];
    if (asInteger) {
      const auto bits = static_cast<unsigned>(color.integer());
      memcpy(&made.borderColor[channel], &bits, sizeof bits);
    } else {
      made.borderColor[channel] = static_cast<float>(color.number());
    }
  }
  return made;
}

std::string textureCase(const Json& given) {
  Fields fields;
  const Json& shape = given["array"];
  const auto texels = given["texels"].bytes();
  const size_t bytes = texelBytes(shape);
  CUDA_RESOURCE_DESC resource = {};
  CUarray array = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  CUdeviceptr memory = 0;
  const auto made = describe(shape);
  if (given["pitch"]) {
    // The texels are in memory, in rows with gaps after them.
    check(cuMemAlloc(&memory, texels.size()));
    check(cuMemcpyHtoD(memory, texels.data(), texels.size()));
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.format = made.Format;
    resource.res.pitch2D.numChannels = made.NumChannels;
    resource.res.pitch2D.width = made.Width;
    resource.res.pitch2D.height = made.Height;
    resource.res.pitch2D.pitchInBytes = given["pitch"].integer();
  } else if (given["levels"]) {
    check(cuMipmappedArrayCreate(&mipmapped, &made, static_cast<unsigned>(given["levels"].size())));
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmapped;
    for (size_t level = 0; level < given["levels"].size(); ++level) {
      CUarray one;
      check(cuMipmappedArrayGetLevel(&one, mipmapped, static_cast<unsigned>(level)));
      fill(one, given["levels"][level].bytes(), bytes);
    }
  } else {
    check(cuArray3DCreate(&array, &made));
    fill(array, texels, bytes);
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
  }
  if (array != nullptr) {
    CUDA_ARRAY3D_DESCRIPTOR found;
    memset(&found, 0, sizeof found);
    check(cuArray3DGetDescriptor(&found, array));
    fields.raw("array", hex(&found, sizeof found));
  }
  const auto wanted = describeTexture(given["options"], shape["format"].text());
  CUtexObject texture = 0;
  const std::string described = attempt([&] {
    check(cuTexObjectCreate(&texture, &resource, &wanted, nullptr));
    CUDA_TEXTURE_DESC found;
    memset(&found, 0, sizeof found);
    check(cuTexObjectGetTextureDesc(&found, texture));
    return hex(&found, sizeof found);
  });
  fields.raw("texture", described);
  if (texture == 0) fields.raw("samples", described);
  else {
    const auto places = given["places"].bytes();
    auto count = static_cast<unsigned>(places.size() / 32);
    CUdeviceptr from, to;
    check(cuMemAlloc(&from, places.size()));
    check(cuMemAlloc(&to, size_t(count) * 16));
    check(cuMemcpyHtoD(from, places.data(), places.size()));
    void* parameters[] = {&texture, &from, &to, &count};
    check(cuLaunchKernel(kernelOf(given["ptx"].text(), "sample"), (count + 63) / 64, 1, 1, 64, 1, 1, 0, nullptr,
                         parameters, nullptr));
    std::vector<unsigned char> samples(size_t(count) * 16);
    check(cuMemcpyDtoH(samples.data(), to, samples.size()));
    fields.raw("samples", hex(samples.data(), samples.size()));
    check(cuMemFree(from));
    check(cuMemFree(to));
    check(cuTexObjectDestroy(texture));
  }
  if (array != nullptr) check(cuArrayDestroy(array));
  if (mipmapped != nullptr) check(cuMipmappedArrayDestroy(mipmapped));
  if (memory != 0) check(cuMemFree(memory));
  return fields.str();
}
