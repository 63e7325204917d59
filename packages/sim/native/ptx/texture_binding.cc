// Binds texture and surface objects for a launch: levels, layers, address modes and borders.
#include <cstring>

#include "array/texture.h"
#include "core/context.h"
#include "core/device.h"
#include "filter.h"
#include "launch.h"
#include "texture.h"

namespace shoal::ptx {

namespace {

[[noreturn]] void failUnbound(const char* what) {
  throw Fault{CUDA_ERROR_ILLEGAL_ADDRESS, std::string("a ") + what + " that is not there"};
}

void addLevel(BoundTexture& bound, const std::shared_ptr<Array>& array) {
  bound.held.push_back(array);
  bound.levels.push_back({array->data, array->rowBytes, array->sliceBytes, static_cast<int64_t>(array->width),
                          static_cast<int64_t>(array->height), static_cast<int64_t>(array->depth), array->tiles()});
}

void bindArrays(BoundTexture& bound, const TextureObject& object) {
  const auto& view = object.view;
  const size_t first = object.hasView ? view.firstMipmapLevel : 0,
               last = object.hasView ? view.lastMipmapLevel : object.levels.size() - 1;
  for (size_t level = first; level <= last; ++level) {
    auto array = object.levels[level].lock();
    if (!array || !arrays().find(array->handle))
      failUnbound(object.isSurface ? "surface of an array" : "texture of an array");
    addLevel(bound, array);
  }
  const Array& array = *bound.held[0];
  bound.dimensions = array.dimensions();
  if (array.isLayered() || array.isCubemap()) {
    bound.layers = static_cast<int64_t>(array.depth);
    if (object.hasView && view.lastLayer != 0) {
      bound.firstLayer = view.firstLayer;
      bound.layers = view.lastLayer - view.firstLayer + 1;
    }
  }
}

}  // namespace

const BoundTexture& Launch::bind(uint64_t handle, bool isSurface) {
  std::lock_guard lock(texturesMutex_);
  auto& kept = textures_[handle];
  if (kept) return *kept;
  const auto object = textureObjects().find(handle);
  if (!object || object->isSurface != isSurface || &object->context->device != &context->device)
    failUnbound(isSurface ? "surface" : "texture");
  auto bound = std::make_shared<BoundTexture>();
  const CUDA_TEXTURE_DESC& t = object->texture;
  const CUDA_RESOURCE_DESC& resource = object->resource;
  bound->format = object->format;
  bound->isSurface = isSurface;
  bound->isLinear = resource.resType == CU_RESOURCE_TYPE_LINEAR;
  if (bound->isLinear || resource.resType == CU_RESOURCE_TYPE_PITCH2D) {
    const bool is1D = bound->isLinear;
    const auto& pitched = resource.res.pitch2D;
    const size_t width = is1D ? resource.res.linear.sizeInBytes / bound->format.bytes() : pitched.width;
    const size_t height = is1D ? 1 : pitched.height, pitch = is1D ? 0 : pitched.pitchInBytes;
    const CUdeviceptr address = is1D ? resource.res.linear.devPtr : pitched.devPtr;
    // Adjacent mappings count as one memory.
    const uint64_t end = address + (height - 1) * pitch + width * bound->format.bytes();
    for (Range range{address, address, false}; range.end < end;) findRange(range.end, 1, false, range);
    bound->levels.push_back(
        {reinterpret_cast<char*>(address), pitch, 0, static_cast<int64_t>(width), static_cast<int64_t>(height), 1});
    bound->dimensions = is1D ? 1 : 2;
  } else {
    bindArrays(*bound, *object);
  }
  const bool isInteger =
      bound->format.channel == Channel::unsignedInteger || bound->format.channel == Channel::signedInteger;
  bound->isReal = !isInteger || (bound->format.channelBytes < 4 && (t.flags & CU_TRSF_READ_AS_INTEGER) == 0);
  bound->isNormalized = (t.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  bound->isSrgb = (t.flags & CU_TRSF_SRGB) != 0 && bound->format.channelBytes == 1 &&
                  bound->format.channel != Channel::signedInteger;
  bound->isFiltered = t.filterMode == CU_TR_FILTER_MODE_LINEAR && !bound->isLinear;
  bound->isBlended = t.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR && bound->isReal;
  bound->isSteep = t.maxAnisotropy > 1;
  for (int axis = 0; axis < 3; ++axis) {
    const auto mode = static_cast<uint32_t>(t.addressMode[axis]);
    const bool isPeriodic = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
    // Only normalized coordinates can repeat. Reads beyond linear memory return zero.
    bound->modes[axis] = bound->isLinear                      ? uint32_t{CU_TR_ADDRESS_MODE_BORDER}
                         : isPeriodic && !bound->isNormalized ? uint32_t{CU_TR_ADDRESS_MODE_CLAMP}
                                                              : mode;
  }
  for (unsigned part = 0; part < bound->format.channels && !bound->isLinear; ++part) {
    if (bound->isReal) bound->border[part] = asTexel(bound->format, t.borderColor[part]);
    else memcpy(&bound->border[part], &t.borderColor[part], sizeof *bound->border);
  }
  bound->bias = t.mipmapLevelBias;
  bound->least = t.minMipmapLevelClamp;
  bound->most = t.maxMipmapLevelClamp;
  kept = std::move(bound);
  return *kept;
}

const BoundTexture& boundTo(Warp& warp, uint64_t handle, bool isSurface) {
  Worker& worker = *warp.worker;
  if (worker.bound == nullptr || worker.boundHandle != handle) {
    worker.bound = &worker.launch.bind(handle, isSurface);
    worker.boundHandle = handle;
  }
  if (worker.bound->isSurface != isSurface) failUnbound(isSurface ? "surface" : "texture");
  return *worker.bound;
}

}  // namespace shoal::ptx
