// Launches of executable graphs from kernels of other graphs, or from their own.
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

// What an executable graph for kernels cannot have; CUDA_GRAPH_INSTANTIATE_SUCCESS: it can. `context`: where its other
// nodes run.
CUgraphInstantiateResult checkForKernels(const Work& work, const std::shared_ptr<Context>& context);

// Of one executable graph: its runs that kernels have to do with, and the one launch by a kernel that may wait for its
// turn.
class KernelLaunches {
 public:
  // Takes the place of the launch that waits; refused while the graph runs, but for a run that leaves it to its own
  // end.
  bool claim(bool isOwnTail);
  void unclaim();
  void begin(bool isClaimed);
  void end();

 private:
  std::mutex mutex_;
  unsigned running_ = 0;
  bool isClaimed_ = false;
};

// A launch by a kernel that has not begun.
class PendingLaunch {
 public:
  explicit PendingLaunch(std::shared_ptr<GraphExec> exec) : exec_(std::move(exec)) {}
  PendingLaunch(PendingLaunch&&) = default;
  // What it had ends with the other one.
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
  // `depth`: how many graphs have launched each other to run at once.
  explicit GraphRun(std::shared_ptr<GraphExec> exec, unsigned depth = 0) : exec_(std::move(exec)), depth_(depth) {}
  ~GraphRun() { end(); }

  // That of which the calling thread runs a node; null: none.
  SHOAL_FOR_ENGINE static GraphRun* current();

  // `isClaimed`: a kernel launched it.
  void begin(bool isClaimed);

  // What `%current_graph_exec` is: 0 where kernels may not launch the graph.
  SHOAL_FOR_ENGINE uint64_t handle() const;
  // What a kernel of the context calls (`cudaGraphLaunch`): returns a cudaError_t. `fault`: what stops the kernel, if
  // anything.
  SHOAL_FOR_ENGINE unsigned launch(const Context& context, uint64_t graph, uint64_t how, const char*& fault);

  // Runs one node, and what its kernel launched to run at once.
  CUresult runNode(const std::shared_ptr<Stream>& stream, const std::function<CUresult()>& node);
  // When the last node has ended: what kernels launched to run then, one after the other.
  CUresult runTails(const std::shared_ptr<Stream>& stream);
  // Ends the run, and gives these.
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
