// Linear and page-locked memory, copies, fills, and attributes of pointers.
#include <cstring>

#include "entry.h"

using namespace shoal::cudart;

static_assert(sizeof(cudaPointerAttributes) == 88);

namespace {

// The kind of memory behind a pointer, as the driver reports it.
enum class Kind { unregistered = 0, host = 1, device = 2, managed = 3 };

Kind kindOf(const void* pointer, int* device = nullptr) {
  unsigned type = 0, isManaged = 0;
  int ordinal = cudaInvalidDeviceId;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* data[] = {&type, &isManaged, &ordinal};
  if (cuPointerGetAttributes(3, wanted, data, address(pointer)) != CUDA_SUCCESS) return Kind::unregistered;
  if (device != nullptr) *device = ordinal;
  if (isManaged != 0) return Kind::managed;
  return type == CU_MEMORYTYPE_HOST ? Kind::host : type == CU_MEMORYTYPE_DEVICE ? Kind::device : Kind::unregistered;
}

bool isOnHost(Kind kind) { return kind == Kind::unregistered || kind == Kind::host; }

template <class ToDevice, class ToHost, class Between>
CUresult copy(void* dst, const void* src, size_t count, cudaMemcpyKind kind, ToDevice&& toDevice, ToHost&& toHost,
              Between&& between) {
  if (count == 0) return CUDA_SUCCESS;
  if (dst == nullptr || src == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = checkDirection(dst, src, kind)) return status;
  const bool fromHost = isOnHost(kindOf(src)), intoHost = isOnHost(kindOf(dst));
  if (fromHost && intoHost) {
    if (kindOf(src) == Kind::host || kindOf(dst) == Kind::host) return between();
    memmove(dst, src, count);
    return CUDA_SUCCESS;
  }
  if (fromHost) return toDevice();
  return intoHost ? toHost() : between();
}

}  // namespace

CUresult shoal::cudart::checkDirection(const void* dst, const void* src, cudaMemcpyKind kind) {
  constexpr CUresult wrong = static_cast<CUresult>(21);  // cudaErrorInvalidMemcpyDirection
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return wrong;
  if (kind == cudaMemcpyDefault) return CUDA_SUCCESS;
  const bool fromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool toDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool isContradicted = (fromDevice && kindOf(src) == Kind::unregistered) ||
                              (toDevice && kindOf(dst) == Kind::unregistered) ||
                              (!fromDevice && !isOnHost(kindOf(src)) && kindOf(src) != Kind::managed) ||
                              (!toDevice && !isOnHost(kindOf(dst)) && kindOf(dst) != Kind::managed);
  return isContradicted ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Unlike in the driver, a size of zero is not an error.
cudaError_t cudaMalloc(void** devPtr, size_t size) {
  return onDevice([&]() -> CUresult {
    if (devPtr == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *devPtr = nullptr;
    return size == 0 ? CUDA_SUCCESS : cuMemAlloc_v2(addressOut(devPtr), size);
  });
}

cudaError_t cudaMallocPitch(void** devPtr, size_t* pitch, size_t width, size_t height) {
  return onDevice([&] { return cuMemAllocPitch_v2(addressOut(devPtr), pitch, width, height, 4); });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitchedDevPtr, cudaExtent extent) {
  return onDevice([&]() -> CUresult {
    size_t rows = 0;
    if (pitchedDevPtr == nullptr || __builtin_mul_overflow(extent.height, extent.depth, &rows))
      return CUDA_ERROR_INVALID_VALUE;
    pitchedDevPtr->xsize = extent.width;
    pitchedDevPtr->ysize = extent.height;
    return cuMemAllocPitch_v2(addressOut(&pitchedDevPtr->ptr), &pitchedDevPtr->pitch, extent.width, rows, 4);
  });
}

cudaError_t cudaFree(void* devPtr) {
  return onDevice([&] { return cuMemFree_v2(address(devPtr)); });
}

SHOAL_RT_TWIN(cudaMallocAsync, _ptsz, (void** devPtr, size_t size, cudaStream_t stream),
              cuMemAllocAsync(addressOut(devPtr), size, stream), cuMemAllocAsync_ptsz(addressOut(devPtr), size, stream))
SHOAL_RT_TWIN(cudaFreeAsync, _ptsz, (void* devPtr, cudaStream_t stream), cuMemFreeAsync(address(devPtr), stream),
              cuMemFreeAsync_ptsz(address(devPtr), stream))

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  return onDevice([&] { return cuMemAllocHost_v2(ptr, size); });
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  return onDevice([&] { return cuMemHostAlloc(pHost, size, flags); });
}

cudaError_t cudaFreeHost(void* ptr) {
  return onDevice([&] { return cuMemFreeHost(ptr); });
}

cudaError_t cudaHostGetDevicePointer(void** pDevice, void* pHost, unsigned int flags) {
  return onDevice([&] { return cuMemHostGetDevicePointer_v2(addressOut(pDevice), pHost, flags); });
}

cudaError_t cudaHostGetFlags(unsigned int* pFlags, void* pHost) {
  return onDevice([&] { return cuMemHostGetFlags(pFlags, pHost); });
}

cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  return onDevice([&] { return cuMemHostRegister_v2(ptr, size, flags); });
}

