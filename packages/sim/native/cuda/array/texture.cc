#include "texture.h"

#include <cstring>

#include "core/allocation.h"
#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"

namespace shoal {

HandleTable<TextureObject>& textureObjects() {
  static auto* table = new HandleTable<TextureObject>(19, "texture and surface objects");
  return *table;
}

namespace {

constexpr unsigned kTextureFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                   CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
constexpr size_t kAlignment = 512, kPitchAlignment = 32, kMostLinear = size_t{1} << 28, kMostPitched = 131072,
                 kMostPitchedHeight = 65000, kMostPitch = 2097120;

// View formats are numbered by type, and within a type by one, two and four channels. Block-compressed formats follow.
bool findViewFormat(CUresourceViewFormat format, TexelFormat& out) {
  constexpr struct {
    Channel channel;
    unsigned bytes;
  } kinds[] = {{Channel::unsignedInteger, 1},
               {Channel::signedInteger, 1},
               {Channel::unsignedInteger, 2},
               {Channel::signedInteger, 2},
               {Channel::unsignedInteger, 4},
               {Channel::signedInteger, 4},
               {Channel::real, 2},
               {Channel::real, 4}};
  const int at = static_cast<int>(format) - CU_RES_VIEW_FORMAT_UINT_1X8;
  if (at < 0) return false;
  out = {kinds[at / 3].channel, 1u << at % 3, kinds[at / 3].bytes};
  return true;
}

CUresult describeMemory(const CUDA_RESOURCE_DESC& d, TextureObject& made) {
  const bool isLinear = d.resType == CU_RESOURCE_TYPE_LINEAR;
  const auto& pitched = d.res.pitch2D;
  const CUdeviceptr address = isLinear ? d.res.linear.devPtr : pitched.devPtr;
  if (!findFormat(isLinear ? d.res.linear.format : pitched.format,
                  isLinear ? d.res.linear.numChannels : pitched.numChannels, made.format))
    return CUDA_ERROR_INVALID_VALUE;
  if (address % kAlignment != 0) return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = d.res.linear.sizeInBytes;
  if (isLinear) {
    if (bytes == 0 || bytes / made.format.bytes() > kMostLinear) return CUDA_ERROR_INVALID_VALUE;
  } else {
    const size_t row = pitched.width * made.format.bytes();
    if (pitched.width == 0 || pitched.width > kMostPitched || pitched.height == 0 ||
        pitched.height > kMostPitchedHeight)
      return CUDA_ERROR_INVALID_VALUE;
    if (pitched.pitchInBytes < row || pitched.pitchInBytes > kMostPitch || pitched.pitchInBytes % kPitchAlignment != 0)
      return CUDA_ERROR_INVALID_VALUE;
    bytes = (pitched.height - 1) * pitched.pitchInBytes + row;
  }
  MemoryRange range;
  return checkKnownRange({*made.context, Access::read, false}, address, bytes, range);
}

CUresult describeArrays(const CUDA_RESOURCE_DESC& d, TextureObject& made) {
  std::vector<std::shared_ptr<Array>> levels;
  if (d.resType == CU_RESOURCE_TYPE_ARRAY) {
    auto found = arrays().find(d.res.array.hArray);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    levels.push_back(std::move(found));
  } else {
    auto found = mipmappedArrays().find(d.res.mipmap.hMipmappedArray);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    levels = found->levels;
  }
  const Array& first = *levels[0];
  // Planar arrays have no texels.
  if (first.context != made.context || !first.hasTexels()) return CUDA_ERROR_INVALID_VALUE;
  made.format = first.format;
  for (auto& each : levels) made.levels.push_back(each);
  if (!made.hasView) return CUDA_SUCCESS;
  const auto& view = made.view;
  if (view.format >= CU_RES_VIEW_FORMAT_UNSIGNED_BC1) return CUDA_ERROR_NOT_SUPPORTED;
  if (view.format != CU_RES_VIEW_FORMAT_NONE) {
    TexelFormat format;
    if (!findViewFormat(view.format, format) || format.bytes() != made.format.bytes() ||
        format.channels != made.format.channels)
      return CUDA_ERROR_INVALID_VALUE;
    made.format = format;
  }
  const bool isSize = view.width == first.descriptor.Width && view.height == first.descriptor.Height &&
                      (first.isLayered() || view.depth == first.descriptor.Depth);
  const bool areLevels = view.firstMipmapLevel <= view.lastMipmapLevel && view.lastMipmapLevel < levels.size();
  const bool areLayers =
      view.firstLayer <= view.lastLayer && (view.lastLayer == 0 || (first.isLayered() && view.lastLayer < first.depth));
  return isSize && areLevels && areLayers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult create(uint64_t* out, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                const CUDA_RESOURCE_VIEW_DESC* view, bool isSurface) {
  return inContext([&](auto& context) -> CUresult {
    if (out == nullptr || resource == nullptr || (!isSurface && texture == nullptr) || resource->flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<TextureObject>();
    made->resource = *resource;
    made->context = context;
    made->isSurface = isSurface;
    made->hasView = view != nullptr;
    if (view != nullptr) made->view = *view;
    const bool isArray = resource->resType == CU_RESOURCE_TYPE_ARRAY,
               isMipmap = resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (resource->resType > CU_RESOURCE_TYPE_PITCH2D || (isSurface && !isArray) ||
        (made->hasView && !isArray && !isMipmap))
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status =
            isArray || isMipmap ? describeArrays(*resource, *made) : describeMemory(*resource, *made))
      return status;
    if (isSurface) {
      if ((made->levels[0].lock()->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
    } else {
      made->texture = *texture;
      const auto& t = made->texture;
      for (const int mode : {int(t.addressMode[0]), int(t.addressMode[1]), int(t.addressMode[2])}) {
        if (mode < CU_TR_ADDRESS_MODE_WRAP || mode > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
      }
      if ((t.flags & ~kTextureFlags) != 0 || t.filterMode > CU_TR_FILTER_MODE_LINEAR ||
          t.mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
      if ((isMipmap || resource->resType == CU_RESOURCE_TYPE_ARRAY) && made->levels[0].lock()->isCubemap() &&
          (t.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
      if (isMipmap && (t.flags & CU_TRSF_NORMALIZED_COORDINATES) == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    *out = textureObjects().reserve();
    textureObjects().put(*out, std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult destroy(uint64_t handle, bool isSurface) {
  return initialised([&]() -> CUresult {
    auto found = textureObjects().find(handle);
    if (!found || found->isSurface != isSurface) return CUDA_ERROR_INVALID_VALUE;
    textureObjects().take(handle);
    return CUDA_SUCCESS;
  });
}

template <class T, class Body>
CUresult ask(uint64_t handle, bool isSurface, T* out, Body&& body) {
  return inContext([&](auto&) -> CUresult {
    auto found = textureObjects().find(handle);
    if (out == nullptr || !found || found->isSurface != isSurface) return CUDA_ERROR_INVALID_VALUE;
    return body(*found);
  });
}

CUresult askResource(uint64_t handle, bool isSurface, CUDA_RESOURCE_DESC* out) {
  return ask(handle, isSurface, out, [&](const TextureObject& found) {
    *out = found.resource;
    return CUDA_SUCCESS;
  });
}

// Destroying a context destroys its texture and surface objects.
void forgetObjectsOf(const Context& context) {
  textureObjects().takeIf([&](const TextureObject& each) { return each.context.get() == &context; });
}
[[maybe_unused]] const bool isWatchingForObjects = (Context::whenDestroyed(forgetObjectsOf), true);

}  // namespace

}  // namespace shoal

using namespace shoal;

CUresult cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                           const CUDA_TEXTURE_DESC* pTexDesc, const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  return create(reinterpret_cast<uint64_t*>(pTexObject), pResDesc, pTexDesc, pResViewDesc, false);
}
CUresult cuTexObjectDestroy(CUtexObject texObject) { return destroy(texObject, false); }
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  return askResource(texObject, false, pResDesc);
}
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject) {
  return ask(texObject, false, pTexDesc, [&](const TextureObject& found) {
    *pTexDesc = found.texture;
    // Real drivers do not return the border colour.
    memset(pTexDesc->borderColor, 0, sizeof pTexDesc->borderColor);
    return CUDA_SUCCESS;
  });
}
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* pResViewDesc, CUtexObject texObject) {
  return ask(texObject, false, pResViewDesc, [&](const TextureObject& found) -> CUresult {
    if (!found.hasView) return CUDA_ERROR_INVALID_VALUE;
    *pResViewDesc = found.view;
    return CUDA_SUCCESS;
  });
}
CUresult cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  return create(reinterpret_cast<uint64_t*>(pSurfObject), pResDesc, nullptr, nullptr, true);
}
CUresult cuSurfObjectDestroy(CUsurfObject surfObject) { return destroy(surfObject, true); }
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  return askResource(surfObject, true, pResDesc);
}
