// The start of every exported function. No exception leaves the library, and the checks run in CUDA's order.
#pragma once

#include <new>
#include <system_error>

#include "context.h"
#include "state.h"
#include "stream.h"
#include "thread.h"

namespace shoal {

// For functions that work before cuInit.
template <class Body>
CUresult anywhere(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::system_error&) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

// For functions that need cuInit but no context.
template <bool isAllowedInHostFunction = false, class Body>
CUresult initialised(Body&& body) noexcept {
  return anywhere([&]() -> CUresult {
    if (!state().initialised.load(std::memory_order_acquire)) return CUDA_ERROR_NOT_INITIALIZED;
    if (!isAllowedInHostFunction && threadState().isInHostFunction) return CUDA_ERROR_NOT_PERMITTED;
    return body();
  });
}

inline CUresult currentContext(std::shared_ptr<Context>& context) {
  auto& stack = contextStack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  context = stack.back();
  return context->status();
}

// For functions that work even if the current context has failed or was destroyed.
template <class Body>
CUresult inAnyContext(Body&& body) noexcept {
  return initialised([&]() -> CUresult {
    auto& stack = contextStack();
    return stack.empty() ? CUDA_ERROR_INVALID_CONTEXT : body(stack.back());
  });
}

// For functions that require a usable current context.
template <class Body>
CUresult inContext(Body&& body) noexcept {
  return initialised([&]() -> CUresult {
    std::shared_ptr<Context> context;
    if (const CUresult status = currentContext(context)) return status;
    return body(context);
  });
}

// For functions on a stream: `body(stream, its context)`. Only a default stream needs a current context.
template <bool isAllowedInHostFunction = false, class Body>
CUresult onStream(CUstream handle, bool perThread, Body&& body) noexcept {
  return initialised<isAllowedInHostFunction>([&]() -> CUresult {
    std::shared_ptr<Stream> stream;
    if (isDefaultStream(handle)) {
      if (threadState().isInHostFunction) return CUDA_ERROR_NOT_PERMITTED;
      std::shared_ptr<Context> context;
      if (const CUresult status = currentContext(context)) return status;
      stream = findDefaultStream(handle, perThread, *context);
    } else if (const CUresult status = findStream(handle, stream)) {
      return status;
    }
    return body(stream, stream->context);
  });
}

// Defines an exported function and its per-thread-default-stream twin with one body. The body gets a flag for the
// variant.
#define SHOAL_TWIN(name, suffix, parameters, call) \
  CUresult name parameters {                       \
    constexpr bool perThread = false;              \
    return call;                                   \
  }                                                \
  CUresult name##suffix parameters {               \
    constexpr bool perThread = true;               \
    return call;                                   \
  }

}  // namespace shoal
