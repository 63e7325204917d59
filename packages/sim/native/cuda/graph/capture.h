// Capture: streams that add what is queued on them to a graph.
#pragma once

#include "graph.h"

namespace shoal {

struct Capture {
  unsigned long long id = 0;
  std::shared_ptr<Graph> graph;
  std::weak_ptr<Stream> origin;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  uint64_t thread = 0;
  bool isInvalid = false;
  bool ownsGraph = true;  // false: the user's own graph is added to
  std::vector<std::weak_ptr<Stream>> streams;
};

// What a stream that is captured waits for next.
struct CaptureState {
  std::shared_ptr<Capture> capture;
  std::vector<Edge> dependencies;
  // What cuStreamGetCaptureInfo shows; stays in its place until the next call.
  std::vector<CUgraphNode> shownNodes;
  std::vector<CUgraphEdgeData> shownEdges;
};

// What an event stands for that was recorded in a stream that is captured.
struct CapturedPoint {
  std::weak_ptr<Capture> capture;
  std::vector<Edge> dependencies;
};

// The call is not allowed while it is captured: ends what can come of the capture.
CUresult refuseCaptured(const std::shared_ptr<Stream>& stream);
// For calls that are unsafe while somebody captures, as the modes of the captures and of this thread say.
CUresult checkUnsafeCall();
// For work on the legacy default stream, which would wait for all blocking streams.
CUresult checkImplicit(const std::shared_ptr<Stream>& stream);
// For waits for all work of a context.
CUresult checkSynchronization(const Context& context);

}  // namespace shoal
