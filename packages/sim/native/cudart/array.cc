// Arrays, and the runtime's channel formats.
#include "entry.h"

using namespace shoal::cudart;

namespace {

// These kinds name the type and the number of channels: one, two and four, in the order of the driver's formats. The
// driver has no format after the last of them.
constexpr int kFirstNorm = cudaChannelFormatKindUnsignedNormalized8X1,
              kLastNorm = cudaChannelFormatKindSignedNormalized16X4;

int bitsOf(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 16;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 32;
    default: {
      const int norm = format - CU_AD_FORMAT_UNORM_INT8X1;
      return norm < 0 ? 0 : norm / 3 % 2 == 0 ? 8 : 16;
    }
  }
}

cudaChannelFormatDesc describe(CUarray_format format, unsigned channels) {
  const int bits = bitsOf(format), norm = format - CU_AD_FORMAT_UNORM_INT8X1;
  const bool isSigned = format >= CU_AD_FORMAT_SIGNED_INT8 && format <= CU_AD_FORMAT_SIGNED_INT32;
  const int kind = norm >= 0                                                     ? kFirstNorm + norm
                   : format == CU_AD_FORMAT_NV12                                 ? cudaChannelFormatKindNV12
                   : format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT ? cudaChannelFormatKindFloat
                   : isSigned                                                    ? cudaChannelFormatKindSigned
                                                                                 : cudaChannelFormatKindUnsigned;
  const auto part = [&](unsigned index) { return index < channels ? (bits == 0 ? 8 : bits) : 0; };
  return {part(0), part(1), part(2), part(3), static_cast<cudaChannelFormatKind>(kind)};
}

CUresult descriptorOf(const cudaChannelFormatDesc* desc, const cudaExtent& extent, unsigned flags,
                      CUDA_ARRAY3D_DESCRIPTOR& out) {
  if (desc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  out = {};
  out.Width = extent.width;
  out.Height = extent.height;
  out.Depth = extent.depth;
  out.Flags = flags;  // the same bits as the driver's
  return formatOf(*desc, out.Format, out.NumChannels) ? CUDA_SUCCESS
                                                      : static_cast<CUresult>(cudaErrorInvalidChannelDescriptor);
}

CUresult create(cudaArray_t* array, const cudaChannelFormatDesc* desc, const cudaExtent& extent, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = descriptorOf(desc, extent, flags, descriptor)) return status;
  return cuArray3DCreate_v2(driverArrayOut(array), &descriptor);
}

}  // namespace

bool shoal::cudart::formatOf(const cudaChannelFormatDesc& desc, CUarray_format& format, unsigned& channels) {
  if (desc.f >= kFirstNorm && desc.f <= kLastNorm) {
    format = static_cast<CUarray_format>(CU_AD_FORMAT_UNORM_INT8X1 + (desc.f - kFirstNorm));
    channels = 1u << (desc.f - kFirstNorm) % 3;
    return true;
  }
  if (desc.f == cudaChannelFormatKindNV12) {
    format = CU_AD_FORMAT_NV12;
    channels = 3;
    return true;
  }
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  channels = 0;
  while (channels < 4 && bits[channels] != 0) ++channels;
  for (unsigned part = 0; part < 4; ++part) {
    if (bits[part] != (part < channels ? desc.x : 0)) return false;
  }
  const int size = desc.x == 8 ? 0 : desc.x == 16 ? 1 : desc.x == 32 ? 2 : -1;
  if (size < 0) return false;
  constexpr int codes[3][3] = {{CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
                               {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32},
                               {0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT}};
  if (desc.f < cudaChannelFormatKindSigned || desc.f > cudaChannelFormatKindFloat || codes[desc.f][size] == 0)
    return false;
  format = static_cast<CUarray_format>(codes[desc.f][size]);
  return true;
}

size_t shoal::cudart::bytesOfTexel(CUarray_format format, unsigned channels) {
  return static_cast<size_t>(bitsOf(format)) / 8 * channels;
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width, size_t height,
                            unsigned int flags) {
  return onDevice([&] { return create(array, desc, {width, height, 0}, flags); });
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                              unsigned int flags) {
  return onDevice([&] { return create(array, desc, extent, flags); });
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  return onDevice([&] { return array == nullptr ? CUDA_SUCCESS : cuArrayDestroy(driverArray(array)); });
}
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* mipmappedArray, const cudaChannelFormatDesc* desc,
                                     cudaExtent extent, unsigned int numLevels, unsigned int flags) {
  return onDevice([&]() -> CUresult {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    if (mipmappedArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = descriptorOf(desc, extent, flags, descriptor)) return status;
    return cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(mipmappedArray), &descriptor, numLevels);
  });
}
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray) {
  return onDevice(
      [&] { return mipmappedArray == nullptr ? CUDA_SUCCESS : cuMipmappedArrayDestroy(driverArray(mipmappedArray)); });
}
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* levelArray, cudaMipmappedArray_const_t mipmappedArray,
                                       unsigned int level) {
  return onDevice(
      [&] { return cuMipmappedArrayGetLevel(driverArrayOut(levelArray), driverArray(mipmappedArray), level); });
}
cudaError_t cudaArrayGetPlane(cudaArray_t* pPlaneArray, cudaArray_t hArray, unsigned int planeIdx) {
  return onDevice([&] { return cuArrayGetPlane(driverArrayOut(pPlaneArray), driverArray(hArray), planeIdx); });
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned int* flags, cudaArray_t array) {
  return onDevice([&]() -> CUresult {
    CUDA_ARRAY3D_DESCRIPTOR found;
    if (const CUresult status = cuArray3DGetDescriptor_v2(&found, driverArray(array))) return status;
    if (desc != nullptr) *desc = describe(found.Format, found.NumChannels);
    if (extent != nullptr) *extent = {found.Width, found.Height, found.Depth};
    if (flags != nullptr) *flags = found.Flags;
    return CUDA_SUCCESS;
  });
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* desc, cudaArray_const_t array) {
  if (desc == nullptr) return started([] { return CUDA_ERROR_INVALID_VALUE; });
  return cudaArrayGetInfo(desc, nullptr, nullptr, const_cast<cudaArray_t>(array));
}
