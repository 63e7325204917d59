// Launches of executable graphs by kernels: of other graphs, or of the graph they belong to.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/forengine.h"
#include "core/stream.h"
#include "work.h"

namespace shoal {

class Context;
class GraphExec;

// Why a graph with this node cannot be launched by kernels, or CUDA_GRAPH_INSTANTIATE_SUCCESS. `context`: the context
// of the graph's other nodes.
CUgraphInstantiateResult checkForKernels(const Work& work, const std::shared_ptr<Context>& context);

// The state of one executable graph: how many runs are in progress, and whether a launch by a kernel is pending. Only
// one such launch can be pending.
class KernelLaunches {
 public:
  // Reserves the pending launch. Refused if one is pending, and while the graph runs. A run may reserve a tail launch
  // of its own graph.
  bool claim(bool isOwnTail);
  void unclaim();
  void begin(bool isClaimed);
  void end();

 private:
  std::mutex mutex_;
  unsigned running_ = 0;
  bool isClaimed_ = false;
};

// A launch by a kernel that has not started.
class PendingLaunch {
 public:
  explicit PendingLaunch(std::shared_ptr<GraphExec> exec) : exec_(std::move(exec)) {}
  PendingLaunch(PendingLaunch&&) = default;
  // Swaps, so that `other` releases the previous launch.
  PendingLaunch& operator=(PendingLaunch&& other) noexcept {
    exec_.swap(other.exec_);
    return *this;
  }
  ~PendingLaunch();
  std::shared_ptr<GraphExec> take() { return std::move(exec_); }

 private:
  std::shared_ptr<GraphExec> exec_;
};

// One run of an executable graph whose kernels may launch graphs.
class GraphRun {
 public:
  // `depth` is the number of fire-and-forget launches that surround this run.
  explicit GraphRun(std::shared_ptr<GraphExec> exec, unsigned depth = 0) : exec_(std::move(exec)), depth_(depth) {}
  ~GraphRun() { end(); }

  // The run whose node the calling thread runs, or null.
  SHOAL_FOR_ENGINE static GraphRun* current();

  // `isClaimed`: true if a kernel launched the graph.
  void begin(bool isClaimed);

  // The value of `%current_graph_exec`: 0 if kernels may not launch the graph.
  SHOAL_FOR_ENGINE uint64_t handle() const;
  // `cudaGraphLaunch` in a kernel of the context. Returns a cudaError_t. `fault` is set if the kernel must stop.
  SHOAL_FOR_ENGINE unsigned launch(const Context& context, uint64_t graph, uint64_t how, const char*& fault);

  // Runs one node, and then the graphs that its kernel launched as fire-and-forget.
  CUresult runNode(const std::shared_ptr<Stream>& stream, const std::function<CUresult()>& node);
  // Runs the tail launches in order, after the last node has completed.
  CUresult runTails(const std::shared_ptr<Stream>& stream);
  // Ends the run and returns its tail launches.
  std::deque<PendingLaunch> takeTails();

 private:
  void end();

  const std::shared_ptr<GraphExec> exec_;
  const unsigned depth_;
  bool isRunning_ = false;
  std::mutex mutex_;
  std::deque<PendingLaunch> fired_, tails_;
  size_t countOfFired_ = 0;
};

}  // namespace shoal
