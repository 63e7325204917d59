// Events: recording, waiting, elapsed time.
#include "core/event.h"

#include <time.h>

#include "core/context.h"
#include "core/entry.h"
#include "core/stream.h"
#include "graph/capture.h"
#include "graph/eventwork.h"
#include "ipc/sharedevent.h"
#include "pool/pool.h"

using namespace shoal;

namespace {

uint64_t nanosecondsNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

CUresult shoal::prepareRecord(const std::shared_ptr<Event>& event, Operation& stamp) {
  auto recording = std::make_shared<Recording>();
  stamp.run = [recording] {
    recording->nanoseconds = nanosecondsNow();
    return CUDA_SUCCESS;
  };
  if (event->shared) {
    stamp.run = [shared = event->shared, number = event->shared->record()] {
      shared->pass(number);
      return CUDA_SUCCESS;
    };
  }
  stamp.runsAfterErrors = true;
  stamp.queued = [event, recording](const std::shared_ptr<Stream>& stream, uint64_t sequence) {
    recording->point = {stream, sequence};
    event->set(recording);
  };
  return CUDA_SUCCESS;
}

namespace {

// Real drivers allow recording inside a host function on a created stream, as they allow a query.
CUresult record(CUevent eventHandle, CUstream streamHandle, unsigned flags, bool perThread) {
  return onStream<true>(streamHandle, perThread, [&](auto& stream, auto&) -> CUresult {
    if ((flags & ~CU_EVENT_RECORD_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags != 0 && !stream->isCaptured) return CUDA_ERROR_ILLEGAL_STATE;  // only valid in a capture
    std::shared_ptr<Event> event;
    if (const CUresult status = resolveEvent(eventHandle, event)) return status;
    if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->isCaptured)
      return flags != 0 ? captureWork(stream, std::make_shared<EventRecordWork>(event, eventHandle))
                        : recordCaptured(stream, *event);
    Operation stamp;
    prepareRecord(event, stamp);
    auto queued = std::move(stamp.queued);
    uint64_t sequence = 0;
    const CUresult status = stream->runOrEnqueue(std::move(stamp), sequence);
    queued(stream, sequence);
    return status;
  });
}

CUresult elapsed(float* milliseconds, CUevent startHandle, CUevent endHandle) {
  return initialised([&]() -> CUresult {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_HANDLE;  // the real driver returns this code
    std::shared_ptr<Event> start, end;
    if (const CUresult status = resolveEvent(startHandle, start)) return status;
    if (const CUresult status = resolveEvent(endHandle, end)) return status;
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    if (start->context != end->context) return CUDA_ERROR_INVALID_HANDLE;
    auto first = start->last(), second = end->last();
    if (!first || !second) return CUDA_ERROR_INVALID_HANDLE;
    for (auto& recorded : {start, end}) {
      if (const CUresult status = checkCapturedEvent(*recorded)) return status;
    }
    for (auto& recording : {first, second}) {
      if (!recording->point.stream->hasFinished(recording->point.sequence)) return CUDA_ERROR_NOT_READY;
    }
    const double nanoseconds = static_cast<double>(static_cast<int64_t>(second->nanoseconds - first->nanoseconds));
    *milliseconds = static_cast<float>(nanoseconds / 1e6);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult shoal::resolveEvent(CUevent handle, std::shared_ptr<Event>& event) {
  event = state().events.find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (event->contextDestroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return event->context->status();
}

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  return inContext([&](auto& context) {
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (phEvent == nullptr || (Flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    const bool isShared = (Flags & CU_EVENT_INTERPROCESS) != 0;
    if (isShared && (Flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>(context, Flags);
    if (isShared) event->shared = SharedEvent::create();
    const uint64_t handle = state().events.reserve();
    state().events.put(handle, std::move(event));
    *phEvent = reinterpret_cast<CUevent>(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  return initialised([&]() -> CUresult {
    auto event = state().events.take(reinterpret_cast<uint64_t>(hEvent));
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    return event->contextDestroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : event->context->status();
  });
}
CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

SHOAL_TWIN(cuEventRecord, _ptsz, (CUevent hEvent, CUstream hStream), record(hEvent, hStream, 0, perThread))
SHOAL_TWIN(cuEventRecordWithFlags, _ptsz, (CUevent hEvent, CUstream hStream, unsigned int flags),
           record(hEvent, hStream, flags, perThread))

CUresult cuEventQuery(CUevent hEvent) {
  return initialised<true>([&]() -> CUresult {
    std::shared_ptr<Event> event;
    if (const CUresult status = resolveEvent(hEvent, event)) return status;
    if (const CUresult status = checkCapturedEvent(*event)) return status;
    if (const CUresult status = checkUnsafeCall()) return status;
    if (event->shared)
      return event->shared->hasPassed(event->shared->last()) ? event->context->status() : CUDA_ERROR_NOT_READY;
    auto recording = event->last();
    if (recording && !recording->point.stream->hasFinished(recording->point.sequence)) return CUDA_ERROR_NOT_READY;
    return event->context->status();
  });
}

CUresult cuEventSynchronize(CUevent hEvent) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Event> event;
    if (const CUresult status = resolveEvent(hEvent, event)) return status;
    if (const CUresult status = checkCapturedEvent(*event)) return status;
    if (const CUresult status = checkUnsafeCall()) return status;
    if (event->shared) {
      event->shared->waitFor(event->shared->last(),
                             [&] { return event->context->isEnding || event->context->error != CUDA_SUCCESS; });
    } else if (auto recording = event->last()) {
      recording->point.stream->waitFor(recording->point.sequence);
    }
    trimPoolsAfterWaiting();
    return event->context->status();
  });
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}
CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}
