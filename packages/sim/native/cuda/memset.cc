// Fills with values of 8, 16 or 32 bits, in one and two dimensions.
#include <algorithm>
#include <cstring>

#include "core/allocation.h"
#include "core/context.h"
#include "core/entry.h"
#include "core/stream.h"
#include "graph/capture.h"
#include "graph/fillwork.h"

using namespace shoal;

namespace {

template <class Value>
void fillRow(char* at, Value value, size_t count) {
  if (sizeof value == 1) memset(at, static_cast<int>(value), count);
  else std::fill_n(reinterpret_cast<Value*>(at), count, value);
}

template <class Value>
CUresult prepareFill(Context& context, CUdeviceptr to, size_t pitch, Value value, size_t width, size_t height,
                     Operation& operation, bool& toHost) {
  size_t rowBytes = 0, length = 0;
  if (to % sizeof(Value) != 0 || __builtin_mul_overflow(width, sizeof(Value), &rowBytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (height == 1) pitch = rowBytes;
  if (pitch < rowBytes || pitch % sizeof(Value) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(height - 1, pitch, &length) || __builtin_add_overflow(length, rowBytes, &length)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  MemoryRange range;
  if (const CUresult status = checkKnownRange({context, Access::write}, to, length, range)) return status;
  toHost = range.isHost();
  operation.run = [range = std::move(range), pitch, value, width, height] {
    Held held;
    CUresult result = held.add(range);
    for (size_t row = 0; row < height && result == CUDA_SUCCESS; ++row) {
      fillRow(range.data + row * pitch, value, width);
      result = held.wrote(range, row * pitch, width * sizeof value);
    }
    return result;
  };
  return CUDA_SUCCESS;
}

template <class Value>
CUresult fill(CUdeviceptr to, size_t pitch, Value value, size_t width, size_t height, CUstream handle, bool perThread,
              bool isAsynchronous) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (const CUresult status = checkImplicit(stream)) return status;
    if (!isAsynchronous) {
      if (const CUresult status = checkUnsafeCall()) return status;
    }
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    if (stream->isCaptured)
      return captureWork(stream, std::make_shared<FillWork>(
                                     CUDA_MEMSET_NODE_PARAMS{to, pitch, value, sizeof value, width, height}, context));
    bool toHost = false;
    Operation operation;
    if (const CUresult status = prepareFill(*context, to, pitch, value, width, height, operation, toHost))
      return status;
    // Without a stream, only a fill of host memory waits for its completion.
    if (!isAsynchronous && toHost) return stream->runAndWait(std::move(operation));
    if (!isAsynchronous) {
      uint64_t sequence = 0;
      return stream->runOrEnqueue(std::move(operation), sequence);
    }
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult FillWork::prepare(const std::shared_ptr<Stream>&, Operation& operation) const {
  bool toHost = false;
  const auto& [to, pitch, value, elementSize, width, height] = parameters;
  if (width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  switch (elementSize) {
    case 1:
      return value > 0xff
                 ? CUDA_ERROR_INVALID_VALUE
                 : prepareFill(*owner_, to, pitch, static_cast<uint8_t>(value), width, height, operation, toHost);
    case 2:
      return value > 0xffff
                 ? CUDA_ERROR_INVALID_VALUE
                 : prepareFill(*owner_, to, pitch, static_cast<uint16_t>(value), width, height, operation, toHost);
    case 4: return prepareFill(*owner_, to, pitch, value, width, height, operation, toHost);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

SHOAL_TWIN(cuMemsetD8_v2, _ptds, (CUdeviceptr dstDevice, unsigned char uc, size_t N),
           fill(dstDevice, 0, uc, N, 1, nullptr, perThread, false))
SHOAL_TWIN(cuMemsetD16_v2, _ptds, (CUdeviceptr dstDevice, unsigned short us, size_t N),
           fill(dstDevice, 0, us, N, 1, nullptr, perThread, false))
SHOAL_TWIN(cuMemsetD32_v2, _ptds, (CUdeviceptr dstDevice, unsigned int ui, size_t N),
           fill(dstDevice, 0, ui, N, 1, nullptr, perThread, false))
SHOAL_TWIN(cuMemsetD2D8_v2, _ptds,
           (CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height),
           fill(dstDevice, dstPitch, uc, Width, Height, nullptr, perThread, false))
SHOAL_TWIN(cuMemsetD2D16_v2, _ptds,
           (CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height),
           fill(dstDevice, dstPitch, us, Width, Height, nullptr, perThread, false))
SHOAL_TWIN(cuMemsetD2D32_v2, _ptds,
           (CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height),
           fill(dstDevice, dstPitch, ui, Width, Height, nullptr, perThread, false))
SHOAL_TWIN(cuMemsetD8Async, _ptsz, (CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream),
           fill(dstDevice, 0, uc, N, 1, hStream, perThread, true))
SHOAL_TWIN(cuMemsetD16Async, _ptsz, (CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream),
           fill(dstDevice, 0, us, N, 1, hStream, perThread, true))
SHOAL_TWIN(cuMemsetD32Async, _ptsz, (CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream),
           fill(dstDevice, 0, ui, N, 1, hStream, perThread, true))
SHOAL_TWIN(cuMemsetD2D8Async, _ptsz,
           (CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height, CUstream hStream),
           fill(dstDevice, dstPitch, uc, Width, Height, hStream, perThread, true))
SHOAL_TWIN(cuMemsetD2D16Async, _ptsz,
           (CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height, CUstream hStream),
           fill(dstDevice, dstPitch, us, Width, Height, hStream, perThread, true))
SHOAL_TWIN(cuMemsetD2D32Async, _ptsz,
           (CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height, CUstream hStream),
           fill(dstDevice, dstPitch, ui, Width, Height, hStream, perThread, true))
