// The copy functions. Each range is checked at the call. A copy keeps its memory alive until it has completed.
#include "copy.h"
#include "core/entry.h"
#include "graph/capture.h"
#include "graph/copywork.h"

using namespace shoal;

namespace {

enum class Side { device, any };

CUresult check(Side side, Context& context, Access access, uint64_t address, size_t length, MemoryRange& range) {
  const Use use{context, access, true};
  return side == Side::device ? checkKnownRange(use, address, length, range) : checkRange(use, address, length, range);
}

// A call that waits or uses the default stream may be forbidden during a capture.
CUresult checkCapture(const std::shared_ptr<Stream>& stream, bool isAsynchronous) {
  if (const CUresult status = checkImplicit(stream)) return status;
  return isAsynchronous ? CUDA_SUCCESS : checkUnsafeCall();
}

// An H200 refuses memory of a host pool if the call names device memory.
bool isRefusedHostPool(Side side, const MemoryRange& range) {
  return side == Side::device && range.isHost() && range.allocation->kind == MemoryKind::pooled;
}

CUresult copy(Side toSide, uint64_t to, Side fromSide, uint64_t from, size_t bytes, CUstream handle, bool perThread,
              bool isAsynchronous, PeerContexts users = {}) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (const CUresult status = checkCapture(stream, isAsynchronous)) return status;
    if (bytes == 0) return CUDA_SUCCESS;
    if (stream->isCaptured) {
      CUDA_MEMCPY3D described{};
      described.srcMemoryType = described.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
      described.srcDevice = from;
      described.dstDevice = to;
      described.WidthInBytes = bytes;
      described.Height = described.Depth = 1;
      return captureWork(stream, std::make_shared<CopyWork>(described, context, users));
    }
    Copy wanted;
    wanted.width = bytes;
    wanted.toUser = users.to;
    wanted.fromUser = users.from;
    if (const CUresult status =
            check(toSide, users.to ? *users.to : *context, Access::write, to, bytes, wanted.to.range))
      return status;
    if (const CUresult status =
            check(fromSide, users.from ? *users.from : *context, Access::read, from, bytes, wanted.from.range))
      return status;
    if (isRefusedHostPool(toSide, wanted.to.range) || isRefusedHostPool(fromSide, wanted.from.range))
      return CUDA_ERROR_INVALID_VALUE;
    wanted.from.pitch = wanted.to.pitch = bytes;
    return queueCopy(stream, wanted, isAsynchronous);
  });
}

uint64_t addressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// Each side uses the access rights of its own context.
template <class Body>
CUresult withPeers(CUcontext toContext, CUcontext fromContext, bool isAsynchronous, Body&& body) {
  return inContext([&](auto& current) -> CUresult {
    const auto find = [&](CUcontext context) { return context == nullptr ? current : state().contexts.find(context); };
    const PeerContexts users{find(toContext), find(fromContext)};
    for (const auto& found : {users.to, users.from}) {
      if (!found) return CUDA_ERROR_INVALID_CONTEXT;
      if (const CUresult status = found->status()) return status;
      // Without a stream, the copy is ordered after the work of both contexts.
      if (!isAsynchronous) {
        if (const CUresult status = found->defaultStream()->synchronize()) return status;
      }
    }
    return body(users);
  });
}

CUresult copyPeer(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext, size_t bytes,
                  CUstream handle, bool perThread, bool isAsynchronous) {
  return withPeers(toContext, fromContext, isAsynchronous, [&](const PeerContexts& users) {
    return copy(Side::device, to, Side::device, from, bytes, handle, perThread, isAsynchronous, users);
  });
}

// One side of a multi-dimensional copy: its memory, and the distances between its rows and slices.
struct Side3D {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z, pitch, height;
};

bool isWithin(size_t start, size_t length, size_t size) { return start <= size && length <= size - start; }

