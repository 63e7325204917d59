// Copies. Every range is checked when the copy is asked for; a copy keeps its memory alive until it has ended.
#include <cstring>
#include <memory>

#include "core/allocation.h"
#include "core/context.h"
#include "core/entry.h"
#include "core/stream.h"

using namespace shoal;

namespace {

// Up to here an asynchronous copy from pageable memory is staged; a larger one returns when it is done.
constexpr size_t kLargestStaged = size_t{64} << 20;
constexpr size_t kMaxPitch = 2147483647;

struct Rows {
  MemoryRange range;
  size_t pitch = 0;
};

// `height` rows of `width` bytes; a plain copy is one row.
struct Copy {
  Rows from, to;
  size_t width = 0;
  size_t height = 1;
  std::shared_ptr<Context> toUser, fromUser;  // whose rights count, where that is not the stream's context

  CUresult run() const {
    Held held;
    if (const CUresult status = held.add(from.range)) return status;
    if (const CUresult status = held.add(to.range)) return status;
    if (height == 1 || (from.pitch == width && to.pitch == width)) {
      memmove(to.range.data, from.range.data, width * height);
      return held.wrote(to.range, 0, width * height);
    }
    CUresult result = CUDA_SUCCESS;
    for (size_t row = 0; row < height && result == CUDA_SUCCESS; ++row) {
      memmove(to.range.data + row * to.pitch, from.range.data + row * from.pitch, width);
      result = held.wrote(to.range, row * to.pitch, width);
    }
    return result;
  }
};

Operation operationOf(std::shared_ptr<Copy> copy) {
  Operation operation;
  operation.run = [copy = std::move(copy)] { return copy->run(); };
  return operation;
}

// Takes the source's rows now, so that the caller may change them at once.
std::shared_ptr<char[]> stage(Copy& copy) {
  std::shared_ptr<char[]> staged(new char[copy.width * copy.height]);
  for (size_t row = 0; row < copy.height; ++row) {
    memcpy(staged.get() + row * copy.width, copy.from.range.data + row * copy.from.pitch, copy.width);
  }
  copy.from.range.data = staged.get();
  copy.from.pitch = copy.width;
  return staged;
}

CUresult queue(const std::shared_ptr<Stream>& stream, const Copy& described, bool isAsynchronous) {
  auto copy = std::make_shared<Copy>(described);
  const bool fromPageable = copy->from.range.isPageable();
  const bool toPageable = copy->to.range.isPageable();
  uint64_t sequence = 0;
  if (!isAsynchronous) {
    const bool onDevice = !fromPageable && !toPageable && !copy->from.range.isHost() && !copy->to.range.isHost();
    // Device to device, even the synchronous form does not wait.
    if (onDevice) return stream->runOrEnqueue(operationOf(std::move(copy)), sequence);
    return stream->runAndWait(operationOf(std::move(copy)));
  }
  if (toPageable) return stream->runAndWait(operationOf(std::move(copy)));
  if (!fromPageable) {
    stream->enqueue(operationOf(std::move(copy)));
    return CUDA_SUCCESS;
  }
  if (copy->width * copy->height > kLargestStaged) return stream->runAndWait(operationOf(std::move(copy)));
  auto staged = stage(*copy);
  Operation operation;
  operation.run = [copy = std::move(copy), staged = std::move(staged)] { return copy->run(); };
  stream->enqueue(std::move(operation));
  return CUDA_SUCCESS;
}

enum class Side { device, any };

CUresult check(Side side, Context& context, Access access, uint64_t address, size_t length, MemoryRange& range) {
  const Use use{context, access, true};
  return side == Side::device ? checkKnownRange(use, address, length, range) : checkRange(use, address, length, range);
}

struct PeerContexts {
  std::shared_ptr<Context> to, from;
};

CUresult copy(Side toSide, uint64_t to, Side fromSide, uint64_t from, size_t bytes, CUstream handle, bool perThread, bool isAsynchronous,
              PeerContexts users = {}) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (bytes == 0) return CUDA_SUCCESS;
    Copy wanted;
    wanted.width = bytes;
    wanted.toUser = users.to;
    wanted.fromUser = users.from;
    if (const CUresult status = check(toSide, users.to ? *users.to : *context, Access::write, to, bytes, wanted.to.range)) return status;
    if (const CUresult status = check(fromSide, users.from ? *users.from : *context, Access::read, from, bytes, wanted.from.range)) return status;
    wanted.from.pitch = wanted.to.pitch = bytes;
    return queue(stream, wanted, isAsynchronous);
  });
}