cudaError_t cudaHostUnregister(void* ptr) {
  return onDevice([&] { return cuMemHostUnregister(ptr); });
}

// Memory that CUDA does not know is not an error here.
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* ptr) {
  return onDevice([&]() -> CUresult {
    if (attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memset(attributes, 0, sizeof *attributes);
    attributes->device = cudaInvalidDeviceId;
    const Kind kind = kindOf(ptr, &attributes->device);
    attributes->type = static_cast<int>(kind);
    if (kind != Kind::unregistered) attributes->devicePointer = const_cast<void*>(ptr);
    if (kind != Kind::device) attributes->hostPointer = const_cast<void*>(ptr);
    return CUDA_SUCCESS;
  });
}

#define SHOAL_COPY(suffix)                                                                      \
  copy(                                                                                         \
      dst, src, count, kind, [&] { return cuMemcpyHtoD_v2##suffix(address(dst), src, count); }, \
      [&] { return cuMemcpyDtoH_v2##suffix(dst, address(src), count); },                        \
      [&] { return cuMemcpy##suffix(address(dst), address(src), count); })
#define SHOAL_COPY_ASYNC(suffix)                                                                             \
  copy(                                                                                                      \
      dst, src, count, kind, [&] { return cuMemcpyHtoDAsync_v2##suffix(address(dst), src, count, stream); }, \
      [&] { return cuMemcpyDtoHAsync_v2##suffix(dst, address(src), count, stream); },                        \
      [&] { return cuMemcpyAsync##suffix(address(dst), address(src), count, stream); })

SHOAL_RT_TWIN(cudaMemcpy, _ptds, (void* dst, const void* src, size_t count, cudaMemcpyKind kind), SHOAL_COPY(),
              SHOAL_COPY(_ptds))
SHOAL_RT_TWIN(cudaMemcpyAsync, _ptsz,
              (void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream), SHOAL_COPY_ASYNC(),
              SHOAL_COPY_ASYNC(_ptsz))

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  return onDevice([&]() -> CUresult {
    CUcontext to = nullptr, from = nullptr;
    if (const CUresult status = primaryContext(dstDevice, to)) return status;
    if (const CUresult status = primaryContext(srcDevice, from)) return status;
    return cuMemcpyPeer(address(dst), to, address(src), from, count);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                cudaStream_t stream) {
  return onDevice([&]() -> CUresult {
    CUcontext to = nullptr, from = nullptr;
    if (const CUresult status = primaryContext(dstDevice, to)) return status;
    if (const CUresult status = primaryContext(srcDevice, from)) return status;
    return cuMemcpyPeerAsync(address(dst), to, address(src), from, count, stream);
  });
}

#define SHOAL_BYTE static_cast<unsigned char>(value)
SHOAL_RT_TWIN(cudaMemset, _ptds, (void* devPtr, int value, size_t count),
              cuMemsetD8_v2(address(devPtr), SHOAL_BYTE, count), cuMemsetD8_v2_ptds(address(devPtr), SHOAL_BYTE, count))
SHOAL_RT_TWIN(cudaMemsetAsync, _ptsz, (void* devPtr, int value, size_t count, cudaStream_t stream),
              cuMemsetD8Async(address(devPtr), SHOAL_BYTE, count, stream),
              cuMemsetD8Async_ptsz(address(devPtr), SHOAL_BYTE, count, stream))
SHOAL_RT_TWIN(cudaMemset2D, _ptds, (void* devPtr, size_t pitch, int value, size_t width, size_t height),
              cuMemsetD2D8_v2(address(devPtr), pitch, SHOAL_BYTE, width, height),
              cuMemsetD2D8_v2_ptds(address(devPtr), pitch, SHOAL_BYTE, width, height))
SHOAL_RT_TWIN(cudaMemset2DAsync, _ptsz,
              (void* devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
              cuMemsetD2D8Async(address(devPtr), pitch, SHOAL_BYTE, width, height, stream),
              cuMemsetD2D8Async_ptsz(address(devPtr), pitch, SHOAL_BYTE, width, height, stream))

// The only function that returns a structure, and therefore no status.
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
