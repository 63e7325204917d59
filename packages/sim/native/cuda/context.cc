// Contexts: creation, the current context of a thread, settings.
#include "core/context.h"

#include "core/device.h"
#include "core/entry.h"
#include "core/green.h"
#include "graph/capture.h"
#include "core/event.h"
#include "core/stream.h"

using namespace shoal;

namespace {

constexpr unsigned kApiVersion = 3020;

bool isLimit(CUlimit limit) { return limit >= CU_LIMIT_STACK_SIZE && limit <= CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED; }
bool hasLimit(CUlimit limit) {
  return limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && limit != CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED;
}

// The last context of the stack is current. Each entry has the green context through which it was made current.
void push(std::shared_ptr<Context> context, std::shared_ptr<GreenContext> green) {
  contextStack().push_back(std::move(context));
  threadState().greens.push_back(std::move(green));
}

void pop() {
  contextStack().pop_back();
  threadState().greens.pop_back();
}

CUcontext currentHandle() {
  const auto green = currentGreen();
  return green ? green->context() : contextStack().back()->handle();
}

CUresult createContext(CUcontext* created, unsigned flags, CUdevice ordinal) {
  if (created == nullptr || !areFlagsValid(flags)) return CUDA_ERROR_INVALID_VALUE;
  Device* device = nullptr;
  if (const CUresult status = findDevice(ordinal, device)) return status;
  if (const int lost = device->error) return static_cast<CUresult>(lost);
  auto context = Context::create(*device, false, flags);
  push(context, nullptr);
  *created = context->handle();
  return CUDA_SUCCESS;
}

// A destroyed context keeps its handle. The program can still make it current, but work in it fails.
CUresult findContext(CUcontext handle, std::shared_ptr<Context>& context) {
  context = state().contexts.find(handle);
  return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// For functions that accept null for the current context.
CUresult givenOrCurrent(CUcontext handle, std::shared_ptr<Context>& context) {
  if (handle == nullptr) return currentContext(context);
  if (const CUresult status = findContext(handle, context)) return status;
  return context->status();
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return initialised([&] { return createContext(pctx, flags, dev); });
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
  return initialised([&] {
    if (paramsArray != nullptr || numParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return createContext(pctx, flags, dev);
  });
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags, CUdevice dev) {
  return initialised([&] {
    if (ctxCreateParams != nullptr) {
      if (ctxCreateParams->execAffinityParams != nullptr && ctxCreateParams->cigParams != nullptr)
        return CUDA_ERROR_INVALID_VALUE;
      if (ctxCreateParams->execAffinityParams != nullptr) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
      if (ctxCreateParams->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    }
    return createContext(pctx, flags, dev);
  });
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  return initialised([&] {
    std::shared_ptr<Context> context;
    if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = findContext(ctx, context)) return status;
    if (context->isPrimary) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    auto& stack = contextStack();
    if (!stack.empty() && stack.back() == context) pop();
    context->destroy();
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxDestroy(CUcontext ctx) { return cuCtxDestroy_v2(ctx); }

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  return initialised([&] {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pctx = contextStack().empty() ? nullptr : currentHandle();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  return initialised([&] {
    auto& stack = contextStack();
    if (ctx == nullptr) {
      if (!stack.empty()) pop();
      return CUDA_SUCCESS;
    }
    std::shared_ptr<Context> context;
    if (const CUresult status = findContext(ctx, context)) return status;
    if (!stack.empty()) pop();
    push(context, greenOf(ctx));
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  return initialised([&] {
    std::shared_ptr<Context> context;
    if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = findContext(ctx, context)) return status;
    push(context, greenOf(ctx));
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  return initialised([&] {
    auto& stack = contextStack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx != nullptr) *pctx = currentHandle();
    pop();
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxPopCurrent(CUcontext* pctx) { return cuCtxPopCurrent_v2(pctx); }

CUresult cuCtxGetDevice(CUdevice* device) {
  if (device == nullptr) return state().initialised ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
  return inAnyContext([&](auto& context) {
    *device = context->device.ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Context> context;
    if (const CUresult status = givenOrCurrent(ctx, context)) return status;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device.ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize(void) {
  return inContext([](auto& context) -> CUresult {
    if (const CUresult status = checkSynchronization(*context)) return status;
    return context->synchronize();
  });
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Context> context;
    if (const CUresult status = givenOrCurrent(ctx, context)) return status;
    if (const CUresult status = checkSynchronization(*context)) return status;
    return context->synchronize();
  });
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return inAnyContext([&](auto& context) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // A primary context always maps host memory, but only this function reports the flag.
    *flags = context->flags | (context->isPrimary ? CU_CTX_MAP_HOST : 0);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetFlags(unsigned int flags) {
  return inContext([&](auto& context) {
    if (!areFlagsValid(flags)) return CUDA_ERROR_INVALID_VALUE;
    // As an H200 does: the flags of core dumps are ignored, and only this one is also a flag of the primary context.
    context->flags = flags & ~static_cast<unsigned>(CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE);
    if (context->isPrimary) {
      constexpr unsigned kShared = CU_CTX_SYNC_MEMOPS;
      Device& device = context->device;
      device.primaryFlags = (device.primaryFlags & ~kShared) | (flags & kShared);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Context> context;
    if (const CUresult status = givenOrCurrent(ctx, context)) return status;
    if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto green = ctx == nullptr ? currentGreen() : greenOf(ctx);
    *ctxId = green ? green->id : context->id.load();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Context> context;
    if (ctx == nullptr) {
      if (contextStack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
      context = contextStack().back();
    } else if (const CUresult status = findContext(ctx, context)) {
      return status;
    }
    if (!context->alive) return CUDA_ERROR_INVALID_CONTEXT;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = kApiVersion;
    return CUDA_SUCCESS;
  });
}

// Answers like a device without MPS, which cannot give a client a part of its multiprocessors.
CUresult cuCtxGetExecAffinity(CUexecAffinityParam* pExecAffinity, CUexecAffinityType) {
  return inContext([&](auto&) {
    return pExecAffinity == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  });
}

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  return inContext([&](auto& context) {
    if (pvalue == nullptr || !isLimit(limit)) return CUDA_ERROR_INVALID_VALUE;
    if (!hasLimit(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    std::lock_guard lock(context->settingsMutex);
    *pvalue = context->limits[limit];
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return inContext([&](auto& context) {
    if (!isLimit(limit)) return CUDA_ERROR_INVALID_VALUE;
    if (!hasLimit(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit >= CU_LIMIT_SHMEM_SIZE) return CUDA_ERROR_NOT_PERMITTED;  // read only
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(context->settingsMutex);
    context->limits[limit] = value;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  return inContext([&](auto& context) {
    if (pconfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(context->settingsMutex);
    *pconfig = context->cacheConfig;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return inContext([&](auto& context) {
    if (config < 0 || config > 3) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(context->settingsMutex);
    context->cacheConfig = config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  return inContext([&](auto& context) {
    if (pConfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(context->settingsMutex);
    *pConfig = context->sharedConfig;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return inContext([&](auto& context) {
    if (config < 0 || config > 2) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(context->settingsMutex);
    context->sharedConfig = config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return inContext([&](auto&) {
    if (leastPriority != nullptr) *leastPriority = Stream::kLeastPriority;
    if (greatestPriority != nullptr) *greatestPriority = Stream::kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxResetPersistingL2Cache(void) {
  return inContext([](auto&) { return CUDA_SUCCESS; });
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  return inContext([&](auto& context) -> CUresult {
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Context> peer;
    if (const CUresult status = findContext(peerContext, peer)) return status;
    if (!peer->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (&peer->device == &context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    std::lock_guard lock(context->settingsMutex);
    return context->peers.insert(peer.get()).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  return inContext([&](auto& context) -> CUresult {
    std::shared_ptr<Context> peer;
    if (const CUresult status = findContext(peerContext, peer)) return status;
    std::lock_guard lock(context->settingsMutex);
    return context->peers.erase(peer.get()) == 1 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}
