// Device work as a value: a stream carries it out once, a node of a graph each time the graph is launched.
#pragma once

#include <memory>

#include "core/stream.h"
#include "shoal/cuda.h"

namespace shoal {

class Context;

// Never changes: a node that is given other parameters is given other work.
class Work : public std::enable_shared_from_this<Work> {
 public:
  virtual ~Work() = default;
  virtual CUgraphNodeType type() const = 0;
  // Where it runs; null: where the graph is launched.
  virtual std::shared_ptr<Context> context() const { return nullptr; }
  // Whether it is a kernel that may call `cudaGraphLaunch`.
  virtual bool launchesGraphs() const { return false; }
  // Checks what it needs, and gives the operation of one run on the stream.
  virtual CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const = 0;
};

// Queues the work on the stream, or makes it a node of the graph that the stream is captured into.
CUresult submit(const std::shared_ptr<Stream>& stream, std::shared_ptr<const Work> work);
// The latter.
CUresult captureWork(const std::shared_ptr<Stream>& stream, std::shared_ptr<const Work> work);

}  // namespace shoal
