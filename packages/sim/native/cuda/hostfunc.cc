// Host functions and callbacks: called on the stream's thread, in stream order.
#include "core/context.h"
#include "core/entry.h"
#include "core/stream.h"
#include "core/thread.h"
#include "core/workers.h"
#include "graph/capture.h"
#include "graph/hostwork.h"

using namespace shoal;

namespace {

// Marks the thread while user code runs on it. CUDA calls from user code return CUDA_ERROR_NOT_PERMITTED.
template <class Call>
void callUser(Call&& call) {
  const Workers::Waiting waiting;
  ThreadState& thread = threadState();
  thread.isInHostFunction = true;
  call();
  thread.isInHostFunction = false;
}

CUresult launch(CUstream handle, CUhostFn function, void* userData, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if (const CUresult status = checkImplicit(stream)) return status;
    return submit(stream, std::make_shared<HostWork>(CUDA_HOST_NODE_PARAMS{function, userData}));
  });
}

CUresult addCallback(CUstream handle, CUstreamCallback callback, void* userData, unsigned flags, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = refuseCaptured(stream)) return status;
    // Unlike a host function, a callback also runs after an error, and receives the error.
    Operation operation;
    operation.runsAfterErrors = true;
    operation.run = [handle, callback, userData, context = stream->context] {
      const auto status = static_cast<CUresult>(context->error.load());
      callUser([&] { callback(handle, status, userData); });
      return CUDA_SUCCESS;
    };
    (void)context;
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult HostWork::prepare(const std::shared_ptr<Stream>&, Operation& operation) const {
  if (parameters.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  operation.run = [parameters = parameters] {
    callUser([&] { parameters.fn(parameters.userData); });
    return CUDA_SUCCESS;
  };
  return CUDA_SUCCESS;
}

SHOAL_TWIN(cuLaunchHostFunc, _ptsz, (CUstream hStream, CUhostFn fn, void* userData),
           launch(hStream, fn, userData, perThread))
SHOAL_TWIN(cuStreamAddCallback, _ptsz,
           (CUstream hStream, CUstreamCallback callback, void* userData, unsigned int flags),
           addCallback(hStream, callback, userData, flags, perThread))