CUresult checkArray(const Side3D& side, const Copy& wanted, CopyRows& rows) {
  auto found = arrays().find(side.array);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  const size_t texel = found->format.bytes();
  if (!found->hasTexels() || side.x % texel != 0 || wanted.width % texel != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!isWithin(side.x, wanted.width, found->usedBytes()) || !isWithin(side.y, wanted.height, found->height) ||
      !isWithin(side.z, wanted.depth, found->depth))
    return CUDA_ERROR_INVALID_VALUE;
  rows.pitch = found->rowBytes;
  rows.slice = found->sliceBytes;
  if (found->data != nullptr) {
    rows.range.data = found->data + side.z * rows.slice + side.y * rows.pitch + side.x;
  } else {
    rows.tiled = found;
    rows.x = side.x;
    rows.y = side.y;
    rows.z = side.z;
  }
  rows.range.array = std::move(found);
  return CUDA_SUCCESS;
}

CUresult checkRows(Context& context, Access access, const Side3D& side, const Copy& wanted, CopyRows& rows) {
  if (side.type == CU_MEMORYTYPE_ARRAY) return checkArray(side, wanted, rows);
  if (side.type != CU_MEMORYTYPE_HOST && side.type != CU_MEMORYTYPE_DEVICE && side.type != CU_MEMORYTYPE_UNIFIED)
    return CUDA_ERROR_INVALID_VALUE;
  if (side.pitch > kMaxPitch) return CUDA_ERROR_INVALID_VALUE;
  const size_t pitch = side.pitch == 0 ? side.x + wanted.width : side.pitch;  // 0: rows without gaps
  const size_t height = side.height == 0 ? side.y + wanted.height : side.height;
  if (side.x > pitch || wanted.width > pitch - side.x) return CUDA_ERROR_INVALID_VALUE;
  if (wanted.depth > 1 && (side.y > height || wanted.height > height - side.y)) return CUDA_ERROR_INVALID_VALUE;
  size_t slice = 0, start = 0, rowStart = 0, length = 0, rowLength = 0;
  if (__builtin_mul_overflow(pitch, height, &slice)) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(side.z, slice, &start) || __builtin_mul_overflow(side.y, pitch, &rowStart))
    return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_add_overflow(start, rowStart, &start) || __builtin_add_overflow(start, side.x, &start))
    return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(wanted.depth - 1, slice, &length) ||
      __builtin_mul_overflow(wanted.height - 1, pitch, &rowLength))
    return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_add_overflow(length, rowLength, &length) || __builtin_add_overflow(length, wanted.width, &length))
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = side.type == CU_MEMORYTYPE_HOST ? addressOf(side.host) : side.device;
  if (base == 0 || __builtin_add_overflow(base, start, &base)) return CUDA_ERROR_INVALID_VALUE;
  rows.pitch = pitch;
  rows.slice = slice;
  return check(side.type == CU_MEMORYTYPE_DEVICE ? Side::device : Side::any, context, access, base, length, rows.range);
}

CUresult describeCopy(Context& context, const PeerContexts& users, const CUDA_MEMCPY3D& c, Copy& wanted) {
  wanted.width = c.WidthInBytes;
  wanted.height = c.Height;
  wanted.depth = c.Depth;
  wanted.toUser = users.to;
  wanted.fromUser = users.from;
  if (c.srcLOD != 0 || c.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  const Side3D from{c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes,
                    c.srcY,          c.srcZ,    c.srcPitch,  c.srcHeight};
  const Side3D to{c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes,
                  c.dstY,          c.dstZ,    c.dstPitch,  c.dstHeight};
  if (const CUresult status = checkRows(users.from ? *users.from : context, Access::read, from, wanted, wanted.from))
    return status;
  return checkRows(users.to ? *users.to : context, Access::write, to, wanted, wanted.to);
}

CUresult copy3D(const CUDA_MEMCPY3D* c, CUstream handle, bool perThread, bool isAsynchronous, PeerContexts users = {}) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkCapture(stream, isAsynchronous)) return status;
    if (c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0) return CUDA_SUCCESS;
    if (stream->isCaptured) return captureWork(stream, std::make_shared<CopyWork>(*c, context, users));
    Copy wanted;
    if (const CUresult status = describeCopy(*context, users, *c, wanted)) return status;
    return queueCopy(stream, wanted, isAsynchronous);
  });
}

