// Streams: creation, waiting, properties.
#include "core/stream.h"

#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "core/event.h"
#include "core/green.h"
#include "core/workers.h"
#include "graph/capture.h"
#include "graph/eventwork.h"
#include "ipc/sharedevent.h"

using namespace shoal;

namespace {

CUresult createStream(CUstream* created, unsigned flags, int priority) {
  return inContext([&](auto& context) {
    if (created == nullptr || (flags & ~CU_STREAM_NON_BLOCKING) != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto kind = (flags & CU_STREAM_NON_BLOCKING) != 0 ? StreamKind::nonBlocking : StreamKind::blocking;
    *created = Stream::create(context, kind, Stream::nearestPriority(priority), currentGreen())->handle();
    return CUDA_SUCCESS;
  });
}

// Real drivers allow this query inside a host function, for a created stream.
CUresult queryStream(CUstream handle, bool perThread) {
  return onStream<true>(handle, perThread, [](auto& stream, auto& context) -> CUresult {
    if (const CUresult status = refuseCaptured(stream)) return status;
    if (const CUresult status = checkImplicit(stream)) return status;
    if (const CUresult status = checkUnsafeCall()) return status;
    bool idle = stream->isIdle();
    if (stream->kind == StreamKind::legacyDefault) {
      for (auto& other : context->streams()) idle = idle && (!other->isBlocking() || other->isIdle());
    }
    return idle ? stream->context->status() : CUDA_ERROR_NOT_READY;
  });
}

CUresult waitForEvent(CUstream handle, CUevent eventHandle, unsigned flags, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if ((flags & ~CU_EVENT_WAIT_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags != 0 && !stream->isCaptured) return CUDA_ERROR_ILLEGAL_STATE;  // only valid in a capture
    std::shared_ptr<Event> event;
    if (const CUresult status = resolveEvent(eventHandle, event)) return status;
    if (const CUresult status = checkImplicit(stream)) return status;
    if (flags != 0) return captureWork(stream, std::make_shared<EventWaitWork>(event, eventHandle));
    bool isCaptured = false;
    const CUresult captured = waitCaptured(stream, *event, isCaptured);
    if (isCaptured) return captured;
    Operation wait;
    if (const CUresult status = prepareWait(event, stream, wait)) return status;
    if (wait.run) stream->enqueue(std::move(wait));
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult shoal::prepareWait(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream,
                            Operation& wait) {
  if (event->shared) {
    const uint64_t number = event->shared->last();
    if (event->shared->hasPassed(number)) return CUDA_SUCCESS;
    wait.run = [shared = event->shared, number, context = stream->context] {
      const Workers::Waiting waiting;
      shared->waitFor(number, [&] { return context->isEnding || context->error != CUDA_SUCCESS; });
      return CUDA_SUCCESS;
    };
    return CUDA_SUCCESS;
  }
  auto recording = event->last();
  if (!recording || recording->point.stream == stream) return CUDA_SUCCESS;
  if (recording->point.stream->hasFinished(recording->point.sequence)) return CUDA_SUCCESS;
  wait.run = [] { return CUDA_SUCCESS; };
  wait.after.push_back(recording->point);
  return CUDA_SUCCESS;
}

namespace {

// Reads one property of a stream.
template <class Value, class Read>
CUresult readStream(CUstream handle, Value* out, bool perThread, Read&& read) {
  return onStream(handle, perThread, [&](auto& stream, auto&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = read(*stream);
    return CUDA_SUCCESS;
  });
}

CUresult contextOf(CUstream handle, CUcontext* context, CUgreenCtx* green, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = stream->context->handle();
    const auto own = isDefaultStream(handle) ? currentGreen() : stream->green;
    if (green != nullptr) *green = own ? own->handle() : nullptr;
    else if (own) *context = own->context();
    return CUDA_SUCCESS;
  });
}

unsigned flagsOf(const Stream& stream) {
  return stream.kind == StreamKind::nonBlocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
}

}  // namespace

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) { return createStream(phStream, Flags, 0); }
CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return createStream(phStream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  return initialised([&]() -> CUresult {
    auto stream = state().streams.take(reinterpret_cast<uint64_t>(hStream));
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    abandonCapture(*stream);
    stream->isDestroyed = true;
    stream->close();  // queued work still runs
    return stream->contextDestroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : stream->context->status();
  });
}
CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

SHOAL_TWIN(cuStreamSynchronize, _ptsz, (CUstream hStream),
           onStream(hStream, perThread, [](auto& stream, auto&) -> CUresult {
             if (const CUresult status = refuseCaptured(stream)) return status;
             if (const CUresult status = checkImplicit(stream)) return status;
             if (const CUresult status = checkUnsafeCall()) return status;
             return stream->synchronize();
           }))
SHOAL_TWIN(cuStreamQuery, _ptsz, (CUstream hStream), queryStream(hStream, perThread))
SHOAL_TWIN(cuStreamWaitEvent, _ptsz, (CUstream hStream, CUevent hEvent, unsigned int Flags),
           waitForEvent(hStream, hEvent, Flags, perThread))
SHOAL_TWIN(cuStreamGetFlags, _ptsz, (CUstream hStream, unsigned int* flags),
           readStream(hStream, flags, perThread, [](auto& stream) { return flagsOf(stream); }))
SHOAL_TWIN(cuStreamGetPriority, _ptsz, (CUstream hStream, int* priority),
           readStream(hStream, priority, perThread, [](auto& stream) { return stream.priority.load(); }))
SHOAL_TWIN(cuStreamGetId, _ptsz, (CUstream hStream, unsigned long long* streamId),
           readStream(hStream, streamId, perThread, [](auto& stream) { return stream.id; }))
SHOAL_TWIN(cuStreamGetCtx, _ptsz, (CUstream hStream, CUcontext* pctx), contextOf(hStream, pctx, nullptr, perThread))
SHOAL_TWIN(cuStreamGetCtx_v2, _ptsz, (CUstream hStream, CUcontext* pctx, CUgreenCtx* pGreenCtx),
           contextOf(hStream, pctx, pGreenCtx, perThread))
SHOAL_TWIN(cuStreamGetDevice, _ptsz, (CUstream hStream, CUdevice* device),
           readStream(hStream, device, perThread, [](auto& stream) { return stream.context->device.ordinal; }))
