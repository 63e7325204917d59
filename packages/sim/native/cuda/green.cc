// Green contexts: multiprocessors as a resource, splitting them, and contexts and streams on a part of them.
#include "core/green.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "core/event.h"
#include "graph/capture.h"
#include "ptx/shape.h"

using namespace shoal;

namespace {

// Multiprocessors come in pairs, which cannot be split.
constexpr unsigned kPair = 2;

// Multiprocessors that run the blocks of one cluster together. The size of a part is a multiple of this number. On a
// small device, 8 would be the whole device.
unsigned together() { return multiprocessorCount() < 16 ? 2 : 8; }

unsigned countOf(const Multiprocessors& set) { return static_cast<unsigned>(set.count()); }

// The first `count` of a set.
Multiprocessors lowest(const Multiprocessors& of, unsigned count) {
  Multiprocessors taken;
  for (unsigned at = 0; at < of.size() && count > 0; ++at) {
    if (!of[at]) continue;
    taken.set(at);
    --count;
  }
  return taken;
}

Multiprocessors all() { return lowest(Multiprocessors().set(), multiprocessorCount()); }

// The fields of a resource at the same offsets as in NVIDIA's driver, in bytes that the header leaves unnamed.
struct Hidden {
  uint64_t mark;
  Multiprocessors multiprocessors;
  int device;
  bool isPart;  // the result of a split, which cannot be split again
};
constexpr uint64_t kMark = 0x73686f616c534d73;
static_assert(std::is_trivially_copyable_v<Hidden> && sizeof(Hidden) <= sizeof CUdevResource()._internal_padding);

CUdevResource describe(const Multiprocessors& multiprocessors, int device, bool isPart) {
  CUdevResource resource{};
  if (multiprocessors.none()) return resource;
  const Hidden hidden{kMark, multiprocessors, device, isPart};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm = {countOf(multiprocessors), together(), together()};
  memcpy(resource._internal_padding, &hidden, sizeof hidden);
  return resource;
}

bool read(const CUdevResource& resource, Hidden& hidden) {
  memcpy(&hidden, resource._internal_padding, sizeof hidden);
  return resource.type == CU_DEV_RESOURCE_TYPE_SM && hidden.mark == kMark &&
         resource.sm.smCount == countOf(hidden.multiprocessors);
}

CUresult handOut(const Multiprocessors& multiprocessors, int device, CUdevResource* out, CUdevResourceType type) {
  if (out == nullptr || type != CU_DEV_RESOURCE_TYPE_SM)
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = describe(multiprocessors, device, false);
  return CUDA_SUCCESS;
}

Multiprocessors takeLowest(Multiprocessors& from, unsigned count) {
  const Multiprocessors taken = lowest(from, count);
  from &= ~taken;
  return taken;
}

CUresult split(CUdevResource* result, unsigned* groups, const CUdevResource* input, CUdevResource* remaining,
               unsigned flags, unsigned least) {
  constexpr unsigned known =
      CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  Hidden hidden;
  // Flags cannot be combined.
  if (groups == nullptr || input == nullptr || (flags & ~known) != 0 || flags == known) return CUDA_ERROR_INVALID_VALUE;
  if (!read(*input, hidden)) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  if (hidden.isPart) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned step = (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0 ? kPair : together();
  const unsigned available = input->sm.smCount;
  if (least > available || step > available) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  // Round up, but not beyond the available number.
  const unsigned each = std::min(std::max(least + step - 1, step) / step * step, available);
  const unsigned possible = available / each;
  // Without an array, only return the possible number of groups.
  if (result == nullptr) {
    *groups = possible;
    return CUDA_SUCCESS;
  }
  if (*groups == 0) return CUDA_ERROR_INVALID_VALUE;
  *groups = std::min(*groups, possible);
  Multiprocessors left = hidden.multiprocessors;
  for (unsigned index = 0; index < *groups; ++index)
    result[index] = describe(takeLowest(left, each), hidden.device, true);
  if (remaining != nullptr) *remaining = describe(left, hidden.device, true);
  return CUDA_SUCCESS;
}

struct Description {
  Multiprocessors multiprocessors;
  int device = 0;
};

HandleTable<Description>& descriptions() {
  static auto* table = new HandleTable<Description>(13);
  return *table;
}

CUresult generate(CUdevResourceDesc* out, const CUdevResource* resources, unsigned count) {
  if (out == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  Description all;
  for (unsigned index = 0; index < count; ++index) {
    Hidden hidden;
    if (!read(resources[index], hidden)) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    const bool isElsewhere = index > 0 && hidden.device != all.device;
    if (isElsewhere || (hidden.multiprocessors & all.multiprocessors).any())
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    all.device = hidden.device;
    all.multiprocessors |= hidden.multiprocessors;
  }
  const uint64_t number = descriptions().reserve();
  descriptions().put(number, std::make_shared<Description>(all));
  *out = reinterpret_cast<CUdevResourceDesc>(number);
  return CUDA_SUCCESS;
}

void countGreens(Device& device, int more) {
  std::lock_guard lock(device.primaryMutex);
  device.greenContexts += more;
}

CUresult create(CUgreenCtx* out, CUdevResourceDesc handle, CUdevice ordinal, unsigned flags) {
  const auto described = descriptions().find(handle);
  if (out == nullptr || !described || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  Device* device = nullptr;
  if (const CUresult status = findDevice(ordinal, device)) return status;
  if (described->device != ordinal) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext primary = nullptr;
  if (const CUresult status = cuDevicePrimaryCtxRetain(&primary, ordinal)) return status;
  countGreens(*device, 1);
  auto green = std::make_shared<GreenContext>(device->primary, described->multiprocessors, newContextId());
  green->number = greenContexts().reserve();
  greenContexts().put(green->number, green);
  green->contextNumber = state().contexts.reserve();
  greenContexts().put(green->contextNumber, green);
  state().contexts.put(green->contextNumber, device->primary);
  *out = green->handle();
  return CUDA_SUCCESS;
}

template <class Body>
CUresult withGreen(CUgreenCtx handle, Body&& body) {
  return initialised([&]() -> CUresult {
    const auto green = greenContexts().find(handle);
    if (!green || green->handle() != handle) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult status = green->primary->status()) return status;
    return body(green);
  });
}

// Calls `body` with the green context if the handle is of one, and with the whole context otherwise.
template <class Body>
CUresult withContext(CUcontext handle, Body&& body) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Context> context;
    auto green = handle == nullptr ? currentGreen() : greenOf(handle);
    if (handle == nullptr) {
      if (const CUresult status = currentContext(context)) return status;
    } else {
      context = state().contexts.find(handle);
      if (!context) return CUDA_ERROR_INVALID_CONTEXT;
      if (const CUresult status = context->status()) return status;
    }
    return body(context, green.get());
  });
}

