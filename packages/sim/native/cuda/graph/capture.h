// Stream capture: streams add their queued work to a graph.
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
  bool ownsGraph = true;  // false if the capture adds to a graph of the user
  std::vector<std::weak_ptr<Stream>> streams;
};

// The dependencies of a capturing stream's next node.
struct CaptureState {
  std::shared_ptr<Capture> capture;
  std::vector<Edge> dependencies;
  // The arrays that cuStreamGetCaptureInfo returns. They stay in place until the next call.
  std::vector<CUgraphNode> shownNodes;
  std::vector<CUgraphEdgeData> shownEdges;
};

// The nodes that an event stands for after it was recorded in a capturing stream.
struct CapturedPoint {
  std::weak_ptr<Capture> capture;
  std::vector<Edge> dependencies;
};

// Refuses a call that is not allowed during capture, and invalidates the capture.
CUresult refuseCaptured(const std::shared_ptr<Stream>& stream);
// For calls that are unsafe during a capture. The modes of the captures and of this thread decide.
CUresult checkUnsafeCall();
// For work on the legacy default stream, which would wait for all blocking streams.
CUresult checkImplicit(const std::shared_ptr<Stream>& stream);
// For calls that wait for all work of a context.
CUresult checkSynchronization(const Context& context);

}  // namespace shoal
