#include "capture.h"

#include <algorithm>
#include <unordered_set>

#include "core/context.h"
#include "core/event.h"

namespace shoal {

namespace {

std::vector<std::shared_ptr<Capture>>& captures() {
  static auto* all = new std::vector<std::shared_ptr<Capture>>;
  return *all;
}

std::atomic<int>& captureCount() {
  static std::atomic<int> count{0};
  return count;
}

uint64_t threadNumber() {
  static std::atomic<uint64_t> next{1};
  thread_local const uint64_t number = next.fetch_add(1);
  return number;
}

thread_local CUstreamCaptureMode threadMode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CaptureState* stateOf(Stream& stream) { return stream.captureState.get(); }

void addTo(std::vector<Edge>& edges, const std::vector<Edge>& more) {
  for (const Edge& edge : more) {
    const bool isThere =
        std::any_of(edges.begin(), edges.end(), [&](const Edge& each) { return each.node == edge.node; });
    if (!isThere) edges.push_back(edge);
  }
}

void join(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Capture>& capture) {
  stream->captureState = std::make_shared<CaptureState>();
  stream->captureState->capture = capture;
  stream->isCaptured = true;
  if (stream->isBlocking()) ++stream->context->blockingCaptures;
  capture->streams.push_back(stream);
}

void leave(Stream& stream) {
  if (!stream.isCaptured) return;
  stream.isCaptured = false;
  if (stream.isBlocking()) --stream.context->blockingCaptures;
  stream.captureState.reset();
}

void end(const std::shared_ptr<Capture>& capture) {
  for (auto& weak : capture->streams) {
    if (auto stream = weak.lock()) leave(*stream);
  }
  capture->graph->isCaptured = false;
  auto& all = captures();
  all.erase(std::remove(all.begin(), all.end(), capture), all.end());
  captureCount() = static_cast<int>(all.size());
}

// True if the stream that ends the capture waits for everything that other streams captured.
bool isJoined(const Capture& capture, const CaptureState& origin) {
  std::unordered_set<const GraphNode*> seen;
  std::vector<const GraphNode*> next;
  for (const Edge& edge : origin.dependencies) next.push_back(edge.node);
  while (!next.empty()) {
    const GraphNode* node = next.back();
    next.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Edge& edge : node->dependencies) next.push_back(edge.node);
  }
  for (auto& weak : capture.streams) {
    auto stream = weak.lock();
    if (!stream || stream->captureState.get() == &origin || !stream->captureState) continue;
    for (const Edge& edge : stream->captureState->dependencies) {
      if (seen.count(edge.node) == 0) return false;
    }
  }
  return true;
}

CUresult begin(CUstream handle, bool perThread, CUstreamCaptureMode mode, const std::shared_ptr<Graph>& into,
               std::vector<Edge> dependencies) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->kind == StreamKind::legacyDefault) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->isCaptured) return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    static unsigned long long last = 0;
    capture->id = ++last;
    capture->graph = into ? into : Graph::create();
    capture->ownsGraph = !into;
    capture->graph->isCaptured = true;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = threadNumber();
    join(stream, capture);
    stream->captureState->dependencies = std::move(dependencies);
    captures().push_back(capture);
    captureCount() = static_cast<int>(captures().size());
    return CUDA_SUCCESS;
  });
}

CUresult finish(CUstream handle, bool perThread, CUgraph* out) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    std::lock_guard lock(graphMutex());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CaptureState* own = stateOf(*stream);
    if (own == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    const auto capture = own->capture;
    if (capture->origin.lock() != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != threadNumber())
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    *out = nullptr;
    CUresult status = capture->isInvalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS && !isJoined(*capture, *own)) status = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    end(capture);
    if (status == CUDA_SUCCESS) *out = capture->graph->handle();
    else if (capture->ownsGraph) graphs().take(capture->graph->number);
    return status;
  });
}

// True if work on the stream would depend on capturing streams.
bool isImplicit(const Stream& stream) {
  return stream.kind == StreamKind::legacyDefault && stream.context->blockingCaptures != 0;
}

