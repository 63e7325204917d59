// Legacy IPC of events.
#include "core/event.h"

#include "core/device.h"
#include "core/entry.h"
#include "exchange.h"
#include "sharedevent.h"

using namespace shoal;

CUresult cuIpcGetEventHandle(CUipcEventHandle* pHandle, CUevent event) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Event> found;
    if (pHandle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = resolveEvent(event, found)) return status;
    if (!found->shared || found->isOpened) return CUDA_ERROR_INVALID_HANDLE;
    const auto& file = found->shared->file;
    Ticket ticket = offer(TicketKind::event, file->identity().inode,
                          [weak = std::weak_ptr<SharedFile>(file)] { return weak.lock(); });
    ticket.device = found->context->device.ordinal;
    writeTicket(ticket, pHandle);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle) {
  return inContext([&](auto& context) -> CUresult {
    Ticket ticket;
    if (phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!readTicket(&handle, TicketKind::event, ticket)) return CUDA_ERROR_MAP_FAILED;
    if (isOwn(ticket)) return CUDA_ERROR_INVALID_CONTEXT;
    auto event = std::make_shared<Event>(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    event->isOpened = true;
    event->shared = SharedEvent::open(fetch(ticket));
    // The event was destroyed or its process has ended. As on hardware, it counts as completed.
    if (!event->shared) event->shared = SharedEvent::create();
    const uint64_t number = state().events.reserve();
    state().events.put(number, std::move(event));
    *phEvent = reinterpret_cast<CUevent>(number);
    return CUDA_SUCCESS;
  });
}