CUresult record(Context& context, const GreenContext* green, CUevent handle) {
  std::shared_ptr<Event> event;
  if (const CUresult status = resolveEvent(handle, event)) return status;
  if (event->context.get() != &context) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult status = checkSynchronization(context)) return status;
  return context.record(event, green);
}

CUresult waitFor(Context& context, const GreenContext* green, CUevent handle) {
  std::shared_ptr<Event> event;
  if (const CUresult status = resolveEvent(handle, event)) return status;
  if (const CUresult status = checkCapturedEvent(*event)) return status;
  if (const CUresult status = checkSynchronization(context)) return status;
  return context.waitFor(event, green);
}

CUresult greenOfStream(CUstream handle, CUgreenCtx* out) {
  return onStream(handle, false, [&](auto& stream, auto&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto green = isDefaultStream(handle) ? currentGreen() : stream->green;
    *out = green ? green->handle() : nullptr;
    return CUDA_SUCCESS;
  });
}

}  // namespace

HandleTable<GreenContext>& shoal::greenContexts() {
  static auto* table = new HandleTable<GreenContext>(14, "green contexts");
  return *table;
}

std::shared_ptr<GreenContext> shoal::greenOf(CUcontext handle) { return greenContexts().find(handle); }

std::shared_ptr<GreenContext> shoal::currentGreen() {
  auto& greens = threadState().greens;
  return greens.empty() ? nullptr : greens.back();
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return initialised([&]() -> CUresult {
    Device* found = nullptr;
    if (const CUresult status = findDevice(device, found)) return status;
    return handOut(all(), device, resource, type);
  });
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type) {
  return withContext(hCtx, [&](auto& context, const GreenContext* green) {
    return handOut(green == nullptr ? all() : green->multiprocessors, context->device.ordinal, resource, type);
  });
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource* resource, CUdevResourceType type) {
  return withGreen(hCtx, [&](auto& green) {
    return handOut(green->multiprocessors, green->primary->device.ordinal, resource, type);
  });
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned int useFlags, unsigned int minCount) {
  return initialised([&] { return split(result, nbGroups, input, remaining, useFlags, minCount); });
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources, unsigned int nbResources) {
  return initialised([&] { return generate(phDesc, resources, nbResources); });
}

CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  return initialised([&] { return create(phCtx, desc, dev, flags); });
}

// The streams of a destroyed green context stay, and their calls report that the context is destroyed.
CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return initialised([&]() -> CUresult {
    const auto green = greenContexts().find(hCtx);
    if (!green || green->handle() != hCtx) return CUDA_ERROR_INVALID_CONTEXT;
    greenContexts().take(green->number);
    greenContexts().take(green->contextNumber);
    state().contexts.take(green->contextNumber);
    green->isDestroyed = true;
    countGreens(green->primary->device, -1);
    const CUresult released = cuDevicePrimaryCtxRelease_v2(green->primary->device.ordinal);
    // After a reset the primary context is not retained any more.
    return released == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : released;
  });
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  return withGreen(hCtx, [&](auto& green) {
    if (pContext == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pContext = green->context();
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long* greenCtxId) {
  return withGreen(greenCtx, [&](auto& green) {
    if (greenCtxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *greenCtxId = green->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
  return withGreen(greenCtx, [&](auto& green) {
    if (phStream == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    *phStream =
        Stream::create(green->primary, StreamKind::nonBlocking, Stream::nearestPriority(priority), green)->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return withGreen(hCtx, [&](auto& green) { return record(*green->primary, green.get(), hEvent); });
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return withGreen(hCtx, [&](auto& green) { return waitFor(*green->primary, green.get(), hEvent); });
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  return withContext(hCtx, [&](auto& context, const GreenContext* green) { return record(*context, green, hEvent); });
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  return withContext(hCtx, [&](auto& context, const GreenContext* green) { return waitFor(*context, green, hEvent); });
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) { return greenOfStream(hStream, phCtx); }