uint64_t addressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// Each side is reached with the rights of its own context.
CUresult copyPeer(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext, size_t bytes, CUstream handle, bool perThread,
                  bool isAsynchronous) {
  return inContext([&](auto& current) -> CUresult {
    const auto find = [&](CUcontext context) { return context == nullptr ? current : state().contexts.find(context); };
    const PeerContexts users{find(toContext), find(fromContext)};
    for (const auto& found : {users.to, users.from}) {
      if (!found) return CUDA_ERROR_INVALID_CONTEXT;
      if (const CUresult status = found->status()) return status;
      // The form without a stream is ordered against the work of both contexts.
      if (!isAsynchronous) {
        if (const CUresult status = found->defaultStream()->synchronize()) return status;
      }
    }
    return copy(Side::device, to, Side::device, from, bytes, handle, perThread, isAsynchronous, users);
  });
}

// One side of a two-dimensional copy: which address it starts at, and whether its rows are inside live memory.
CUresult checkRows(Context& context, Access access, CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y, size_t pitch, size_t width,
                   size_t height, Rows& rows) {
  if (type == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED) return CUDA_ERROR_INVALID_VALUE;
  if (pitch > kMaxPitch) return CUDA_ERROR_INVALID_VALUE;
  if (pitch == 0) pitch = x + width;  // rows without gaps
  if (x > pitch || width > pitch - x) return CUDA_ERROR_INVALID_VALUE;
  size_t start = 0, length = 0;
  if (__builtin_mul_overflow(y, pitch, &start) || __builtin_add_overflow(start, x, &start)) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(height - 1, pitch, &length) || __builtin_add_overflow(length, width, &length)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = type == CU_MEMORYTYPE_HOST ? addressOf(host) : device;
  if (base == 0 || __builtin_add_overflow(base, start, &base)) return CUDA_ERROR_INVALID_VALUE;
  rows.pitch = pitch;
  return check(type == CU_MEMORYTYPE_DEVICE ? Side::device : Side::any, context, access, base, length, rows.range);
}

CUresult copy2D(const CUDA_MEMCPY2D* c, CUstream handle, bool perThread, bool isAsynchronous) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (c->WidthInBytes == 0 || c->Height == 0) return CUDA_SUCCESS;
    Copy wanted;
    wanted.width = c->WidthInBytes;
    wanted.height = c->Height;
    if (const CUresult status = checkRows(*context, Access::read, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY,
                                          c->srcPitch, c->WidthInBytes, c->Height, wanted.from)) {
      return status;
    }
    if (const CUresult status = checkRows(*context, Access::write, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY,
                                          c->dstPitch, c->WidthInBytes, c->Height, wanted.to)) {
      return status;
    }
    return queue(stream, wanted, isAsynchronous);
  });
}

}  // namespace

SHOAL_TWIN(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
           copy(Side::any, dst, Side::any, src, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream),
           copy(Side::any, dst, Side::any, src, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyPeer, _ptds,
           (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount),
           copyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyPeerAsync, _ptsz,
           (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream),
           copyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount),
           copy(Side::device, dstDevice, Side::any, addressOf(srcHost), ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyDtoH_v2, _ptds, (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount),
           copy(Side::any, addressOf(dstHost), Side::device, srcDevice, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
           copy(Side::device, dstDevice, Side::device, srcDevice, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount, CUstream hStream),
           copy(Side::device, dstDevice, Side::any, addressOf(srcHost), ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyDtoHAsync_v2, _ptsz, (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
           copy(Side::any, addressOf(dstHost), Side::device, srcDevice, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
           copy(Side::device, dstDevice, Side::device, srcDevice, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* pCopy), copy2D(pCopy, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* pCopy), copy2D(pCopy, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* pCopy, CUstream hStream), copy2D(pCopy, hStream, perThread, true))
