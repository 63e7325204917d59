// The API of executable graphs: instantiate, launch, update, destroy.
#include "capture.h"
#include "exec.h"

using namespace shoal;

namespace {

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags, CUgraphNode* errorNode,
                     CUgraphInstantiateResult* result) {
  return withGraph(handle, [&](Graph& graph) -> CUresult {
    constexpr unsigned long long known =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (out == nullptr || (flags & ~known) != 0 || graph.isCaptured) return CUDA_ERROR_INVALID_VALUE;
    // A child graph or body cannot be instantiated alone. A graph with memory or conditional nodes has at most one
    // executable graph at a time.
    if (graph.isOwned || GraphExec::holdsAlone(graph)) {
      if (result != nullptr) *result = CUDA_GRAPH_INSTANTIATE_ERROR;
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    std::shared_ptr<GraphExec> exec;
    if (const CUresult status = GraphExec::create(graph, flags, exec, errorNode, result)) return status;
    *out = reinterpret_cast<CUgraphExec>(exec->number);
    executables().put(exec->number, exec);
    return CUDA_SUCCESS;
  });
}

CUresult launch(CUgraphExec handle, CUstream streamHandle, bool perThread, bool isUpload);

// Uploads the graph too, if the parameters ask for it. Only this function supports that.
CUresult instantiate(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS& wanted, bool perThread) {
  const CUresult status = instantiate(out, graph, wanted.flags, &wanted.hErrNode_out, &wanted.result_out);
  if (status != CUDA_SUCCESS || (wanted.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0) return status;
  const CUresult uploaded = launch(*out, wanted.hUploadStream, perThread, true);
  if (uploaded != CUDA_SUCCESS) cuGraphExecDestroy(*out);
  return uploaded;
}

CUresult withLog(CUgraphExec* out, CUgraph handle, CUgraphNode* errorNode, char* log, size_t size) {
  if (log != nullptr && size != 0) log[0] = 0;
  return instantiate(out, handle, 0, errorNode, nullptr);
}

CUresult launch(CUgraphExec handle, CUstream streamHandle, bool perThread, bool isUpload) {
  return onStream(streamHandle, perThread, [&](auto& stream, auto&) -> CUresult {
    const auto exec = executables().find(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkImplicit(stream)) return status;
    if (const CUresult captured = refuseCaptured(stream)) return captured;
    if (!isUpload) return exec->launch(stream);
    exec->upload(stream);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer,
                            size_t bufferSize) {
  return withLog(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer,
                               size_t bufferSize) {
  return withLog(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return initialised([] { return CUDA_ERROR_INVALID_VALUE; });
  return instantiate(phGraphExec, hGraph, flags, nullptr, nullptr);
}
SHOAL_TWIN(cuGraphInstantiateWithParams, _ptsz,
           (CUgraphExec * phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams),
           (instantiateParams == nullptr ? initialised([] { return CUDA_ERROR_INVALID_VALUE; })
                                         : instantiate(phGraphExec, hGraph, *instantiateParams, perThread)))

SHOAL_TWIN(cuGraphLaunch, _ptsz, (CUgraphExec hGraphExec, CUstream hStream),
           launch(hGraphExec, hStream, perThread, false))
SHOAL_TWIN(cuGraphUpload, _ptsz, (CUgraphExec hGraphExec, CUstream hStream),
           launch(hGraphExec, hStream, perThread, true))

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  return withGraphs([&] {
    return executables().take(reinterpret_cast<uint64_t>(hGraphExec)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  return withGraphs([&] {
    const auto exec = executables().find(hGraphExec);
    if (!exec || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* resultInfo) {
  return withGraph(hGraph, [&](Graph& graph) -> CUresult {
    const auto exec = executables().find(hGraphExec);
    if (!exec || resultInfo == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *resultInfo = {};
    if (graph.isOwned) return CUDA_ERROR_INVALID_VALUE;
    return exec->update(graph, *resultInfo);
  });
}
CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult status = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
  if (hErrorNode_out != nullptr) *hErrorNode_out = info.errorNode;
  if (updateResult_out != nullptr) *updateResult_out = info.result;
  return status;
}
