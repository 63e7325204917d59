#include "transfer.h"

#include "fault.h"
#include "report.h"

namespace shoal::nvshmem {

namespace {

// The number of bytes from the start of the first to the end of the last element.
size_t spanOf(const Move& wanted, ptrdiff_t stride) {
  return wanted.elements == 0
             ? 0
             : (wanted.elements - 1) * static_cast<size_t>(stride) * wanted.elementBytes + wanted.elementBytes;
}

// The call may fail because of an injected fault that was queued earlier. Do not end the process then: the program gets
// the fault when it queries the stream, as if the fault had come after the copy.
void mustQueue(const Session& session, CUresult status, const char* function, cudaStream_t stream) {
  if (status != CUDA_SUCCESS && hasFaults() && cuStreamQuery(stream) == status) return;
  mustSucceed(session, status, function);
}

void queue(const Session& session, const Move& wanted, cudaStream_t stream) {
  if (wanted.destinationStride < 1 || wanted.sourceStride < 1) leave("%s: strides must be positive", wanted.function);
  const bool isPut = wanted.direction == Direction::put;
  void* destination = wanted.destination;
  const void* source = wanted.source;
  if (isPut)
    destination =
        peerAddress(session, wanted.function, wanted.destination, spanOf(wanted, wanted.destinationStride), wanted.pe);
  else source = peerAddress(session, wanted.function, wanted.source, spanOf(wanted, wanted.sourceStride), wanted.pe);
  if (wanted.elements == 0) return;
  const auto to = reinterpret_cast<CUdeviceptr>(destination), from = reinterpret_cast<CUdeviceptr>(source);
  if (wanted.destinationStride == 1 && wanted.sourceStride == 1) {
    return mustQueue(session, cuMemcpyAsync(to, from, wanted.elements * wanted.elementBytes, stream), wanted.function,
                     stream);
  }
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = from;
  copy.srcPitch = static_cast<size_t>(wanted.sourceStride) * wanted.elementBytes;
  copy.dstDevice = to;
  copy.dstPitch = static_cast<size_t>(wanted.destinationStride) * wanted.elementBytes;
  copy.WidthInBytes = wanted.elementBytes;
  copy.Height = wanted.elements;
  mustQueue(session, cuMemcpy2DAsync_v2(&copy, stream), wanted.function, stream);
}

}  // namespace

char* peerAddress(const Session& session, const char* function, const void* symmetric, size_t bytes, int pe) {
  if (pe < 0 || pe >= session.job->size)
    leave("%s: there is no PE %d, the job has %d", function, pe, session.job->size);
  const uint64_t offset = session.heap.offsetOf(symmetric, bytes);
  if (offset == kNoOffset) leave("%s: %p, %zu bytes, is not symmetric memory", function, symmetric, bytes);
  return session.heap.at(pe, offset);
}

char* elementAddress(const Session& session, const char* function, const void* symmetric, size_t bytes, int pe) {
  if (reinterpret_cast<uintptr_t>(symmetric) % bytes != 0)
    leave("%s: %p is not aligned to %zu bytes", function, symmetric, bytes);
  return peerAddress(session, function, symmetric, bytes, pe);
}

void move(const Move& wanted, bool isBlocking) {
  const auto session = require(wanted.function);
  InContext scope(*session);
  queue(*session, wanted, session->stream);
  if (isBlocking) mustSucceed(*session, cuStreamSynchronize(session->stream), wanted.function);
  if (wanted.direction == Direction::put) session->job->ring(wanted.pe);
}

void moveOnStream(const Move& wanted, cudaStream_t stream) {
  const auto session = require(wanted.function);
  if (hasFaults())
    mustSucceed(*session, enqueue(session, wanted.function, stream, [] { return CUDA_SUCCESS; }), wanted.function);
  InContext scope(*session);
  queue(*session, wanted, stream);
}

}  // namespace shoal::nvshmem
