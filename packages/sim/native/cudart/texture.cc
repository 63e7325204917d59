// Textures and surfaces: converts the runtime's structures to the driver's.
#include <cstring>

#include "entry.h"

using namespace shoal::cudart;

namespace {

CUresult resourceOf(const cudaResourceDesc& given, CUDA_RESOURCE_DESC& out, bool& isInteger) {
  out = {};
  out.flags = given.flags;
  isInteger = false;
  const auto take = [&](const cudaChannelFormatDesc& desc, CUarray_format& format, unsigned& channels) {
    isInteger = desc.f == cudaChannelFormatKindSigned || desc.f == cudaChannelFormatKindUnsigned;
    return formatOf(desc, format, channels) ? CUDA_SUCCESS : static_cast<CUresult>(cudaErrorInvalidChannelDescriptor);
  };
  const auto ofArray = [&](CUarray array) -> CUresult {
    CUDA_ARRAY3D_DESCRIPTOR found;
    if (const CUresult status = cuArray3DGetDescriptor_v2(&found, array)) return status;
    isInteger = found.Format <= CU_AD_FORMAT_SIGNED_INT32;
    return CUDA_SUCCESS;
  };
  switch (given.resType) {
    case cudaResourceTypeArray:
      out.resType = CU_RESOURCE_TYPE_ARRAY;
      out.res.array.hArray = driverArray(given.res.array.array);
      return ofArray(out.res.array.hArray);
    case cudaResourceTypeMipmappedArray: {
      out.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      out.res.mipmap.hMipmappedArray = driverArray(given.res.mipmap.mipmap);
      CUarray level = nullptr;
      if (const CUresult status = cuMipmappedArrayGetLevel(&level, out.res.mipmap.hMipmappedArray, 0)) return status;
      return ofArray(level);
    }
    case cudaResourceTypeLinear: {
      const auto& linear = given.res.linear;
      out.resType = CU_RESOURCE_TYPE_LINEAR;
      out.res.linear.devPtr = address(linear.devPtr);
      out.res.linear.sizeInBytes = linear.sizeInBytes;
      return take(linear.desc, out.res.linear.format, out.res.linear.numChannels);
    }
    case cudaResourceTypePitch2D: {
      const auto& rows = given.res.pitch2D;
      out.resType = CU_RESOURCE_TYPE_PITCH2D;
      out.res.pitch2D.devPtr = address(rows.devPtr);
      out.res.pitch2D.width = rows.width;
      out.res.pitch2D.height = rows.height;
      out.res.pitch2D.pitchInBytes = rows.pitchInBytes;
      return take(rows.desc, out.res.pitch2D.format, out.res.pitch2D.numChannels);
    }
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult create(cudaTextureObject_t* out, const cudaResourceDesc* resource, const cudaTextureDesc* texture,
                const cudaResourceViewDesc* view) {
  if (out == nullptr || resource == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_RESOURCE_DESC looked;
  bool isInteger = false;
  if (const CUresult status = resourceOf(*resource, looked, isInteger)) return status;
  CUDA_TEXTURE_DESC read{};
  for (int axis = 0; axis < 3; ++axis) read.addressMode[axis] = static_cast<CUaddress_mode>(texture->addressMode[axis]);
  read.filterMode = static_cast<CUfilter_mode>(texture->filterMode);
  read.mipmapFilterMode = static_cast<CUfilter_mode>(texture->mipmapFilterMode);
  read.maxAnisotropy = texture->maxAnisotropy;
  read.mipmapLevelBias = texture->mipmapLevelBias;
  read.minMipmapLevelClamp = texture->minMipmapLevelClamp;
  read.maxMipmapLevelClamp = texture->maxMipmapLevelClamp;
  memcpy(read.borderColor, texture->borderColor, sizeof read.borderColor);
  if (isInteger && texture->readMode == cudaReadModeElementType) read.flags |= CU_TRSF_READ_AS_INTEGER;
  if (texture->normalizedCoords != 0) read.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (texture->sRGB != 0) read.flags |= CU_TRSF_SRGB;
  if (texture->disableTrilinearOptimization != 0) read.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (texture->seamlessCubemap != 0) read.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  CUDA_RESOURCE_VIEW_DESC part{};
  static_assert(sizeof part == sizeof *view);
  if (view != nullptr) memcpy(&part, view, sizeof part);
  return cuTexObjectCreate(reinterpret_cast<CUtexObject*>(out), &looked, &read, view == nullptr ? nullptr : &part);
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* pTexObject, const cudaResourceDesc* pResDesc,
                                    const cudaTextureDesc* pTexDesc, const cudaResourceViewDesc* pResViewDesc) {
  return onDevice([&] { return create(pTexObject, pResDesc, pTexDesc, pResViewDesc); });
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject) {
  return onDevice([&] { return cuTexObjectDestroy(static_cast<CUtexObject>(texObject)); });
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* pSurfObject, const cudaResourceDesc* pResDesc) {
  return onDevice([&]() -> CUresult {
    CUDA_RESOURCE_DESC looked;
    bool isInteger = false;
    if (pSurfObject == nullptr || pResDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = resourceOf(*pResDesc, looked, isInteger)) return status;
    return cuSurfObjectCreate(reinterpret_cast<CUsurfObject*>(pSurfObject), &looked);
  });
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject) {
  return onDevice([&] { return cuSurfObjectDestroy(static_cast<CUsurfObject>(surfObject)); });
}