CUresult copy3DPeer(const CUDA_MEMCPY3D_PEER* c, CUstream handle, bool perThread, bool isAsynchronous) {
  return withPeers(c == nullptr ? nullptr : c->dstContext, c == nullptr ? nullptr : c->srcContext, isAsynchronous,
                   [&](const PeerContexts& users) -> CUresult {
                     if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
                     CUDA_MEMCPY3D described{
                         c->srcXInBytes,   c->srcY,        c->srcZ,         c->srcLOD,   c->srcMemoryType,
                         c->srcHost,       c->srcDevice,   c->srcArray,     nullptr,     c->srcPitch,
                         c->srcHeight,     c->dstXInBytes, c->dstY,         c->dstZ,     c->dstLOD,
                         c->dstMemoryType, c->dstHost,     c->dstDevice,    c->dstArray, nullptr,
                         c->dstPitch,      c->dstHeight,   c->WidthInBytes, c->Height,   c->Depth};
                     return copy3D(&described, handle, perThread, isAsynchronous, users);
                   });
}

CUresult copy2D(const CUDA_MEMCPY2D* c, CUstream handle, bool perThread, bool isAsynchronous) {
  if (c == nullptr) return copy3D(nullptr, handle, perThread, isAsynchronous);
  CUDA_MEMCPY3D described{};
  described.srcXInBytes = c->srcXInBytes;
  described.srcY = c->srcY;
  described.srcMemoryType = c->srcMemoryType;
  described.srcHost = c->srcHost;
  described.srcDevice = c->srcDevice;
  described.srcArray = c->srcArray;
  described.srcPitch = c->srcPitch;
  described.dstXInBytes = c->dstXInBytes;
  described.dstY = c->dstY;
  described.dstMemoryType = c->dstMemoryType;
  described.dstHost = c->dstHost;
  described.dstDevice = c->dstDevice;
  described.dstArray = c->dstArray;
  described.dstPitch = c->dstPitch;
  described.WidthInBytes = c->WidthInBytes;
  described.Height = c->Height;
  described.Depth = 1;
  return copy3D(&described, handle, perThread, isAsynchronous);
}

// One end of a one-row copy, which may be in an array.
struct End {
  CUarray array = nullptr;
  size_t offset = 0;
  CUdeviceptr device = 0;
  const void* host = nullptr;
};

CUresult copyRow(const End& to, const End& from, size_t bytes, CUstream handle, bool perThread, bool isAsynchronous) {
  const auto typeOf = [](const End& end) {
    return end.array != nullptr ? CU_MEMORYTYPE_ARRAY : end.host != nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  };
  CUDA_MEMCPY3D described{};
  described.srcMemoryType = typeOf(from);
  described.srcArray = from.array;
  described.srcXInBytes = from.offset;
  described.srcDevice = from.device;
  described.srcHost = from.host;
  described.dstMemoryType = typeOf(to);
  described.dstArray = to.array;
  described.dstXInBytes = to.offset;
  described.dstDevice = to.device;
  described.dstHost = const_cast<void*>(to.host);
  described.WidthInBytes = bytes;
  described.Height = described.Depth = 1;
  return copy3D(&described, handle, perThread, isAsynchronous);
}

