// Copies and fills of memory and arrays in two and three dimensions. All use the driver's 3-D copy.
#include "entry.h"

using namespace shoal::cudart;

namespace {

constexpr CUresult kWrongPitch = static_cast<CUresult>(12),
                   kWrongDirection = static_cast<CUresult>(21);  // codes that only the runtime has

// One end of a copy: pitched memory, or an array. Positions are in bytes, rows and slices.
struct End {
  const void* pointer = nullptr;
  size_t pitch = 0, rows = 0;
  cudaArray_t array = nullptr;
  size_t x = 0, y = 0, z = 0;
};

// Arrays are always device memory.
CUresult checkEnds(const End& to, const End& from, cudaMemcpyKind kind) {
  if ((to.pointer == nullptr) == (to.array == nullptr) || (from.pointer == nullptr) == (from.array == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return kWrongDirection;
  const bool isFromDevice =
      kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
  const bool isToDevice =
      kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
  if ((from.array != nullptr && !isFromDevice) || (to.array != nullptr && !isToDevice)) return CUDA_ERROR_INVALID_VALUE;
  return to.array != nullptr || from.array != nullptr ? CUDA_SUCCESS : checkDirection(to.pointer, from.pointer, kind);
}

template <class Queue>
CUresult copy(const End& to, const End& from, size_t width, size_t height, size_t depth, cudaMemcpyKind kind,
              Queue&& queue) {
  if (const CUresult status = checkEnds(to, from, kind)) return status;
  if (width == 0 || height == 0 || depth == 0) return CUDA_SUCCESS;
  if ((to.array == nullptr && width > to.pitch) || (from.array == nullptr && width > from.pitch)) return kWrongPitch;
  CUDA_MEMCPY3D c{};
  c.srcXInBytes = from.x;
  c.srcY = from.y;
  c.srcZ = from.z;
  c.srcMemoryType = from.array != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
  c.srcDevice = address(from.pointer);
  c.srcArray = driverArray(from.array);
  c.srcPitch = from.pitch;
  c.srcHeight = from.rows;
  c.dstXInBytes = to.x;
  c.dstY = to.y;
  c.dstZ = to.z;
  c.dstMemoryType = to.array != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
  c.dstDevice = address(to.pointer);
  c.dstArray = driverArray(to.array);
  c.dstPitch = to.pitch;
  c.dstHeight = to.rows;
  c.WidthInBytes = width;
  c.Height = height;
  c.Depth = depth;
  return queue(c);
}

End memoryEnd(const void* pointer, size_t pitch) { return {pointer, pitch}; }
End arrayEnd(cudaArray_t array, size_t x, size_t y) { return {nullptr, 0, 0, array, x, y}; }

// An element of an array is a texel; an element of memory is a byte. If the copy involves an array, sizes count texels.
CUresult texelBytes(cudaArray_t array, size_t& bytes) {
  bytes = 1;
  if (array == nullptr) return CUDA_SUCCESS;
  CUDA_ARRAY3D_DESCRIPTOR d;
  if (const CUresult status = cuArray3DGetDescriptor_v2(&d, driverArray(array))) return status;
  bytes = bytesOfTexel(d.Format, d.NumChannels);
  return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

template <class Queue>
CUresult copy3D(const cudaMemcpy3DParms* p, Queue&& queue) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  size_t fromBytes = 1, toBytes = 1;
  if (const CUresult status = texelBytes(p->srcArray, fromBytes)) return status;
  if (const CUresult status = texelBytes(p->dstArray, toBytes)) return status;
  if (p->srcArray != nullptr && p->dstArray != nullptr && fromBytes != toBytes) return CUDA_ERROR_INVALID_VALUE;
  const End from{p->srcPtr.ptr,           p->srcPtr.pitch, p->srcPtr.ysize, p->srcArray,
                 p->srcPos.x * fromBytes, p->srcPos.y,     p->srcPos.z};
  const End to{p->dstPtr.ptr,         p->dstPtr.pitch, p->dstPtr.ysize, p->dstArray,
               p->dstPos.x * toBytes, p->dstPos.y,     p->dstPos.z};
  const size_t unit = p->srcArray != nullptr ? fromBytes : toBytes;
  return copy(to, from, p->extent.width * unit, p->extent.height, p->extent.depth, p->kind, queue);
}

// Slices are not adjacent if the memory has more rows per slice than the fill.
template <class Fill>
CUresult fill3D(const cudaPitchedPtr& at, const cudaExtent& extent, Fill&& fill) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_SUCCESS;
  if (extent.height > at.ysize && extent.depth > 1) return CUDA_ERROR_INVALID_VALUE;
  for (size_t slice = 0; slice < extent.depth; ++slice) {
    if (const CUresult status = fill(address(at.ptr) + slice * at.pitch * at.ysize)) return status;
  }
  return CUDA_SUCCESS;
}

}  // namespace

#define SHOAL_NOW(suffix) [&](const CUDA_MEMCPY3D& c) { return cuMemcpy3D_v2##suffix(&c); }
#define SHOAL_QUEUED(suffix) [&](const CUDA_MEMCPY3D& c) { return cuMemcpy3DAsync_v2##suffix(&c, stream); }

#define SHOAL_2D(queue) copy(memoryEnd(dst, dpitch), memoryEnd(src, spitch), width, height, 1, kind, queue)
SHOAL_RT_TWIN(cudaMemcpy2D, _ptds,
              (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
               cudaMemcpyKind kind),
              SHOAL_2D(SHOAL_NOW()), SHOAL_2D(SHOAL_NOW(_ptds)))
SHOAL_RT_TWIN(cudaMemcpy2DAsync, _ptsz,
              (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
               cudaMemcpyKind kind, cudaStream_t stream),
              SHOAL_2D(SHOAL_QUEUED()), SHOAL_2D(SHOAL_QUEUED(_ptsz)))

#define SHOAL_TO_ARRAY(queue) \
  copy(arrayEnd(dst, wOffset, hOffset), memoryEnd(src, spitch), width, height, 1, kind, queue)
SHOAL_RT_TWIN(cudaMemcpy2DToArray, _ptds,
              (cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, size_t width,
               size_t height, cudaMemcpyKind kind),
              SHOAL_TO_ARRAY(SHOAL_NOW()), SHOAL_TO_ARRAY(SHOAL_NOW(_ptds)))
SHOAL_RT_TWIN(cudaMemcpy2DToArrayAsync, _ptsz,
              (cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, size_t width,
               size_t height, cudaMemcpyKind kind, cudaStream_t stream),
              SHOAL_TO_ARRAY(SHOAL_QUEUED()), SHOAL_TO_ARRAY(SHOAL_QUEUED(_ptsz)))

#define SHOAL_FROM_ARRAY(queue) \
  copy(memoryEnd(dst, dpitch), arrayEnd(const_cast<cudaArray_t>(src), wOffset, hOffset), width, height, 1, kind, queue)
SHOAL_RT_TWIN(cudaMemcpy2DFromArray, _ptds,
              (void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
               size_t height, cudaMemcpyKind kind),
              SHOAL_FROM_ARRAY(SHOAL_NOW()), SHOAL_FROM_ARRAY(SHOAL_NOW(_ptds)))
SHOAL_RT_TWIN(cudaMemcpy2DFromArrayAsync, _ptsz,
              (void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
               size_t height, cudaMemcpyKind kind, cudaStream_t stream),
              SHOAL_FROM_ARRAY(SHOAL_QUEUED()), SHOAL_FROM_ARRAY(SHOAL_QUEUED(_ptsz)))

SHOAL_RT_TWIN(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms* p), copy3D(p, SHOAL_NOW()), copy3D(p, SHOAL_NOW(_ptds)))
SHOAL_RT_TWIN(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms* p, cudaStream_t stream), copy3D(p, SHOAL_QUEUED()),
              copy3D(p, SHOAL_QUEUED(_ptsz)))

#define SHOAL_FILL(call) fill3D(pitchedDevPtr, extent, [&](CUdeviceptr at) { return call; })
#define SHOAL_BYTE static_cast<unsigned char>(value)
SHOAL_RT_TWIN(cudaMemset3D, _ptds, (cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent),
              SHOAL_FILL(cuMemsetD2D8_v2(at, pitchedDevPtr.pitch, SHOAL_BYTE, extent.width, extent.height)),
              SHOAL_FILL(cuMemsetD2D8_v2_ptds(at, pitchedDevPtr.pitch, SHOAL_BYTE, extent.width, extent.height)))
SHOAL_RT_TWIN(cudaMemset3DAsync, _ptsz,
              (cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent, cudaStream_t stream),
              SHOAL_FILL(cuMemsetD2D8Async(at, pitchedDevPtr.pitch, SHOAL_BYTE, extent.width, extent.height, stream)),
              SHOAL_FILL(cuMemsetD2D8Async_ptsz(at, pitchedDevPtr.pitch, SHOAL_BYTE, extent.width, extent.height,
                                                stream)))