CUresult info(CUstream handle, bool perThread, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
              const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    std::lock_guard lock(graphMutex());
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // A query does not invalidate the capture.
    if (isImplicit(*stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    CaptureState* own = stateOf(*stream);
    *status = own == nullptr            ? CU_STREAM_CAPTURE_STATUS_NONE
              : own->capture->isInvalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (id != nullptr) *id = own->capture->id;
    if (graph != nullptr) *graph = own->capture->graph->handle();
    own->shownNodes.clear();
    own->shownEdges.clear();
    bool hasData = false;
    for (const Edge& edge : own->dependencies) {
      own->shownNodes.push_back(edge.node->handle());
      own->shownEdges.push_back(edge.data);
      hasData = hasData || edge.data.type != 0 || edge.data.from_port != 0;
    }
    if (hasData && edges == nullptr && nodes != nullptr) return CUDA_ERROR_LOSSY_QUERY;
    if (nodes != nullptr) *nodes = own->shownNodes.data();
    if (edges != nullptr) *edges = own->shownEdges.data();
    if (count != nullptr) *count = own->shownNodes.size();
    return CUDA_SUCCESS;
  });
}

CUresult changeDependencies(CUstream handle, bool perThread, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                            size_t count, unsigned flags) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    std::lock_guard lock(graphMutex());
    CaptureState* own = stateOf(*stream);
    if (own == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (own->capture->isInvalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> given;
    if (const CUresult status = readDependencies(*own->capture->graph, nodes, data, count, given)) return status;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) own->dependencies = std::move(given);
    else addTo(own->dependencies, given);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult captureWork(const std::shared_ptr<Stream>& stream, std::shared_ptr<const Work> work) {
  std::lock_guard lock(graphMutex());
  CaptureState* own = stateOf(*stream);
  if (own == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (own->capture->isInvalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Operation unused;
  if (const CUresult status = work->prepare(nullptr, unused)) return status;
  GraphNode* node = own->capture->graph->add(std::move(work), std::move(own->dependencies));
  own->dependencies = {Edge{node, {}}};
  return CUDA_SUCCESS;
}

CUresult submit(const std::shared_ptr<Stream>& stream, std::shared_ptr<const Work> work) {
  if (stream->isCaptured) return captureWork(stream, std::move(work));
  Operation operation;
  if (const CUresult status = work->prepare(stream, operation)) return status;
  auto queued = std::move(operation.queued);
  const uint64_t sequence = stream->enqueue(std::move(operation));
  if (queued) queued(stream, sequence);
  return CUDA_SUCCESS;
}

CUresult refuseCaptured(const std::shared_ptr<Stream>& stream) {
  if (!stream->isCaptured) return CUDA_SUCCESS;
  std::lock_guard lock(graphMutex());
  if (auto* own = stateOf(*stream)) own->capture->isInvalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult checkUnsafeCall() {
  if (captureCount().load(std::memory_order_relaxed) == 0 || threadMode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_SUCCESS;
  std::lock_guard lock(graphMutex());
  for (auto& capture : captures()) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool isOwn = capture->thread == threadNumber();
    const bool isForbidden =
        isOwn || (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && threadMode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (!isForbidden) continue;
    capture->isInvalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult checkImplicit(const std::shared_ptr<Stream>& stream) {
  if (!isImplicit(*stream)) return CUDA_SUCCESS;
  std::lock_guard lock(graphMutex());
  for (auto& other : stream->context->streams()) {
    if (auto* own = stateOf(*other); own != nullptr && other->isBlocking()) own->capture->isInvalid = true;
  }
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult checkSynchronization(const Context& context) {
  if (captureCount().load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  std::lock_guard lock(graphMutex());
  CUresult status = CUDA_SUCCESS;
  for (auto& capture : captures()) {
    for (auto& weak : capture->streams) {
      auto stream = weak.lock();
      if (!stream || stream->context.get() != &context) continue;
      capture->isInvalid = true;
      status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return status;
}

CUresult recordCaptured(const std::shared_ptr<Stream>& stream, Event& event) {
  std::lock_guard lock(graphMutex());
  CaptureState* own = stateOf(*stream);
  if (own == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (own->capture->isInvalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto point = std::make_shared<CapturedPoint>();
  point->capture = own->capture;
  point->dependencies = own->dependencies;
  event.setCaptured(std::move(point));
  return CUDA_SUCCESS;
}

CUresult waitCaptured(const std::shared_ptr<Stream>& stream, Event& event, bool& isDone) {
  std::lock_guard lock(graphMutex());
  isDone = true;
  const auto point = event.captured();
  const auto capture = point ? point->capture.lock() : nullptr;
  const bool isLive = capture && std::find(captures().begin(), captures().end(), capture) != captures().end();
  CaptureState* own = stateOf(*stream);
  if (own == nullptr && !isLive) {
    isDone = point != nullptr;  // a point of a finished capture needs no wait
    return point != nullptr ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
  }
  const auto invalidate = [&](CUresult status) {
    if (own != nullptr) own->capture->isInvalid = true;
    if (isLive) capture->isInvalid = true;
    return status;
  };
  if (own != nullptr && own->capture->isInvalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!isLive) return invalidate(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (capture->isInvalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (own != nullptr && own->capture != capture) return invalidate(CUDA_ERROR_STREAM_CAPTURE_MERGE);
  if (own == nullptr) {
    if (stream->kind == StreamKind::legacyDefault) return invalidate(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    join(stream, capture);
    own = stateOf(*stream);
  }
  addTo(own->dependencies, point->dependencies);
  return CUDA_SUCCESS;
}

CUresult checkCapturedEvent(Event& event) {
  const auto point = event.captured();
  if (!point) return CUDA_SUCCESS;
  std::lock_guard lock(graphMutex());
  if (const auto capture = point->capture.lock()) capture->isInvalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

void abandonCapture(Stream& stream) {
  if (!stream.isCaptured) return;
  std::lock_guard lock(graphMutex());
  CaptureState* own = stateOf(stream);
  if (own == nullptr) return;
  const auto capture = own->capture;
  capture->isInvalid = true;
  const auto origin = capture->origin.lock();
  if (origin.get() != &stream) return leave(stream);
  end(capture);
  if (capture->ownsGraph) graphs().take(capture->graph->number);
}

}  // namespace shoal

using namespace shoal;

SHOAL_TWIN(cuStreamBeginCapture_v2, _ptsz, (CUstream hStream, CUstreamCaptureMode mode),
           withGraphs([&] { return begin(hStream, perThread, mode, nullptr, {}); }))

SHOAL_TWIN(cuStreamBeginCaptureToGraph, _ptsz,
           (CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
            size_t numDependencies, CUstreamCaptureMode mode),
           withGraph(hGraph, [&](Graph& graph) -> CUresult {
             std::vector<Edge> given;
             if (graph.isCaptured) return CUDA_ERROR_ILLEGAL_STATE;
             if (const CUresult status = readDependencies(graph, dependencies, dependencyData, numDependencies, given))
               return status;
             return begin(hStream, perThread, mode, graph.shared_from_this(), std::move(given));
           }))
SHOAL_TWIN(cuStreamEndCapture, _ptsz, (CUstream hStream, CUgraph* phGraph), finish(hStream, perThread, phGraph))
SHOAL_TWIN(cuStreamIsCapturing, _ptsz, (CUstream hStream, CUstreamCaptureStatus* captureStatus),
           info(hStream, perThread, captureStatus, nullptr, nullptr, nullptr, nullptr, nullptr))
SHOAL_TWIN(cuStreamGetCaptureInfo_v2, _ptsz,
           (CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out, CUgraph* graph_out,
            const CUgraphNode** dependencies_out, size_t* numDependencies_out),
           info(hStream, perThread, captureStatus_out, id_out, graph_out, dependencies_out, nullptr,
                numDependencies_out))
SHOAL_TWIN(cuStreamGetCaptureInfo_v3, _ptsz,
           (CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out, CUgraph* graph_out,
            const CUgraphNode** dependencies_out, const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out),
           info(hStream, perThread, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                numDependencies_out))
SHOAL_TWIN(cuStreamUpdateCaptureDependencies, _ptsz,
           (CUstream hStream, CUgraphNode* dependencies, size_t numDependencies, unsigned int flags),
           changeDependencies(hStream, perThread, dependencies, nullptr, numDependencies, flags))
SHOAL_TWIN(cuStreamUpdateCaptureDependencies_v2, _ptsz,
           (CUstream hStream, CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData, size_t numDependencies,
            unsigned int flags),
           changeDependencies(hStream, perThread, dependencies, dependencyData, numDependencies, flags))

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return initialised([&] {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
      return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, threadMode);
    return CUDA_SUCCESS;
  });
}