// The copies of a batch may run in any order. Here they run one after the other.
CUresult copyBatch(const CUdeviceptr* targets, const CUdeviceptr* sources, const size_t* sizes, size_t count,
                   const CUmemcpyAttributes* attributes, const size_t* attributeIndices, size_t attributeCount,
                   CUstream handle, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if (count == 0 || targets == nullptr || sources == nullptr || sizes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (attributes == nullptr || attributeIndices == nullptr || attributeCount == 0 || attributeCount > count)
      return CUDA_ERROR_INVALID_VALUE;
    if (stream->kind == StreamKind::legacyDefault) return CUDA_ERROR_INVALID_VALUE;
    size_t last = 0;
    for (size_t index = 0; index < attributeCount; ++index) {
      const bool isAscending = index == 0 ? attributeIndices[0] == 0 : attributeIndices[index] > last;
      const int order = attributes[index].srcAccessOrder;
      if (!isAscending || attributeIndices[index] >= count || order < 1 || order > 3) return CUDA_ERROR_INVALID_VALUE;
      last = attributeIndices[index];
    }
    for (size_t index = 0; index < count; ++index) {
      if (sizes[index] == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t index = 0; index < count; ++index) {
      const CUresult status =
          copy(Side::any, targets[index], Side::any, sources[index], sizes[index], handle, perThread, true);
      if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
  });
}

// One end of a batch copy. Its sizes count elements.
CUresult describeOperand(const CUmemcpy3DOperand& given, const CUextent3D& extent, size_t element, Side3D& side) {
  if (given.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    side.type = CU_MEMORYTYPE_ARRAY;
    side.array = given.op.array.array;
    side.y = given.op.array.offset.y;
    side.z = given.op.array.offset.z;
    return __builtin_mul_overflow(given.op.array.offset.x, element, &side.x) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  const auto& pointer = given.op.ptr;
  if (pointer.rowLength != 0 && pointer.rowLength < extent.width) return CUDA_ERROR_INVALID_VALUE;
  if (pointer.layerHeight != 0 && pointer.layerHeight < extent.height) return CUDA_ERROR_INVALID_VALUE;
  side.type = CU_MEMORYTYPE_UNIFIED;
  side.device = pointer.ptr;
  side.height = pointer.layerHeight;
  return __builtin_mul_overflow(pointer.rowLength, element, &side.pitch) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult describeBatched(const CUDA_MEMCPY3D_BATCH_OP& given, CUDA_MEMCPY3D& described) {
  const auto& extent = given.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (given.srcAccessOrder < 1 || given.srcAccessOrder > 3 || given.flags > 1) return CUDA_ERROR_INVALID_VALUE;
  size_t element = 0;
  for (const auto* end : {&given.src, &given.dst}) {
    if (end->type == CU_MEMCPY_OPERAND_TYPE_POINTER) continue;
    if (end->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    const auto found = arrays().find(end->op.array.array);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    if (element != 0 && element != found->format.bytes()) return CUDA_ERROR_INVALID_VALUE;
    element = found->format.bytes();
  }
  if (element == 0) element = 1;
  Side3D from{}, to{};
  if (const CUresult status = describeOperand(given.src, extent, element, from)) return status;
  if (const CUresult status = describeOperand(given.dst, extent, element, to)) return status;
  described = {from.x,     from.y,  from.z,        0,           from.type, nullptr, from.device,
               from.array, nullptr, from.pitch,    from.height, to.x,      to.y,    to.z,
               0,          to.type, nullptr,       to.device,   to.array,  nullptr, to.pitch,
               to.height,  0,       extent.height, extent.depth};
  return __builtin_mul_overflow(extent.width, element, &described.WidthInBytes) ? CUDA_ERROR_INVALID_VALUE
                                                                                : CUDA_SUCCESS;
}

// As above. All descriptions are checked before anything is copied.
CUresult copyBatch3D(const CUDA_MEMCPY3D_BATCH_OP* list, size_t count, unsigned long long flags, CUstream handle,
                     bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if (count == 0 || list == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream->kind == StreamKind::legacyDefault) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUDA_MEMCPY3D> described(count);
    for (size_t index = 0; index < count; ++index) {
      if (const CUresult status = describeBatched(list[index], described[index])) return status;
    }
    for (const auto& one : described) {
      if (const CUresult status = copy3D(&one, handle, perThread, true)) return status;
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult CopyWork::prepare(const std::shared_ptr<Stream>&, Operation& operation) const {
  if (parameters.WidthInBytes == 0 || parameters.Height == 0 || parameters.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  auto copy = std::make_shared<Copy>();
  if (const CUresult status = describeCopy(*owner_, users_, parameters, *copy)) return status;
  operation = operationOf(std::move(copy));
  return CUDA_SUCCESS;
}

SHOAL_TWIN(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
           copy(Side::any, dst, Side::any, src, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream),
           copy(Side::any, dst, Side::any, src, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyPeer, _ptds,
           (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount),
           copyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyPeerAsync, _ptsz,
           (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
            CUstream hStream),
           copyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount),
           copy(Side::device, dstDevice, Side::any, addressOf(srcHost), ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyDtoH_v2, _ptds, (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount),
           copy(Side::any, addressOf(dstHost), Side::device, srcDevice, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
           copy(Side::device, dstDevice, Side::device, srcDevice, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyHtoDAsync_v2, _ptsz,
           (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount, CUstream hStream),
           copy(Side::device, dstDevice, Side::any, addressOf(srcHost), ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyDtoHAsync_v2, _ptsz, (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
           copy(Side::any, addressOf(dstHost), Side::device, srcDevice, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyDtoDAsync_v2, _ptsz,
           (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
           copy(Side::device, dstDevice, Side::device, srcDevice, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* pCopy), copy2D(pCopy, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* pCopy), copy2D(pCopy, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* pCopy, CUstream hStream),
           copy2D(pCopy, hStream, perThread, true))
SHOAL_TWIN(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* pCopy), copy3D(pCopy, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* pCopy, CUstream hStream),
           copy3D(pCopy, hStream, perThread, true))
SHOAL_TWIN(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* pCopy), copy3DPeer(pCopy, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream),
           copy3DPeer(pCopy, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyBatchAsync_v2, _ptsz,
           (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attrs,
            size_t* attrsIdxs, size_t numAttrs, CUstream hStream),
           copyBatch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream, perThread))
SHOAL_TWIN(cuMemcpyBatchAsync, _ptsz,
           (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attrs,
            size_t* attrsIdxs, size_t numAttrs, size_t* failIdx, CUstream hStream),
           ((void)failIdx, copyBatch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream, perThread)))
SHOAL_TWIN(cuMemcpy3DBatchAsync_v2, _ptsz,
           (size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, unsigned long long flags, CUstream hStream),
           copyBatch3D(opList, numOps, flags, hStream, perThread))
SHOAL_TWIN(cuMemcpy3DBatchAsync, _ptsz,
           (size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx, unsigned long long flags, CUstream hStream),
           ((void)failIdx, copyBatch3D(opList, numOps, flags, hStream, perThread)))
SHOAL_TWIN(cuMemcpyHtoA_v2, _ptds, (CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount),
           copyRow({dstArray, dstOffset}, {nullptr, 0, 0, srcHost}, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyAtoH_v2, _ptds, (void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount),
           copyRow({nullptr, 0, 0, dstHost}, {srcArray, srcOffset}, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyDtoA_v2, _ptds, (CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount),
           copyRow({dstArray, dstOffset}, {nullptr, 0, srcDevice}, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount),
           copyRow({nullptr, 0, dstDevice}, {srcArray, srcOffset}, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyAtoA_v2, _ptds,
           (CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount),
           copyRow({dstArray, dstOffset}, {srcArray, srcOffset}, ByteCount, nullptr, perThread, false))
SHOAL_TWIN(cuMemcpyHtoAAsync_v2, _ptsz,
           (CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount, CUstream hStream),
           copyRow({dstArray, dstOffset}, {nullptr, 0, 0, srcHost}, ByteCount, hStream, perThread, true))
SHOAL_TWIN(cuMemcpyAtoHAsync_v2, _ptsz,
           (void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream),
           copyRow({nullptr, 0, 0, dstHost}, {srcArray, srcOffset}, ByteCount, hStream, perThread, true))
