// Device work as a value. A stream runs it once; a graph node runs it at each launch of the graph.
#pragma once

#include <memory>

#include "core/stream.h"
#include "shoal/cuda.h"

namespace shoal {

class Context;

// Immutable. Changing a node's parameters replaces its work.
class Work : public std::enable_shared_from_this<Work> {
 public:
  virtual ~Work() = default;
  virtual CUgraphNodeType type() const = 0;
  // The context that the work runs in; null: the context of the launch.
  virtual std::shared_ptr<Context> context() const { return nullptr; }
  // True for a kernel that may call `cudaGraphLaunch`.
  virtual bool launchesGraphs() const { return false; }
  // Checks the resources and fills in the operation for one run on the stream.
  virtual CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const = 0;
};

// Queues the work on the stream. If the stream is capturing, adds it to the captured graph instead.
CUresult submit(const std::shared_ptr<Stream>& stream, std::shared_ptr<const Work> work);
// Adds the work to the captured graph.
CUresult captureWork(const std::shared_ptr<Stream>& stream, std::shared_ptr<const Work> work);

}  // namespace shoal
